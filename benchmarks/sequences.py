"""Compare perturbation sequences with the same number of single corruptions.

python -m benchmarks sequences [--device cuda] [--batch 64] [--severity 1] [--repeats 9]

On the CPU: one image, one thread, CPU time. On a GPU: a batch, wall time until the last kernel ends.
Sequences come from `perturbations[...].frames` of images of 256 pixels with frames of 224 pixels; single
corruptions from `corruptions[...]` on 224 pixels at severity 1, which is about as strong as a frame. `tilt`
is compared with the shear of MNIST-C.
"""

# ruff: noqa: E402  (the number of threads is set before anything that has threads is imported)
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import cv2
import numpy as np

from beaufort.corruptions import corruptions
from beaufort.corruptions.sequences import perturbations
from beaufort.testing._contracts import example_image
from benchmarks.recording import record

SIDE, WHOLE = 224, 256
SINGLE = {"tilt": "shear"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="`cpu` for arrays, or a torch device")
    parser.add_argument("--batch", type=int, help="images per call (default: 1 on the CPU, 64 on a GPU)")
    parser.add_argument("--severity", type=int, default=1, choices=range(1, 6), help="of single corruptions")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    count = options.batch or (1 if options.device == "cpu" else 64)
    rows = measure(options.device, count, options.severity, options.repeats)
    print("| sequence | frames, ms | single corruptions, ms | ratio |\n|---|---:|---:|---:|")
    for name, row in rows.items():
        record(f"{name}, frames", row["frames"], "ms")
        ratio = record(f"{name}, ratio", row["frames"] / row["singles"], "×")
        print(f"| {name} | {row['frames']:.2f} | {row['singles']:.2f} | {ratio:.2f} |")
    slower = [name for name, row in rows.items() if row["frames"] > row["singles"]]
    print(f"\nslower than single corruptions: {', '.join(slower) or 'none'}")


def measure(device: str, count: int, severity: int, repeats: int) -> dict[str, dict[str, float]]:
    """Return milliseconds per image for a sequence and for as many single corruptions."""
    cv2.setNumThreads(1)
    whole = np.stack([example_image(WHOLE, WHOLE, variant=i) for i in range(count)])
    margin = (WHOLE - SIDE) // 2
    middle = np.ascontiguousarray(whole[:, margin : margin + SIDE, margin : margin + SIDE])
    frames: Any = whole if device == "cpu" else _on_device(whole, device)
    images: Any = middle if device == "cpu" else _on_device(middle, device)
    found = {}
    for name, perturbation in perturbations.items():
        length = perturbation.length("imagenet")
        single = corruptions[SINGLE.get(name, name)]
        scale = "imagenet" if "imagenet" in single.recipes else "relative"
        batch = images if device == "cpu" else images.movedim(-1, 1)

        def sequence(perturbation: Any = perturbation) -> None:
            for _ in perturbation.frames(frames, scale="imagenet", ids=range(count)):
                pass

        def singles(single: Any = single, scale: str = scale, length: int = length) -> None:
            for number in range(length):
                ids = range(number * count, (number + 1) * count)
                single(batch, severity, ids=ids, scale=scale)  # noqa: B023

        sequence()  # compiles and builds tables
        singles()
        both = [(timed(sequence, device), timed(singles, device)) for _ in range(repeats)]
        found[name] = {
            "frames": median(one for one, _ in both) / count,
            "singles": median(one for _, one in both) / count,
        }
    return found


def timed(work: Callable[[], None], device: str) -> float:
    """Return milliseconds of CPU time, or wall time until a GPU is done."""
    if device == "cpu":
        start = time.process_time_ns()
        work()
        return (time.process_time_ns() - start) / 1e6
    import torch

    torch.cuda.synchronize(device)
    begin = time.perf_counter_ns()
    work()
    torch.cuda.synchronize(device)
    return (time.perf_counter_ns() - begin) / 1e6


def _on_device(images: np.ndarray, device: str) -> Any:
    import torch

    return torch.from_numpy(images).to(device)
