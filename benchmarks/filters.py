"""What image filters cost beside a network: processor time of one image, through the model of a run.

`python benchmarks/filters.py resnet50.onnx`
"""

from __future__ import annotations

import sys
import time

import numpy as np

from beaufort import corrupt
from beaufort.models import Model, load_model, with_filter
from beaufort.testing._contracts import picture

FRONTS = ("stretch", "equalize", "clahe", "nlm", "nlm:above=0.03", "ten-crop")


def seconds(model: Model, images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> float:
    """Processor seconds an image, the best of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        model(images)
        found.append((time.process_time() - start) / len(images))
    return min(found)


def main(path: str) -> None:
    model = load_model(path, threads=1)
    side = (model.spec.input_size or (224, 224))[0]
    clean = np.stack([picture(side, side, 3, variant=i) for i in range(8)])
    noisy = corrupt(clean, "gaussian_noise", severity=3)
    with_filter(model, "nlm")(noisy[:1])  # compiled
    plain = seconds(model, noisy)
    print(f"{model.spec.name}: {1000 * plain:.1f} ms an image of {side} pixels, one thread")
    for text in FRONTS:
        filtered = with_filter(model, text, threads=1)
        if filtered.filter.views is None:
            start = time.process_time()
            for _ in range(3):
                filtered.filter(noisy, threads=1)
            alone = (time.process_time() - start) / 3 / len(noisy)
            print(f"+ {text}: {1000 * alone:.1f} ms more, {alone / plain:.1%} of the network's time")
        else:
            print(f"+ {text}: {seconds(filtered, noisy[:2]) / plain:.1f} times as long")


if __name__ == "__main__":
    main(sys.argv[1])
