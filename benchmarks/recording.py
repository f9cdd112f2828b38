"""Measurements of a benchmark: printed while it runs, written as JSON, and compared between two files.

A file has the same form for every benchmark: its name and arguments, facts about the machine, and a list of
measurements with name, value and unit.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("beaufort", "numpy", "numba", "opencv-python-headless", "pillow", "onnxruntime", "torch", "ray")
_measurements: list[dict[str, Any]] = []


def record(name: str, value: float, unit: str, target: str = "") -> float:
    """Add a measurement to the JSON file and return its value.

    Args:
        name: unique within the benchmark; the same name is compared between two files.
        value: the measured value.
        unit: such as `ms` or `×`.
        target: the limit that it should meet, such as `≤ 1.01`.
    """
    measurement = {"name": name, "value": float(value), "unit": unit}
    _measurements.append(measurement | ({"target": target} if target else {}))
    return value


def write(path: Path, benchmark: str, arguments: list[str]) -> None:
    """Write all measurements of this process."""
    document = {
        "benchmark": benchmark,
        "arguments": arguments,
        "machine": machine(),
        "measurements": _measurements,
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """Return what measurements depend on besides the code."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpu": _gpu(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
    }


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else "unknown"


def _gpu() -> str | None:
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def compare(before: Path, after: Path) -> str:
    """Return a table of the measurements of two files, and the differences of the machines."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    calls = [" ".join([one["benchmark"], *one["arguments"]]) for one in (old, new)]
    values = {one["name"]: one for one in old["measurements"]}
    lines = ["| measurement | before | after | after / before |", "|---|---:|---:|---:|"]
    for one in new["measurements"]:
        if (earlier := values.pop(one["name"], None)) is None:
            lines.append(f"| {one['name']} | | {one['value']:.4g} {one['unit']} | |")
            continue
        ratio = f"{one['value'] / earlier['value']:.3f}" if earlier["value"] else "–"
        before_and_after = f"{earlier['value']:.4g} {one['unit']} | {one['value']:.4g} {one['unit']}"
        lines.append(f"| {one['name']} | {before_and_after} | {ratio} |")
    lines += [f"| {name} | {one['value']:.4g} {one['unit']} | | |" for name, one in values.items()]
    different = [
        f"{key}: {old['machine'].get(key)} → {value}"
        for key, value in new["machine"].items()
        if key not in ("date", "load") and old["machine"].get(key) != value
    ]
    if calls[0] != calls[1]:
        lines += ["", f"Different benchmarks: {calls[0]} → {calls[1]}"]
    if different:
        lines += ["", "Different machines or versions:", *different]
    return "\n".join([*lines, ""])
