"""Compare the speed of the corruptions with `imagecorruptions` 1.1.2 in one interleaved run.

python -m benchmarks corruptions [--repeats 30] [--size 224] [--severity 3]

The README in this directory explains what is measured and why.
"""

# ruff: noqa: E402  (the number of threads is set before anything that has threads is imported)
from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import cv2
import numpy as np

from beaufort import corrupt, get_corruption_names
from beaufort.corruptions import corruptions
from benchmarks.recording import record

ROOT = Path(__file__).resolve().parent.parent
PEER = "imagecorruptions==1.1.2"
PEER_GLASS_MS = 11.1
"""Compiled glass blur of the repository of imagecorruptions; the loop of its release takes 870 ms."""

WARM_UP = 20
BURST = 10
"""Calls per turn; the first one, with cold caches, does not count."""
BATCH = 256
LEAST = 3.0
"""Smallest acceptable ratio of a corruption."""
DIGITS = 10_000
STARTS = ("gaussian_noise", "fog", "spatter", "elastic_transform", "brightness", "frost")

WORKER = r"""
import json, os, sys, time, types, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.ndimage, skimage.filters

# Names and options that newer libraries removed or renamed since the release of 2021.
if not hasattr(np, "float_"):
    np.float_ = np.float64
blur = skimage.filters.gaussian
def gaussian(image, sigma=1, *, multichannel=False, **options):
    return blur(image, sigma, channel_axis=-1 if multichannel else None, **options)
skimage.filters.gaussian = gaussian
try:
    import scipy.ndimage.interpolation
except ImportError:
    sys.modules["scipy.ndimage.interpolation"] = scipy.ndimage
try:
    import pkg_resources
except ImportError:
    import importlib.util
    folder = os.path.dirname(importlib.util.find_spec("imagecorruptions").origin)
    found = types.ModuleType("pkg_resources")
    found.resource_filename = lambda package, name: os.path.join(folder, name)
    sys.modules["pkg_resources"] = found

import cv2, imagecorruptions
from importlib.metadata import version
cv2.setNumThreads(1)
image = np.load(sys.argv[1])
packages = ("imagecorruptions", "numpy", "scipy", "scikit-image", "opencv-python", "pillow")
print(json.dumps({name: version(name) for name in packages}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    taken = []
    for _ in range(order["calls"]):
        start = time.process_time_ns()
        imagecorruptions.corrupt(image, order["severity"], order["name"])
        taken.append(time.process_time_ns() - start)
    print(json.dumps(taken), flush=True)
"""

ASTRONAUT = """
import sys
import numpy as np
from PIL import Image
from skimage import data
side = int(sys.argv[2])
np.save(sys.argv[1], np.asarray(Image.fromarray(data.astronaut()).resize((side, side), Image.LANCZOS)))
"""

FIRST_CALL = """
import json, sys, time
begin = time.perf_counter()
from beaufort import corrupt
imported = time.perf_counter()
import numpy
image = numpy.load(sys.argv[1])
start = time.perf_counter()
corrupt(image, sys.argv[2], 3, image_id=0)
end = time.perf_counter()
print(json.dumps({"first_s": end - start, "total_s": end - start + imported - begin}))
"""


@dataclass(frozen=True)
class Row:
    """A corruption: milliseconds of CPU time on one thread."""

    name: str
    ours_ms: float
    peer_ms: float
    live: bool
    """Whether the time of the peer was measured in this run."""

    @property
    def ratio(self) -> float:
        return self.peer_ms / self.ours_ms


@dataclass(frozen=True)
class Goal:
    """A headline number and its target."""

    what: str
    value: float
    target: float
    unit: str = ""
    at_least: bool = True

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def sign(self) -> str:
        return "≥" if self.at_least else "≤"

    def __str__(self) -> str:
        verdict = "met" if self.met else "**missed**"
        target = f"{self.sign} {self.target:g}{self.unit}"
        return f"| {self.what} | {self.value:.3g}{self.unit} | {target} | {verdict} |"


@dataclass(frozen=True)
class Results:
    """All measurements."""

    rows: list[Row]
    threads: dict[str, tuple[float, float]]
    """Wall time of a batch in seconds, on one thread and on two."""
    digits: dict[str, float]
    """Milliseconds of CPU time per digit."""
    starts: dict[str, dict[str, dict[str, float]]]
    """Wall time in seconds by corruption, `warm` or `empty` kernel cache, without or with the import."""
    facts: dict[str, Any]


def main() -> None:
    """Measure and print."""
    options = parse()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        image_path = Path(folder) / "image.npy"
        peer_python = peer_environment(ROOT / ".venv-bench")
        save_image(peer_python, image_path, options.size)
        image = np.load(image_path)
        with peer(peer_python, image_path) as (ask, peer_versions):
            rows = beside_the_peer(image, ask, options.severity, options.repeats)
        threads = one_and_two_threads(image, options.severity, options.batch_repeats)
        digits = every_digit(options.batch_repeats)
        starts = {} if options.quick else first_calls(image_path, Path(folder))
    facts = machine(peer_versions) | {"size": options.size, "severity": options.severity}
    results = Results(rows, threads, digits, starts, facts)
    for row in rows:
        record(row.name, row.ours_ms, "ms")
        record(f"{row.name}, imagecorruptions / Beaufort", row.ratio, "×", f"≥ {LEAST:g}")
    for name, milliseconds in digits.items():
        record(f"MNIST-C, {name}", 1000 * milliseconds, "µs/digit")
    for goal in headline(results):
        record(goal.what, goal.value, goal.unit.strip(), f"{goal.sign} {goal.target:g}")
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=30, help="turns of each corruption on either side")
    parser.add_argument("--size", type=int, default=224, help="side of the image in pixels")
    parser.add_argument("--severity", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--quick", action="store_true", help="three repeats, no new processes")
    options = parser.parse_args()
    if options.quick:
        options.repeats = min(options.repeats, 3)
    options.batch_repeats = max(1, options.repeats // 6)
    return options


def peer_environment(folder: Path) -> Path:
    """Return the Python of an environment with the peer, created if necessary.

    The peer needs its own environment because it depends on another build of OpenCV.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    check = [str(python), "-c", "import importlib.metadata as m; m.version('imagecorruptions')"]
    if not python.exists() or subprocess.run(check, capture_output=True, check=False).returncode:
        print(f"creating {folder.name} with {PEER}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, PEER], check=True)
    return python


def save_image(peer_python: Path, path: Path, side: int) -> None:
    """Save the astronaut of scikit-image, or a synthetic scene if it is not available."""
    command = [str(peer_python), "-c", ASTRONAUT, str(path), str(side)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return
    y, x = np.mgrid[:side, :side] / side
    sun = 120 * (np.hypot(x - 0.7, y - 0.25) < 0.12)
    hills = 70 * (y > 0.6 + 0.1 * np.sin(9 * x)) - 40 * (y > 0.75 + 0.05 * np.cos(14 * x))
    layers = [60 + 80 * y + sun + hills * weight for weight in (-0.6, 0.4, -0.9)]
    grain = np.random.default_rng(0).normal(0, 6, (side, side, 3))
    np.save(path, np.clip(np.stack(layers, axis=-1) + grain, 0, 255).astype(np.uint8))


@contextmanager
def peer(
    python: Path, image_path: Path
) -> Iterator[tuple[Callable[[str, int], list[float]], dict[str, str]]]:
    """Start a process that times the peer; yield a function from name and severity to times, and versions."""
    process = subprocess.Popen(
        [str(python), "-c", WORKER, str(image_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    to_peer, from_peer = process.stdin, process.stdout

    def reply() -> Any:
        line = from_peer.readline()
        if not line:
            raise SystemExit("the process of the peer failed; its message is above")
        return json.loads(line)

    def call(name: str, severity: int) -> list[float]:
        to_peer.write(json.dumps({"name": name, "severity": severity, "calls": BURST}) + "\n")
        to_peer.flush()
        return [taken / 1e6 for taken in reply()[1:]]

    try:
        yield call, reply()
    finally:
        to_peer.close()
        process.wait()


def beside_the_peer(
    image: np.ndarray, call: Callable[[str, int], list[float]], severity: int, repeats: int
) -> list[Row]:
    """Time both on one image in alternating turns, so that a busy machine slows both."""
    names = get_corruption_names("all")
    live = [name for name in names if name != "glass_blur"]
    for name in names:  # compiles kernels, builds tables and reads all textures
        for i in range(WARM_UP):
            corrupt(image, name, severity, image_id=i)
    for name in live:
        call(name, severity)
    ours: dict[str, list[float]] = {name: [] for name in names}
    theirs: dict[str, list[float]] = {name: [] for name in live}
    for turn in range(repeats):
        for name in names:
            ours[name] += our_turn(image, name, severity, turn)
            if name in theirs:
                theirs[name] += call(name, severity)
    return [
        Row(
            name,
            median(ours[name]),
            median(theirs[name]) if name in theirs else PEER_GLASS_MS,
            name in theirs,
        )
        for name in names
    ]


def our_turn(image: np.ndarray, name: str, severity: int, turn: int) -> list[float]:
    """Return milliseconds of CPU time for each call of a turn except the first."""
    taken = []
    for call in range(BURST):
        start = time.process_time_ns()
        corrupt(image, name, severity, image_id=turn * BURST + call)
        taken.append((time.process_time_ns() - start) / 1e6)
    return taken[1:]


def one_and_two_threads(image: np.ndarray, severity: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Return the wall time of a batch in seconds, on one thread and on two, by corruption."""
    batch = np.stack([np.roll(image, 3 * i, axis=1) for i in range(BATCH)])
    seconds = {}
    for name in get_corruption_names("all"):
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for jobs, measured in times.items():
                start = time.perf_counter()
                corruptions[name](batch, severity, ids=range(BATCH), jobs=jobs)
                measured.append(time.perf_counter() - start)
        seconds[name] = (median(times[1]), median(times[2]))
    return seconds


def every_digit(repeats: int) -> dict[str, float]:
    """Return milliseconds of CPU time per digit for each corruption of MNIST-C."""
    digits = read_digits()
    milliseconds = {}
    for name in get_corruption_names("mnist-c"):
        corruptions[name](digits[:8], scale="mnist", ids=range(8))
        times = []
        for _ in range(repeats):
            start = time.process_time_ns()
            corruptions[name](digits, scale="mnist", ids=range(len(digits)))
            times.append((time.process_time_ns() - start) / 1e6 / len(digits))
        milliseconds[name] = median(times)
    return milliseconds


def read_digits() -> np.ndarray:
    """Return 10,000 digits of the idx file in BEAUFORT_MNIST, or as many synthetic strokes."""
    if path := os.environ.get("BEAUFORT_MNIST"):
        stored = np.fromfile(path, np.uint8, offset=16)
        return stored.reshape(-1, 28, 28, 1)[:DIGITS]
    rng = np.random.default_rng(0)
    digits = np.zeros((DIGITS, 28, 28, 1), np.uint8)
    for digit in digits:
        corners = rng.integers(6 * 16, 22 * 16, (4, 2)).astype(np.int32)  # sixteenths of a pixel
        cv2.polylines(digit, [corners], False, 255, thickness=2, lineType=cv2.LINE_AA, shift=4)
    return digits


def first_calls(image_path: Path, folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Return seconds of the first call in a new process, with an empty and with a filled kernel cache."""
    measured = {}
    for name in STARTS:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / f"kernels-{name}")}

        def start(name: str = name, environment: Mapping[str, str] = environment) -> dict[str, float]:
            command = [sys.executable, "-c", FIRST_CALL, str(image_path), name]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            return dict(json.loads(done.stdout))

        empty = start()
        warm = [start() for _ in range(3)]
        middle = {key: median(one[key] for one in warm) for key in empty}
        measured[name] = {"warm": middle, "empty": empty}
    return measured


def headline(results: Results) -> list[Goal]:
    """Return the numbers with a target."""
    rows, starts = results.rows, results.starts
    least = min(rows, key=lambda row: row.ratio)
    goals = [
        Goal(
            "geometric mean of the 18 live ratios", geometric_mean(r.ratio for r in rows if r.live), 24, "×"
        ),
        Goal("the same with glass blur (constant), 19", geometric_mean(r.ratio for r in rows), 24, "×"),
        Goal(f"smallest ratio: {least.name}", least.ratio, LEAST, "×"),
        Goal("sum of our 19", sum(row.ours_ms for row in rows), 5.5, " ms", at_least=False),
        Goal("two threads on batches", speedup(results.threads.values()), 1.9, "×"),
        Goal(
            "all 15 corruptions of MNIST-C, per digit",
            sum(results.digits.values()),
            0.2,
            " ms",
            at_least=False,
        ),
    ]
    for kind, target in (("warm", 0.3), ("empty", 5)):
        if starts:
            worst = max(starts, key=lambda name: starts[name][kind]["first_s"])
            what = f"first call, {kind} kernel cache, worst: {worst}"
            goals.append(Goal(what, starts[worst][kind]["first_s"], target, " s", at_least=False))
    return goals


def speedup(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the time on one thread over the time on two."""
    one, two = zip(*pairs, strict=True)
    return float(sum(one) / sum(two))


def machine(peer_versions: Mapping[str, str]) -> dict[str, Any]:
    """Return what the numbers depend on besides the code."""
    packages = ("beaufort", "numpy", "numba", "opencv-python-headless", "pillow")
    return {
        "ours": {name: version(name) for name in packages},
        "peer": dict(peer_versions),
        "digits": "BEAUFORT_MNIST" if os.environ.get("BEAUFORT_MNIST") else "synthetic",
    }


def markdown(results: Results) -> str:
    """Return all results as Markdown tables."""
    facts, goals = results.facts, headline(results)
    lines = ["| what | measured | target | |", "|---|---:|---:|---|", *map(str, goals), ""]
    lines += [
        f"One {facts['size']}×{facts['size']}×3 image at severity {facts['severity']}: "
        f"milliseconds of CPU time, one thread, medians. Two threads: wall time of a batch of {BATCH}.",
        "",
        "| corruption | Beaufort | imagecorruptions | ratio | target | two threads |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in results.rows:
        note = "" if row.live else " (constant)"
        lines.append(
            f"| {row.name} | {row.ours_ms:.3f} | {row.peer_ms:.3g}{note} | {row.ratio:.1f}× | "
            f"≥ {LEAST:g}× | {speedup([results.threads[row.name]]):.2f}× |"
        )
    lines += ["", f"MNIST-C, µs of CPU time per digit ({facts['digits']}), {DIGITS:,} in one call:", ""]
    lines += ["| corruption | µs |", "|---|---:|"]
    lines += [f"| {name} | {1000 * ms:.2f} |" for name, ms in results.digits.items()]
    if results.starts:
        lines += ["", "First call in a new process, seconds (in parentheses with the import):", ""]
        lines += ["| corruption | warm kernel cache | empty kernel cache |", "|---|---:|---:|"]
        for name, kinds in results.starts.items():
            cells = [f"{kinds[k]['first_s']:.2f} ({kinds[k]['total_s']:.2f})" for k in ("warm", "empty")]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    versions = "; ".join(
        f"{side}: " + ", ".join(f"{name} {number}" for name, number in facts[side].items())
        for side in ("ours", "peer")
    )
    lines += ["", f"{versions}.", ""]
    return "\n".join(lines)
