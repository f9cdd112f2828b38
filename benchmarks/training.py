"""How long Conv1 takes to train on the processor, beside its goal of 5 minutes on two cores.

    python benchmarks/training.py --data mnist:FOLDER#train

Prints the seconds on the clock and of the processor: on a busy machine the first says little.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile

import torch

from beaufort.training import train

GOAL_S = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="mnist-train", help="what to train on")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        facts = train("conv1", chosen.data, output=folder, device="cpu").facts
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, torch {torch.__version__}")
    print(
        f"conv1, {facts['steps']} steps, {chosen.threads} threads: {facts['seconds']:.0f} s, "
        f"{facts['cpu_seconds']:.0f} s of the processor; goal {GOAL_S} s"
    )


if __name__ == "__main__":
    main()
