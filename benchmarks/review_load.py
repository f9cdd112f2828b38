"""Measure the response times of the review server while twenty reviewers vote at once.

python -m benchmarks review-load [--images 500] [--think 0.5] [--seconds 20]

Repeats the requests of a browser: send a vote, receive the next card, load its image. Each reviewer pauses
between votes; `--think 0` measures the maximum throughput.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx2
import numpy as np
from PIL import Image

from beaufort.mining.review import ReviewRules, create_review, invite, open_review
from benchmarks.recording import record


def make_list(folder: Path, count: int) -> Path:
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (224, 224, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png", compress_level=1)
    lines = ["file,category", *(f"{number}.png,chair" for number in range(count))]
    (folder / "list.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "list.csv"


def review(url: str, token: str, think_s: float, end: float, waits: dict[str, list[float]]) -> None:
    def timed(kind: str, method: str, path: str, **options: object) -> str:
        start = time.perf_counter()
        response = client.request(method, path, **options)  # type: ignore[arg-type]
        waits[kind].append(time.perf_counter() - start)
        response.raise_for_status()
        return response.text if kind == "vote" else ""

    def fields(text: str) -> dict[str, str]:
        return dict(re.findall(r'name="(form|showing)" value="([^"]*)"', text))

    with httpx2.Client(base_url=url, follow_redirects=True, timeout=60) as client:
        text = client.post("/begin", data=fields(client.get(f"/r/{token}").text)).text
        client.headers["HX-Request"] = "true"
        while 'id="vote"' in text and time.monotonic() < end:
            timed("image", "GET", re.findall(r'src="(/card/[^"]+)"', text)[0])
            time.sleep(think_s)
            reply = {"recognizable": "yes", "usable": "yes", "single": "no"}
            text = timed("vote", "POST", "/vote", data={**fields(text), **reply})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--reviewers", type=int, default=20)
    parser.add_argument("--think", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "load.review"
        create_review(file, make_list(folder, options.images), rules=ReviewRules(votes=20, min_right=0))
        opened = open_review(file)
        tokens = [invite(opened, f"person {number}") for number in range(options.reviewers)]
        opened.close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "beaufort", "review", "serve", str(file), "--port", str(port)]
        server = subprocess.Popen(command)
        try:
            run(f"http://127.0.0.1:{port}", tokens, options.think, options.seconds)
        finally:
            server.terminate()
            server.wait()


def run(url: str, tokens: list[str], think_s: float, seconds: float) -> None:
    while True:
        try:
            httpx2.get(url)
            break
        except httpx2.TransportError:
            time.sleep(0.1)
    waits: dict[str, list[float]] = {"vote": [], "image": []}
    end = time.monotonic() + seconds
    people = [threading.Thread(target=review, args=(url, token, think_s, end, waits)) for token in tokens]
    for one in people:
        one.start()
    for one in people:
        one.join()
    for kind, taken in waits.items():
        p50, p95 = np.quantile(taken, [0.5, 0.95]) * 1000
        rate = len(taken) / seconds
        record(f"{kind}, p50", p50, "ms")
        record(f"{kind}, p95", p95, "ms")
        print(f"{kind:8} {len(taken):5} requests, {rate:5.1f}/s, p50 {p50:.0f} ms, p95 {p95:.0f} ms")
