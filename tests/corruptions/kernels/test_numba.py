"""Cached kernels: loaded without Numba's compiler, with the same pixels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import beaufort
from beaufort._core._numba_cache import _Files

SOURCE = Path(beaufort.__file__).parent.parent
COMPILER = "numba.np.linalg"
"""A part of Numba that only the compiler needs."""

CALL = f"""
import hashlib, json, sys
import numpy as np
from beaufort import corrupt
from beaufort.metrics.stats import resample
image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
image.flags.writeable = {{writeable}}
made = [corrupt(image, "contrast", 3).tobytes(), resample([0.8, 1, 1, 0.9], resamples=9).means.tobytes()]
print(json.dumps([hashlib.sha256(b"".join(made)).hexdigest(), "{COMPILER}" in sys.modules]))
"""


def run(script: str, **environment: str) -> str:
    command, everything = [sys.executable, "-c", script], os.environ | environment
    return subprocess.run(command, env=everything, stdout=subprocess.PIPE, text=True, check=True).stdout


def call(folder: Path, *, writeable: bool) -> Any:
    return json.loads(run(CALL.format(writeable=writeable), NUMBA_CACHE_DIR=str(folder)))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A cache of kernels, and a digest of what they return."""
    folder = tmp_path_factory.mktemp("kernels")
    digest, with_compiler = call(folder, writeable=True)
    assert with_compiler
    assert list(folder.rglob("*.nbc"))
    return folder, digest


@pytest.mark.xdist_group("numba-cache")
def test_kernels_on_disk_are_loaded_without_the_compiler(compiled: tuple[Path, str]) -> None:
    """For images that may not be written to as well, such as those that Pillow hands out."""
    folder, digest = compiled
    loaded, with_compiler = call(folder, writeable=False)
    assert not with_compiler
    assert loaded == digest


def test_kernel_cache_depends_on_called_kernels(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(
        "from called import number\nfrom beaufort._core.compiled import kernel\n"
        "@kernel\ndef doubled():\n    return 2 * number()\n"
    )

    def doubled(number: int) -> int:
        text = f"from beaufort._core.compiled import inlined\n@inlined\ndef number():\n    return {number}\n"
        (tmp_path / "called.py").write_text(text)
        folders = {"PYTHONPATH": f"{tmp_path}:{SOURCE}", "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        script = "from calling import doubled; print(doubled())"
        return int(run(script, **folders, PYTHONDONTWRITEBYTECODE="1"))

    assert doubled(5) == doubled(5) == 10
    assert doubled(70) == 140


def test_two_processes_that_compile_a_kernel_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For different types: each loads its own later, or none, and never that of the other."""
    files: Any = _Files  # not typed
    one, other, later = (files(str(tmp_path), "kernel", "stamp") for _ in range(3))
    monkeypatch.setattr(other, "_load_index", dict)  # it looked before one wrote
    save = one._save_data

    def meanwhile(name: str, data: object) -> None:
        other.save("b", "for b")
        save(name, data)

    monkeypatch.setattr(one, "_save_data", meanwhile)
    one.save("a", "for a")
    assert later.load("a") in (None, "for a")
    assert later.load("b") in (None, "for b")
    assert later.load("a") or later.load("b")


def test_kernels_run_as_plain_python_where_numba_is_switched_off() -> None:
    script = """
import numpy as np
from beaufort.corruptions._kernels.cpu.values import look_up
table = np.arange(256, dtype=np.uint8)[::-1].copy()
print(look_up(np.full((1, 2, 2, 3), 7, np.uint8), table).max())
"""
    assert run(script, NUMBA_DISABLE_JIT="1") == "248\n"


@pytest.mark.xdist_group("numba-cache")
def test_another_numba_without_the_private_modules_falls_back_to_its_own_cache(
    compiled: tuple[Path, str], tmp_path: Path
) -> None:
    hidden = "import sys\nsys.modules['beaufort._core._numba_cache'] = None\n"
    script = hidden + CALL.format(writeable=True)
    fallback, _ = json.loads(run(script, NUMBA_CACHE_DIR=str(tmp_path)))
    assert list(tmp_path.rglob("*.nbc"))
    assert fallback == compiled[1]
