"""Measure the cost of running on Ray: scheduling, scaling with workers, and the driver.

python -m benchmarks cluster overhead    # blocks per second, with a model that only returns constants
python -m benchmarks cluster scaling     # two workers against one, ONNX models on one thread each
python -m benchmarks cluster busy        # utilization of workers, with a model that sleeps
python -m benchmarks cluster memory      # memory of the driver for 40,000 cells of 50 blocks
python -m benchmarks cluster all

All parts except `memory` run the command `beaufort run --engine ray --json` and observe its process. `memory`
plans such a job as the command does and replaces the workers by simulated ones, because two million blocks
would take hours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import record

MODELS = """
import time
import numpy as np
from beaufort.evaluation import RunOptions
from beaufort.models import as_model

def _model(name, seconds=0.0):
    logits = np.random.default_rng(0).normal(0, 1, (1000, 10)).astype(np.float32)
    def predict(images):
        if seconds:
            time.sleep(seconds * len(images))
        return logits[: len(images)]
    return as_model(predict, name=name, classes=10, version=name)

def sleeping():
    return _model("sleeping", 0.001)

def __getattr__(name):
    if not name.startswith("quick"):
        raise AttributeError(name)
    return lambda: _model(name)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {"overhead": overhead, "scaling": scaling, "busy": busy, "memory": memory}
    parser.add_argument("part", choices=[*parts, "all"])
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the work; 0.1 for a quick look")
    parser.add_argument("--folder", help="directory for data and stores (default: a temporary one)")
    options = parser.parse_args()
    for name in parts if options.part == "all" else [options.part]:
        print(f"{name}: load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
        with tempfile.TemporaryDirectory(dir=options.folder) as folder, contextlib.chdir(folder):
            parts[name](options.scale)


@dataclass(frozen=True)
class FinishedRun:
    """Measurements of a finished command."""

    seconds: float
    cpu: float
    """CPU seconds of the process of the driver."""
    workers_cpu: float
    """CPU seconds of all workers."""
    ray_cpu: float
    """CPU seconds of the other processes of Ray that the driver started."""
    peak: float
    """Peak memory of the driver in GB."""
    summary: dict[str, Any]
    """Its JSON output."""

    @property
    def rate(self) -> float:
        """Predictions per second of all nodes, from their first report on."""
        return sum(float(node["predictions_per_second"]) for node in self.summary["nodes"].values())

    @property
    def work_seconds(self) -> float:
        return max(float(node["seconds"]) for node in self.summary["nodes"].values())


def run(*arguments: str) -> FinishedRun:
    """Run the command and observe its processes until it ends."""
    command = [sys.executable, "-m", "beaufort", "run", "--json", *arguments]
    start = time.perf_counter()
    others: dict[int, tuple[bool, float]] = {}
    cpu = peak = 0.0
    with Path("summary.json").open("w+") as output, subprocess.Popen(command, stdout=output) as process:
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError, KeyError):
                cpu, peak = _state(process.pid)
            for pid, (name, seconds_there) in _below(process.pid).items():
                works = name.startswith("ray::Worker") or others.get(pid, (False, 0.0))[0]
                others[pid] = works, seconds_there
            time.sleep(1.0)  # reading /proc takes milliseconds of CPU time
        seconds = time.perf_counter() - start
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise SystemExit(f"the command failed with exit code {process.returncode}")
    workers_cpu = sum(each for works, each in others.values() if works)
    ray_cpu = sum(each for works, each in others.values() if not works)
    return FinishedRun(seconds, cpu, workers_cpu, ray_cpu, peak, json.loads(text))


def _state(pid: int) -> tuple[float, float]:
    _, cpu = _parent_and_cpu(pid)
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return cpu, int(lines["VmHWM"].split()[0]) / 2**20


def _parent_and_cpu(pid: int) -> tuple[int, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> dict[int, tuple[str, float]]:
    """Return name and CPU seconds of all descendants of a process."""
    found: dict[int, tuple[int, str, float]] = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            one = int(folder.name)
            parent, cpu = _parent_and_cpu(one)
            found[one] = parent, (folder / "cmdline").read_bytes().split(b"\0")[0].decode(), cpu
    below, before = {pid}, 0
    while len(below) > before:
        before = len(below)
        below |= {one for one, (parent, _, _) in found.items() if parent in below}
    return {one: found[one][1:] for one in below - {pid} if one in found}


def make_data(images: int, side: int) -> None:
    Path("data").mkdir(exist_ok=True)
    Path("bench_models.py").write_text(MODELS)
    pixels = np.random.default_rng(0).integers(0, 256, (images, side, side, 3), np.uint8)
    np.save("data/images.npy", pixels)
    np.save("data/labels.npy", np.arange(images) % 10)


def _models(names: Sequence[str]) -> list[str]:
    return [part for name in names for part in ("--model", name)]


def overhead(scale: float) -> None:
    """Measure how many blocks of 1,000 predictions per second one driver schedules, all on one machine."""
    make_data(50_000, 16)
    names = [f"python:bench_models:quick{i}" for i in range(max(1, round(20 * scale)))]
    for workers in (1, 2):
        ran = run(
            *_models(names),
            *("--data", "data", "--corruption", "brightness", "--severity", "1-3", "--labels", "identity"),
            *("--engine", f"ray:workers={workers}", "--store", f"kept{workers}", "--batch-size", "1000"),
        )
        blocks = sum(result["images"] for result in ran.summary["results"]) / 1000
        record(f"{workers} workers, throughput", ran.rate / 1000, "blocks/s", "≥ 150")
        record(f"{workers} workers, driver", 1000 * ran.cpu / blocks, "ms CPU/block")
        record(f"{workers} workers, workers", 1000 * ran.workers_cpu / blocks, "ms CPU/block")
        record(f"{workers} workers, Ray", 1000 * ran.ray_cpu / blocks, "ms CPU/block")
        print(
            f"  {workers} workers: {blocks:.0f} blocks in {ran.work_seconds:.1f} s of work "
            f"({ran.seconds:.1f} s with startup): {ran.rate / 1000:.0f} blocks/s (target ≥ 150); CPU time "
            f"per block, startup included: driver {1000 * ran.cpu / blocks:.2f} ms, workers "
            f"{1000 * ran.workers_cpu / blocks:.2f} ms, other processes of Ray "
            f"{1000 * ran.ray_cpu / blocks:.2f} ms; memory of the driver {ran.peak:.2f} GB"
        )


def scaling(scale: float) -> None:
    """Compare the throughput of two workers with that of one, for models that keep a CPU busy."""
    for width, images in ((32, 16_000), (64, 5_000)):
        make_data(max(1000, round(images * scale) // 1000 * 1000), 32)
        million = write_network(Path("network.onnx"), width) / 1e6
        one, two = (_rate_of(workers, f"kept{width}-{workers}") for workers in (1, 2))
        name = f"two workers over one, {million:.0f} million multiplications per image"
        print(f"  {name}: {record(name, two / one, '×', '≥ 1.8'):.2f} × (target ≥ 1.8)")


def _rate_of(workers: int, store: str) -> float:
    """Return the predictions per second of a number of workers."""
    ran = run(
        *("--model", "network.onnx", "--set", "range=0..1", "--data", "data", "--labels", "identity"),
        *("--corruption", "brightness,contrast", "--severity", "1-4", "--config", "prepare=none"),
        *("--engine", f"ray:workers={workers}", "--store", store),
    )
    predictions = sum(result["images"] for result in ran.summary["results"])
    busy = min(float(node["busy"]) for node in ran.summary["nodes"].values())
    print(
        f"  {workers} workers: {ran.rate:.0f} predictions/s, {ran.work_seconds:.0f} s of work, "
        f"{ran.seconds:.0f} s in total; workers were busy {busy:.1%} of the time and used "
        f"{ran.workers_cpu / ran.work_seconds:.2f} CPUs (startup included), "
        f"{1e6 * ran.workers_cpu / predictions:.0f} µs per prediction; the driver and Ray used "
        f"{(ran.cpu + ran.ray_cpu) / ran.seconds:.2f}"
    )
    return ran.rate


def write_network(path: Path, width: int) -> int:
    """Write three convolutions with random weights; return the multiplications per image."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, before, channels = [], [], "images", 3
    multiplications = 0
    for number in range(3):
        multiplications += 32 * 32 * 9 * channels * width
        weights.append(
            numpy_helper.from_array(
                rng.normal(0, 0.1, (width, channels, 3, 3)).astype(np.float32), f"w{number}"
            )
        )
        nodes.append(helper.make_node("Conv", [before, f"w{number}"], [f"c{number}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        before, channels = f"r{number}", width
    nodes.append(helper.make_node("GlobalAveragePool", [before], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    weights.append(numpy_helper.from_array(rng.normal(0, 1, (channels, 10)).astype(np.float32), "last"))
    nodes.append(helper.make_node("MatMul", ["flat", "last"], ["logits"]))
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10])
    graph = helper.make_graph(nodes, "network", [given], [made], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return multiplications


def busy(scale: float) -> None:
    """Measure the utilization of workers with a model that sleeps, as if a GPU did the work."""
    make_data(20_000, 16)
    workers = 4
    ran = run(
        *("--model", "python:bench_models:sleeping", "--data", "data", "--labels", "identity"),
        *("--corruption", "brightness,contrast", "--severity", f"1-{max(1, round(5 * scale))}"),
        *("--engine", f"ray:workers={workers},cpus=0.25", "--store", "kept"),
    )
    slept = sum(result["images"] for result in ran.summary["results"]) / 1000
    busy_fraction = min(float(node["busy"]) for node in ran.summary["nodes"].values())
    used = record("utilization", 100 * slept / workers / ran.work_seconds, "%", "≥ 95")
    print(
        f"  {workers} workers slept {slept:.0f} s in {ran.work_seconds:.1f} s: {used:.1f} % of their time "
        f"(target ≥ 95 %); they had work to do in {busy_fraction:.1%} of it"
    )


def memory(scale: float) -> None:
    """Measure the peak memory of the driver over a whole job with simulated workers."""
    cells = round(40_000 * scale)
    program = f"import benchmarks.cluster as c; c.simulate({cells})"
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), str(root / "src")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout, end="")
    record("driver memory", float(done.stdout.rpartition("peak memory ")[2].split()[0]), "GB", "≤ 1.5")


def simulate(cells: int, images: int = 50_000) -> None:
    from beaufort.data import from_arrays
    from beaufort.evaluation import RayOptions, RunOptions, execution
    from beaufort.models import as_model
    from beaufort.results import evaluate
    from beaufort.suites import get_suite
    from benchmarks.simulated_ray import SimulatedRay, SimulatedStore

    suite = get_suite("cifar10-c-and-bar")
    count = -(-cells // len(suite.conditions()))
    pixels = np.arange(images * 12, dtype=np.uint32).view(np.uint8).reshape(-1, 4, 4, 3)
    data = from_arrays("toys", pixels, np.arange(images) % 10)
    models = [
        as_model(_no_predictions, name=f"model{number}", classes=10, version=str(number))
        for number in range(count)
    ]
    store = SimulatedStore()
    execution.RayEngine = SimulatedRay  # type: ignore[attr-defined,assignment]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    found = evaluate(
        models, suite, data, store, engine=RayOptions(), options=RunOptions(prepare="none"), labels="identity"
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    blocks = len(found.results) * -(-images // 1000)
    print(
        f"  {len(found.results):,} cells, {blocks:,} blocks, {SimulatedRay.workers} simulated workers: "
        f"{seconds:.0f} s; peak memory {peak:.2f} GB (target ≤ 1.5), {before:.2f} GB before planning"
    )


def _no_predictions(images: np.ndarray) -> np.ndarray:
    return np.zeros((len(images), 10), np.float32)
