"""Time listing a store in S3 with 200 × 200 cells, on a server on this machine.

python -m benchmarks object-store [--models 200] [--conditions 200] [--store s3://bucket/place]

Without `--store`, a moto server is started. Cells are written through the public store. The first query
builds the index; measured are a new process with the same query, the command `beaufort results query`, and a
query after a hundred cells were added.

Most of that time is CPU time of moto. Therefore the bare requests of the S3 client are measured as well, and
the same queries with listings from a fast proxy, each page after a pause.
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
from statistics import median

import numpy as np

from benchmarks.fast_lister import fast_lister
from benchmarks.recording import record

QUERY = """
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
BARE_LISTING = """
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
    parser.add_argument("--pause", type=float, default=0.1, help="seconds before each page of a listing")
    parser.add_argument("--store", help="URL in an existing bucket; nothing is deleted afterwards")
    options = parser.parse_args()
    with contextlib.nullcontext(options.store) if options.store else server() as place:
        measure(place, options.models, options.conditions, options.repeats)
        if not options.store:
            measure_plain(place, options.repeats, options.pause)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server and yield a URL in a bucket."""
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
    print(f"first query, which builds the index: {timed_query(place)[3]:.1f} s")
    times = [timed_query(place) for _ in range(repeats)]
    listed, queried = (median(one[which] for one in times) for which in (2, 3))
    record("listing", listed, "s")
    record("query of all cells", queried, "s")
    print(f"listing alone, new process: {listed:.2f} s for {times[0][0]:,.0f} cells")
    print(f"query of all cells, new process: {queried:.2f} s for {times[0][1]:,.0f} cells")
    files, seconds = output_of(BARE_LISTING, place)
    print(f"bare requests of boto3: {seconds:.2f} s for {files:,.0f} files")
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "beaufort", "results", "query", "--store", place, "--json"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    print(f"`beaufort results query`, including the start of Python: {time.perf_counter() - begin:.2f} s")
    fill(place, range(models, models + 1), min(100, conditions))
    after = timed_query(place)
    print(f"query with an outdated index: {after[3]:.2f} s for {after[1]:,.0f} cells")


def measure_plain(place: str, repeats: int, pause: float) -> None:
    """Repeat the queries with listings from the fast proxy."""
    from beaufort.store import FileStore

    below = place.removeprefix("s3://").partition("/")[2]
    files = {f"{below}/{path}": state for path, state in FileStore(place).disk.files(".").items()}
    behind = os.environ["AWS_ENDPOINT_URL"]
    with fast_lister(behind.removeprefix("http://"), files, pause) as address:
        os.environ["AWS_ENDPOINT_URL"] = address
        times = [timed_query(place) for _ in range(repeats)]
        os.environ["AWS_ENDPOINT_URL"] = behind
    listed, queried, cpu = (median(one[which] for one in times) for which in (2, 3, 4))
    record("query of all cells, fast listings", queried, "s", "≤ 3")
    print(
        f"with fast listings, {pause:g} s per page: {listed:.2f} s for the listing alone, {queried:.2f} s "
        f"for a query of all {times[0][1]:,.0f} cells (target ≤ 3), {cpu:.2f} s of CPU time"
    )


def timed_query(place: str) -> tuple[float, ...]:
    """Return numbers of listed and queried cells, seconds of both, and CPU seconds, in a new process."""
    return output_of(QUERY, place)


def output_of(program: str, place: str) -> tuple[float, ...]:
    done = subprocess.run(
        [sys.executable, "-c", program, place], check=True, stdout=subprocess.PIPE, text=True
    )
    return tuple(map(float, done.stdout.split()))


def fill(place: str, models: range, conditions: int) -> None:
    from beaufort.evaluation import predictions
    from beaufort.store import Cell, FileStore

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
