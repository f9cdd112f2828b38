"""Compare the CPU time of image filters with that of the network behind them, per image.

python -m benchmarks filters resnet50.onnx
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from beaufort import corrupt
from beaufort.models import Model, load_model, with_filter
from beaufort.testing._contracts import example_image
from benchmarks.recording import record

FILTERS = ("stretch", "equalize", "clahe", "nlm", "nlm:above=0.03", "ten-crop")


def seconds(model: Model, images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> float:
    """Return CPU seconds per image, the best of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        model(images)
        times.append((time.process_time() - start) / len(images))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="ONNX file")
    model = load_model(parser.parse_args().model, threads=1)
    side = (model.spec.input_size or (224, 224))[0]
    clean = np.stack([example_image(side, side, 3, variant=i) for i in range(8)])
    noisy = corrupt(clean, "gaussian_noise", severity=3)
    with_filter(model, "nlm")(noisy[:1])  # compiles
    plain = seconds(model, noisy)
    record("network", 1000 * plain, "ms")
    print(f"{model.spec.name}: {1000 * plain:.1f} ms per image of {side} pixels, one thread")
    for text in FILTERS:
        filtered = with_filter(model, text, threads=1)
        if filtered.filter.views is None:
            start = time.process_time()
            for _ in range(3):
                filtered.filter(noisy, threads=1)
            alone = (time.process_time() - start) / 3 / len(noisy)
            record(text, 1000 * alone, "ms")
            print(f"+ {text}: {1000 * alone:.1f} ms more, {alone / plain:.1%} of the network's time")
        else:
            ratio = record(text, seconds(filtered, noisy[:2]) / plain, "× the network")
            print(f"+ {text}: {ratio:.1f} times as long")
