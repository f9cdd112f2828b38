"""Measure the overhead of `evaluate`, its peak memory, and queries on a large store.

python -m benchmarks evaluation overhead MODEL [--images 256]
python -m benchmarks evaluation memory [--images 50000]
python -m benchmarks evaluation store [--models 200] [--conditions 200]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.recording import record

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("overhead")
    one.add_argument("model", help="model of 224×224 images, as for `beaufort run --model`")
    one.add_argument("--images", type=int, default=256)
    one.add_argument("--repeats", type=int, default=3)
    one.set_defaults(run=overhead)
    two = commands.add_parser("memory")
    two.add_argument("--images", type=int, default=50_000)
    two.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    two.set_defaults(run=memory)
    three = commands.add_parser("store")
    three.add_argument("--models", type=int, default=200)
    three.add_argument("--conditions", type=int, default=200)
    three.add_argument("--rows", type=int, default=50, help="rows of most cells")
    three.add_argument(
        "--full-rows", type=int, default=50_000, help="rows of the two cells that are compared"
    )
    three.set_defaults(run=store)
    options = parser.parse_args()
    options.run(options)


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def photos(count: int, side: int = 224) -> np.ndarray:
    from beaufort.testing._contracts import example_image

    return np.stack([example_image(side, side, variant=i % 16) for i in range(count)])


def overhead(options: argparse.Namespace) -> None:
    """Compare a run with a bare loop of the same model over images that are already corrupted."""
    from beaufort.data import from_arrays
    from beaufort.evaluation import RunOptions
    from beaufort.models import load_model
    from beaufort.results import evaluate
    from beaufort.suites.conditions import Condition

    model = load_model(options.model)
    images = photos(options.images)
    data = from_arrays("photos", images, np.zeros(len(images), np.int64))
    conditions = [Condition.parse(text) for text in ("photos/gaussian_noise@3", "photos/fog@3")]
    corrupted = [condition.apply(images, ids=list(data.ids), scale="imagenet") for condition in conditions]
    batch = 16

    def bare() -> None:
        for array in corrupted:
            for start in range(0, len(array), batch):
                model(array[start : start + batch])

    def harness() -> None:
        with tempfile.TemporaryDirectory() as folder:
            evaluate([model], conditions, data, folder, options=RunOptions(batch_size=batch))

    model(images[:batch])
    harness()
    times: dict[str, list[float]] = {"bare": [], "harness": []}
    for _ in range(options.repeats):  # interleaved, so that a busy machine slows both
        times["bare"].append(timed(bare))
        times["harness"].append(timed(harness))
    loop, run = median(times["bare"]), median(times["harness"])
    each = 1000 * loop / (2 * len(images))
    record("bare loop", each, "ms/image")
    ratio = record("evaluate over bare loop", run / loop, "×", "≤ 1.01")
    print(f"bare loop {loop:.2f} s ({each:.1f} ms per image), evaluate {run:.2f} s")
    print(f"ratio {ratio:.3f} (target ≤ 1.01)")


def memory(options: argparse.Namespace) -> None:
    """Measure the peak memory of a run over many JPEG files in a process of its own."""
    if options.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            make_files(Path(folder) / "photos", options.images)
            command = [
                sys.executable,
                "-m",
                "benchmarks",
                "evaluation",
                "memory",
                "--images",
                str(options.images),
                "--folder",
                folder,
            ]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            print(done.stdout, end="")
            record("peak memory", float(done.stdout.rpartition("peak memory ")[2].split()[0]), "GB", "≤ 2")
        return
    from beaufort.data import load_dataset
    from beaufort.models import as_model
    from beaufort.results import evaluate
    from beaufort.suites.conditions import Condition

    model = as_model(
        lambda images: images.mean(axis=(1, 2)).astype(np.float32), name="mean", classes=3, version="1"
    )
    data = load_dataset(str(options.folder / "photos"))
    conditions = [Condition.parse(f"{data.name}/fog@3")]
    seconds = timed(lambda: evaluate([model], conditions, data, options.folder / "store"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(data)} images from files in {seconds:.0f} s, peak memory {peak:.2f} GB (target ≤ 2)")


def make_files(folder: Path, count: int) -> None:
    """Create many hard links to a few files."""
    from PIL import Image

    few = folder.parent / "few"
    few.mkdir()
    for i, image in enumerate(photos(64)):
        Image.fromarray(image).save(few / f"{i}.jpg", quality=90)
    for i in range(count):
        target = folder / f"class{i % 3}"
        target.mkdir(parents=True, exist_ok=True)
        os.link(few / f"{i % 64}.jpg", target / f"{i:06}.jpg")


def store(options: argparse.Namespace) -> None:
    """Time listing, a leaderboard query and a paired comparison in a store of many cells."""
    from beaufort.evaluation import predictions
    from beaufort.store import Cell, FileStore, query

    root = Path(tempfile.mkdtemp())

    def no_sync(fd: object) -> None:
        """Skip syncing while the store is filled, which is not measured."""

    fsync, os.fsync = os.fsync, no_sync
    try:
        filled = FileStore(root)
        rng = np.random.default_rng(0)

        def cell(m: int, c: int) -> Cell:
            return Cell(
                {"name": f"model{m:03}", "digest": f"m{m}"},
                {"name": "imagenet", "digest": "d"},
                {"corruption": f"corruption{c // 5:02}", "severity": c % 5 + 1},
            )

        def rows_of(rows: int) -> Any:
            return predictions(
                [f"val/{i:05}" for i in range(rows)],
                rng.integers(0, 1000, rows),
                rng.normal(0, 2, (rows, 1000)),
            )

        small, large = rows_of(options.rows), rows_of(options.full_rows)
        made = timed(
            lambda: [
                filled.write(cell(m, c), 0, large if m < 2 and c == 0 else small)
                for m in range(options.models)
                for c in range(options.conditions)
            ]
        )
        size = sum(path.stat().st_size for path in root.rglob("*.parquet")) / 2**30
        cells = options.models * options.conditions
        record("store", size, "GB")
        print(f"{cells} cells, one file each, {size:.2f} GB, written in {made:.0f} s")
        leaders = "select model, avg(accuracy) as a from cells group by model order by a desc limit 10"
        paired = """
            select sum((a.top[1] = a.label)::int) as a, sum((b.top[1] = b.label)::int) as b,
                sum((a.top[1] = a.label and b.top[1] <> b.label)::int) as only_a
            from predictions a join predictions b using (id)
            where a.model = 'model000' and b.model = 'model001'
                and a.condition = b.condition and a.condition = 'imagenet_corruption00@1'
        """
        work: dict[str, Callable[[], Any]] = {
            "listing": filled.listing,
            "leaderboard, first (reads footers)": lambda: query(filled, leaders),
            "leaderboard, again": lambda: query(filled, leaders),
            f"paired comparison of {options.full_rows} images in SQL": lambda: query(filled, paired),
            "the two cells in Python": lambda: (filled.read(cell(0, 0)), filled.read(cell(1, 0))),
        }
        for name, step in work.items():
            print(f"{name:45} {record(name, timed(step), 's'):6.2f} s")
    finally:
        os.fsync = fsync
        shutil.rmtree(root)
