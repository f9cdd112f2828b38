"""Whether a film costs more than as many single corruptions of the same kind.

python benchmarks/sequences.py [--device cuda] [--batch 64] [--severity 1] [--repeats 9] [--json FILE]

On the CPU one picture and one thread, in CPU time; on a device a batch, by the clock, to the end of the last
kernel. Films are made by `perturbations[...].frames` of pictures of 256 pixels, with frames of 224; single
corruptions by `corruptions[...]` on 224 pixels at severity 1, which is about as strong as a frame is. There
is no single `tilt`: it stands beside the shear of MNIST-C, which bends pictures, too.
"""

# ruff: noqa: E402  (the number of threads is set before anything that has threads is imported)
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np

from beaufort.corruptions import corruptions
from beaufort.corruptions.sequences import perturbations
from beaufort.testing._contracts import picture

SIDE, WHOLE = 224, 256
BESIDE = {"tilt": "shear"}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Films of ImageNet-P beside single corruptions.")
    parser.add_argument("--device", default="cpu", help="cpu for arrays, or a device of torch")
    parser.add_argument("--batch", type=int, help="pictures at once; 1 on the CPU and 64 on a device")
    parser.add_argument("--severity", type=int, default=1, choices=range(1, 6), help="of single corruptions")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, help="file for all numbers")
    options = parser.parse_args()
    count = options.batch or (1 if options.device == "cpu" else 64)
    rows = measure(options.device, count, options.severity, options.repeats)
    print("| sequence | film, ms | singles, ms | share |\n|---|---:|---:|---:|")
    for name, row in rows.items():
        print(f"| {name} | {row['film']:.2f} | {row['singles']:.2f} | {row['film'] / row['singles']:.2f} |")
    slower = [name for name, row in rows.items() if row["film"] > row["singles"]]
    print(f"\nslower than single corruptions: {', '.join(slower) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def measure(device: str, count: int, severity: int, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds a picture of a film, and of as many single corruptions."""
    cv2.setNumThreads(1)
    whole = np.stack([picture(WHOLE, WHOLE, variant=i) for i in range(count)])
    margin = (WHOLE - SIDE) // 2
    middle = np.ascontiguousarray(whole[:, margin : margin + SIDE, margin : margin + SIDE])
    frames: Any = whole if device == "cpu" else _there(whole, device)
    images: Any = middle if device == "cpu" else _there(middle, device)
    found = {}
    for name, perturbation in perturbations.items():
        length = perturbation.length("imagenet")
        single = corruptions[BESIDE.get(name, name)]
        scale = "imagenet" if "imagenet" in single.recipes else "relative"
        shown = images if device == "cpu" else images.movedim(-1, 1)

        def film(perturbation: Any = perturbation) -> None:
            for _ in perturbation.frames(frames, scale="imagenet", ids=range(count)):
                pass

        def singles(single: Any = single, scale: str = scale, length: int = length) -> None:
            for number in range(length):
                ids = range(number * count, (number + 1) * count)
                single(shown, severity, ids=ids, scale=scale)  # noqa: B023

        film()  # compile, build tables
        singles()
        both = [(timed(film, device), timed(singles, device)) for _ in range(repeats)]
        found[name] = {
            "film": median(one for one, _ in both) / count,
            "singles": median(one for _, one in both) / count,
        }
    return found


def timed(work: Callable[[], None], device: str) -> float:
    """Milliseconds: of the processor, or until a device is done."""
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


def _there(images: np.ndarray, device: str) -> Any:
    import torch

    return torch.from_numpy(images).to(device)


if __name__ == "__main__":
    main()
