"""What a run on Ray costs beside its work, how it grows with workers, and what its driver needs.

python benchmarks/cluster.py overhead        blocks a second, with a model that answers at once
python benchmarks/cluster.py scaling         two workers against one, with ONNX models on one thread each;
                                             four minutes
python benchmarks/cluster.py busy            the share of time in which workers work, with a model that sleeps
python benchmarks/cluster.py memory          of the driver, for 40,000 cells of 50 blocks
python benchmarks/cluster.py all

All but `memory` give the command `beaufort run --engine ray --json` and look at its process meanwhile.
`memory` plans such a job as the command does, and then lets pretended workers answer: two million blocks
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

MODELS = """
import time
import numpy as np
from beaufort.evaluation import RunOptions
from beaufort.models import as_model

def _made(name, seconds=0.0):
    answers = np.random.default_rng(0).normal(0, 1, (1000, 10)).astype(np.float32)
    def answer(images):
        if seconds:
            time.sleep(seconds * len(images))
        return answers[: len(images)]
    return as_model(answer, name=name, classes=10, version=name)

def sleeping():
    return _made("sleeping", 0.001)

def __getattr__(name):
    if not name.startswith("quick"):
        raise AttributeError(name)
    return lambda: _made(name)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {"overhead": overhead, "scaling": scaling, "busy": busy, "memory": memory}
    parser.add_argument("part", choices=[*parts, "all"])
    parser.add_argument("--scale", type=float, default=1.0, help="of the work; 0.1 for a quick look")
    parser.add_argument("--folder", help="where data and stores are put; a temporary one if not given")
    options = parser.parse_args()
    for name in parts if options.part == "all" else [options.part]:
        print(f"{name}: load of the machine before {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
        with tempfile.TemporaryDirectory(dir=options.folder) as folder, contextlib.chdir(folder):
            parts[name](options.scale)


@dataclass(frozen=True)
class Ran:
    """A command that came to its end."""

    seconds: float
    """From its start to its end."""
    cpu: float
    """Seconds of processor time of the driver's own process."""
    workers_cpu: float
    """Those of all workers together."""
    ray_cpu: float
    """Those of what Ray runs beside them, as far as the driver started it."""
    peak: float
    """GB of memory of the driver's process, at most."""
    told: dict[str, Any]
    """What it printed."""

    @property
    def rate(self) -> float:
        """Answers a second of all nodes, from their first report on."""
        return sum(float(node["answers_a_second"]) for node in self.told["nodes"].values())

    @property
    def work_seconds(self) -> float:
        return max(float(node["seconds"]) for node in self.told["nodes"].values())


def run(*arguments: str) -> Ran:
    """Give the command, and look at its process until it ends."""
    command = [sys.executable, "-m", "beaufort", "run", "--json", *arguments]
    start = time.perf_counter()
    others: dict[int, tuple[bool, float]] = {}
    cpu = peak = 0.0
    with Path("told.json").open("w+") as told, subprocess.Popen(command, stdout=told) as process:
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError, KeyError):
                cpu, peak = _state(process.pid)
            for pid, (name, seconds_there) in _below(process.pid).items():
                works = name.startswith("ray::Worker") or others.get(pid, (False, 0.0))[0]
                others[pid] = works, seconds_there
            time.sleep(1.0)  # a look takes some milliseconds of a processor that others need
        seconds = time.perf_counter() - start
        told.seek(0)
        text = told.read()
    if process.returncode:
        raise SystemExit(f"the command ended with {process.returncode}")
    workers_cpu = sum(each for works, each in others.values() if works)
    ray_cpu = sum(each for works, each in others.values() if not works)
    return Ran(seconds, cpu, workers_cpu, ray_cpu, peak, json.loads(text))


def _state(pid: int) -> tuple[float, float]:
    _, cpu = _parent_and_cpu(pid)
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return cpu, int(lines["VmHWM"].split()[0]) / 2**20


def _parent_and_cpu(pid: int) -> tuple[int, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> dict[int, tuple[str, float]]:
    """The processes that one started, and those that these did: names, and seconds of processor time."""
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
    """Blocks of 1,000 answers a second that one driver schedules, everything else on the same machine."""
    make_data(50_000, 16)
    names = [f"python:bench_models:quick{i}" for i in range(max(1, round(20 * scale)))]
    for workers in (1, 2):
        ran = run(
            *_models(names),
            *("--data", "data", "--corruption", "brightness", "--severity", "1-3", "--labels", "identity"),
            *("--engine", f"ray:workers={workers}", "--store", f"kept{workers}", "--batch-size", "1000"),
        )
        blocks = sum(result["images"] for result in ran.told["results"]) / 1000
        print(
            f"  {workers} workers: {blocks:.0f} blocks in {ran.work_seconds:.1f} s of work "
            f"({ran.seconds:.1f} s with the start): {ran.rate / 1000:.0f} blocks a second (target ≥ 150); "
            f"processor time for a block: {1000 * ran.cpu / blocks:.2f} ms of the driver, "
            f"{1000 * ran.workers_cpu / blocks:.2f} ms of workers, {1000 * ran.ray_cpu / blocks:.2f} ms of "
            f"Ray beside them, all with their start; {ran.peak:.2f} GB of the driver"
        )


def scaling(scale: float) -> None:
    """Answers a second of two workers over those of one, for models that keep a processor busy."""
    for width, images in ((32, 16_000), (64, 5_000)):
        make_data(max(1000, round(images * scale) // 1000 * 1000), 32)
        million = write_network(Path("network.onnx"), width) / 1e6
        one, two = (_rate_of(workers, f"kept{width}-{workers}") for workers in (1, 2))
        told = f"with {million:.0f} million multiplications an image"
        print(f"  two over one, {told}: {two / one:.2f} × (target ≥ 1.8)")


def _rate_of(workers: int, store: str) -> float:
    """Answers a second of some workers that ask the network."""
    ran = run(
        *("--model", "network.onnx", "--set", "range=0..1", "--data", "data", "--labels", "identity"),
        *("--corruption", "brightness,contrast", "--severity", "1-4", "--config", "prepare=none"),
        *("--engine", f"ray:workers={workers}", "--store", store),
    )
    answers = sum(result["images"] for result in ran.told["results"])
    busy = min(float(node["busy"]) for node in ran.told["nodes"].values())
    print(
        f"  {workers} workers: {ran.rate:.0f} answers a second, {ran.work_seconds:.0f} s of work, "
        f"{ran.seconds:.0f} s in all; workers were busy {busy:.1%} of it and took "
        f"{ran.workers_cpu / ran.work_seconds:.2f} processors, with their start, "
        f"{1e6 * ran.workers_cpu / answers:.0f} µs for an answer; the driver and Ray took "
        f"{(ran.cpu + ran.ray_cpu) / ran.seconds:.2f}"
    )
    return ran.rate


def write_network(path: Path, width: int) -> int:
    """Three convolutions with random weights; how many multiplications an image takes."""
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
    """A model that sleeps stands for one on a device: the processor is free for all else."""
    make_data(20_000, 16)
    workers = 4
    ran = run(
        *("--model", "python:bench_models:sleeping", "--data", "data", "--labels", "identity"),
        *("--corruption", "brightness,contrast", "--severity", f"1-{max(1, round(5 * scale))}"),
        *("--engine", f"ray:workers={workers},cpus=0.25", "--store", "kept"),
    )
    slept = sum(result["images"] for result in ran.told["results"]) / 1000
    share = min(float(node["busy"]) for node in ran.told["nodes"].values())
    print(
        f"  {workers} workers slept {slept:.0f} s in {ran.work_seconds:.1f} s: "
        f"{slept / workers / ran.work_seconds:.1%} of their time (target ≥ 95 %); they had something to "
        f"do in {share:.1%}"
    )


def memory(scale: float) -> None:
    """Peak memory of the driver over a whole job whose workers only pretend."""
    cells = round(40_000 * scale)
    program = f"import benchmarks.cluster as c; c.pretend({cells})"
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), str(root / "src")])
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": path})


def pretend(cells: int, images: int = 50_000) -> None:
    from beaufort.data import from_arrays
    from beaufort.evaluation import RayOptions, RunOptions, execution
    from beaufort.models import as_model
    from beaufort.results import evaluate
    from beaufort.suites import get_suite
    from benchmarks.pretended import Pretended, PretendedStore

    suite = get_suite("cifar10-c-and-bar")
    count = -(-cells // len(suite.conditions()))
    pixels = np.arange(images * 12, dtype=np.uint32).view(np.uint8).reshape(-1, 4, 4, 3)
    data = from_arrays("toys", pixels, np.arange(images) % 10)
    models = [
        as_model(_no_answer, name=f"model{number}", classes=10, version=str(number))
        for number in range(count)
    ]
    store = PretendedStore()
    execution.RayEngine = Pretended  # type: ignore[attr-defined,assignment]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    found = evaluate(
        models, suite, data, store, engine=RayOptions(), options=RunOptions(prepare="none"), labels="identity"
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    blocks = len(found.results) * -(-images // 1000)
    print(
        f"  {len(found.results):,} cells, {blocks:,} blocks, {Pretended.workers} pretended workers: "
        f"{seconds:.0f} s; peak memory {peak:.2f} GB (target ≤ 1.5), {before:.2f} GB of it before the plan"
    )


def _no_answer(images: np.ndarray) -> np.ndarray:
    return np.zeros((len(images), 10), np.float32)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
