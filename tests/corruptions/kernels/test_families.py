"""Every operation is declared once, and both backends have it as it is declared."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from beaufort.corruptions._kernels import OPERATIONS, Ops, cpu_ops, torch_ops
from beaufort.corruptions._kernels.operations import FAMILIES


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of each parameter but `self`."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found if p.name != "self"]


def test_every_operation_has_one_family() -> None:
    listed = [name for names in FAMILIES.values() for name in names]
    assert sorted(listed) == [*OPERATIONS] == sorted(name for name in vars(Ops) if not name.startswith("_"))


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_backend_has_it_as_declared(name: str, backend: str) -> None:
    if backend == "torch":
        pytest.importorskip("torch")
    form = getattr(cpu_ops() if backend == "cpu" else torch_ops(), name)
    assert getattr(Ops, name).__doc__
    if inspect.isfunction(form) and form.__module__.startswith("beaufort"):  # not NumPy, torch
        assert form.__module__.split(".")[-2] == backend
        assert parameters(form) == parameters(getattr(Ops, name))


def test_invalid_name() -> None:
    with pytest.raises(AttributeError, match="hazy"):
        cpu_ops().hazy  # type: ignore[attr-defined]  # noqa: B018


def test_an_operation_imports_no_other_family() -> None:
    code = (
        "import sys; from beaufort.corruptions._kernels import cpu_ops; cpu_ops().look_up; "
        "print(*[m for m in sys.modules if m in ('cv2', 'torch') "
        "or m.startswith('beaufort.corruptions._kernels.cpu.fog')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
