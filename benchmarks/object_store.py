"""How long it takes to see what a store in S3 holds: a server on this machine, 200 × 200 cells.

python benchmarks/object_store.py [--models 200] [--conditions 200] [--store s3://bucket/place]

Without `--store`, a moto server is started in a process of its own. Cells are written through the public
store. The index is made by the first question; what is measured is a new process that asks the same, and the
command `beaufort query`. Then the same with an index that lacks a hundred cells.

Most of a listing is then the processor time of moto. So the bare requests of the client of S3 are measured
beside it, and the same questions again with listings that somebody else answers, each page after a pause.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.plain_lister import plain_lister

ASK = """
import sys, time
import duckdb, s3fs
from beaufort.store import FileStore, query
begin = time.perf_counter()
store = FileStore(sys.argv[1])
listed = len(store.listing())
middle = time.perf_counter()
cpu = time.process_time()
rows = query(FileStore(sys.argv[1]), "select * from cells").num_rows
print(listed, rows, middle - begin, time.perf_counter() - middle, time.process_time() - cpu)
"""
BARE = """
import sys, time
import boto3
bucket, _, prefix = sys.argv[1].removeprefix("s3://").partition("/")
client, then, files = boto3.client("s3"), {}, 0
begin = time.perf_counter()
while True:
    page = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/predictions/", **then)
    files += len(page.get("Contents", ()))
    if not page["IsTruncated"]:
        break
    then = {"ContinuationToken": page["NextContinuationToken"]}
print(files, time.perf_counter() - begin)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--conditions", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--pause", type=float, default=0.1, help="seconds before a page of a listing, of S3's"
    )
    parser.add_argument("--store", help="a place in a bucket that exists; nothing is deleted afterwards")
    given = parser.parse_args()
    with contextlib.nullcontext(given.store) if given.store else server() as place:
        measure(place, given.models, given.conditions, given.repeats)
        if not given.store:
            measure_plain(place, given.repeats, given.pause)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A place in a bucket of a server on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        import s3fs

        for _ in range(100):
            with contextlib.suppress(Exception):
                s3fs.S3FileSystem().mkdir("bench")
                break
            time.sleep(0.2)
        yield "s3://bench/store"
    finally:
        process.kill()
        process.wait()


def measure(place: str, models: int, conditions: int, repeats: int) -> None:
    begin = time.perf_counter()
    fill(place, range(models), conditions)
    wrote, cells = time.perf_counter() - begin, models * conditions
    print(f"{cells:,} cells written in {wrote:.0f} s, {1e3 * wrote / cells:.1f} ms each")
    print(f"first question, which makes the index: {asked(place)[3]:.1f} s")
    answers = [asked(place) for _ in range(repeats)]
    listed, told = (median(one[which] for one in answers) for which in (2, 3))
    print(f"listing alone, new process: {listed:.2f} s for {answers[0][0]:,.0f} cells")
    print(f"all cells, new process: {told:.2f} s for {answers[0][1]:,.0f} cells")
    files, seconds = output_of(BARE, place)
    print(f"bare requests of boto3, page after page: {seconds:.2f} s for {files:,.0f} files")
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "beaufort", "store", "ls", place, "--json"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    print(f"`beaufort query`, with start of Python: {time.perf_counter() - begin:.2f} s")
    fill(place, range(models, models + 1), min(100, conditions))
    found = asked(place)
    print(f"all cells with an index that is old: {found[3]:.2f} s for {found[1]:,.0f} cells")


def measure_plain(place: str, repeats: int, pause: float) -> None:
    """The same questions with listings that cost the server nothing, and a pause for each page."""
    from beaufort.store import FileStore

    below = place.removeprefix("s3://").partition("/")[2]
    files = {f"{below}/{path}": state for path, state in FileStore(place).disk.files(".").items()}
    behind = os.environ["AWS_ENDPOINT_URL"]
    with plain_lister(behind.removeprefix("http://"), files, pause) as address:
        os.environ["AWS_ENDPOINT_URL"] = address
        answers = [asked(place) for _ in range(repeats)]
        os.environ["AWS_ENDPOINT_URL"] = behind
    listed, told, cpu = (median(one[which] for one in answers) for which in (2, 3, 4))
    print(
        f"with listings from memory, {pause:g} s a page: {listed:.2f} s for the listing alone, {told:.2f} s "
        f"for all {answers[0][1]:,.0f} cells (target ≤ 3), {cpu:.2f} s of processor time"
    )


def asked(place: str) -> tuple[float, ...]:
    """Cells listed, cells answered, the seconds that each took, and processor time, in a new process."""
    return output_of(ASK, place)


def output_of(program: str, place: str) -> tuple[float, ...]:
    done = subprocess.run(
        [sys.executable, "-c", program, place], check=True, stdout=subprocess.PIPE, text=True
    )
    return tuple(map(float, done.stdout.split()))


def fill(place: str, models: range, conditions: int) -> None:
    from beaufort.store import Cell, FileStore, predictions

    store = FileStore(place)
    logits = np.random.default_rng(0).normal(size=(2, 10)).astype(np.float32)
    table = predictions(["a", "b"], np.array([1, 2]), logits)

    def write(model: int) -> None:
        for number in range(conditions):
            store.write(
                Cell(
                    {"name": f"model-{model:03}", "digest": str(model)},
                    {"name": "digits", "digest": "x"},
                    {"corruption": f"corruption-{number // 5:02}", "severity": number % 5 + 1},
                ),
                0,
                table,
            )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, models))


if __name__ == "__main__":
    main()
