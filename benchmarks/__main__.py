"""Run a benchmark, or compare two of its files.

python -m benchmarks                                        # list the benchmarks
python -m benchmarks corruptions --quick --json before.json
python -m benchmarks compare before.json after.json
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

NAMES = {
    "cluster": "cost of running on Ray, scaling, memory of the driver",
    "cluster-plan": "a large cluster job, simulated",
    "corruptions": "corruptions beside imagecorruptions, on one and two threads, first calls",
    "evaluation": "overhead of evaluate, peak memory, queries on a large store",
    "filters": "image filters beside a network",
    "gate": "error rates of the gate and of planned sample sizes, simulated",
    "gpu": "corruptions and evaluate on a CUDA GPU",
    "interval-coverage": "coverage of intervals, simulated",
    "intervals": "time of intervals, and of stopping at a precision",
    "object-store": "listing a store in S3",
    "pipeline": "JPEG files to batches, beside the loaders of torchvision and timm",
    "review-load": "response times of the review server",
    "sequences": "perturbation sequences beside single corruptions",
    "testbed": "fits, bands and intervals of the testbed",
    "training": "time of training recipes",
}


def main() -> None:
    """Read the name and pass the other arguments on."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        for name, summary in NAMES.items():
            print(f"  {name:18} {summary}")
        return
    name, *arguments = sys.argv[1:]
    from benchmarks import recording

    if name == "compare":
        if len(arguments) != 2:
            sys.exit("usage: python -m benchmarks compare BEFORE.json AFTER.json")
        print(recording.compare(*map(Path, arguments)))
        return
    if name not in NAMES:
        sys.exit(f"unknown benchmark {name!r}; available: {', '.join(NAMES)}")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--json", type=Path)
    common, own = parser.parse_known_args(arguments)
    sys.argv = [f"python -m benchmarks {name}", *own]
    module = importlib.import_module(f"benchmarks.{name.replace('-', '_')}")
    code = module.main()
    if common.json:
        recording.write(common.json, name, own)
        print(f"wrote {common.json}")
    sys.exit(code)


if __name__ == "__main__":
    main()
