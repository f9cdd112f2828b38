"""Imports flow one way, public names are what they say, and importing is cheap."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import beaufort

SOURCE = Path(beaufort.__file__).parent

# A module imports from its own row and from rows above it.
LAYERS = (
    ("sanitize",),
    ("errors",),
    ("registry", "arrays", "files"),
    ("labels",),
    ("_samples",),
    ("metrics", "stats"),
    ("rng",),
    ("catalog",),
    ("images",),
    ("models",),
    ("datasets",),
    ("ops",),
    ("corruptions",),
    ("shifts",),
    ("conditions",),
    ("suites",),
    ("store",),
    ("results",),
    ("evaluation",),
    ("transforms", "compat", "testing"),
    ("training",),
    ("jobs",),
    ("report",),
    ("testbed",),
    ("reproduce",),
    ("demo",),
    ("cli", "__main__"),
)
LAYER = {name: row for row, names in enumerate(LAYERS) for name in names}


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages([str(SOURCE)], "beaufort.")]
    return ["beaufort", *sorted(found)]


def imported(path: Path) -> set[str]:
    """The parts of Beaufort that a file imports, anywhere but under TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("beaufort"):
            names |= (
                {node.module.split(".")[1]} if "." in node.module else {alias.name for alias in node.names}
            )
            assert node.level == 0, f"{path}: relative imports are not used"
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("beaufort.")}
    return names


def test_imports_flow_one_way() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        wrong += [
            f"{path.relative_to(SOURCE)} imports {name}"
            for name in imported(path)
            if name in LAYER and LAYER[name] > LAYER[part]
        ]
    assert not wrong, wrong


def test_every_part_has_a_layer() -> None:
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert parts - {"__init__"} == set(LAYER)


@pytest.mark.parametrize("name", modules())
def test_all_is_sorted_and_true(name: str) -> None:
    if name.endswith("_kernels"):
        pytest.importorskip("triton", reason="Triton is not installed")
    module = importlib.import_module(name)
    public = getattr(module, "__all__", None)
    if public is None:
        return
    assert len(set(public)) == len(public)
    missing = [entry for entry in public if not hasattr(module, entry)]
    assert not missing


def test_public_names() -> None:
    assert beaufort.__all__ == [
        "BeaufortError",
        "Corruption",
        "__version__",
        "corrupt",
        "corruptions",
        "evaluate",
        "get_corruption_names",
    ]


PROBE = """
import json, sys, time
start = time.process_time()
import beaufort
taken = time.process_time() - start
print(json.dumps([taken, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_importing_is_cheap() -> None:
    runs = []
    for _ in range(5):
        child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        seconds, loaded = json.loads(child.stdout)
        assert not {
            "numba",
            "cv2",
            "torch",
            "scipy",
            "skimage",
            "PIL",
            "pyarrow",
            "duckdb",
            "onnxruntime",
        } & set(loaded)
        runs.append(seconds)
    assert min(runs) < 0.3
