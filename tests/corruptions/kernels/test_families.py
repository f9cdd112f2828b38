"""Every operation is declared once, and both backends have it as it is declared."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beaufort.corruptions import _kernels as ops
from beaufort.corruptions._kernels import Ops, cpu_ops, homes, torch_ops

FOLDERS = {path.parent.name for path in Path(ops.__file__).parent.glob("*/__init__.py")}


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of each parameter but `self`."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found if p.name != "self"]


def test_every_folder_is_a_family_of_ops() -> None:
    assert {home.rpartition(".")[2] for home in homes().values()} == FOLDERS


def test_no_name_is_taken_twice() -> None:
    declared = [name for base in Ops.__mro__ for name in vars(base) if name in homes()]
    assert sorted(declared) == sorted(homes())


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("name", sorted(homes()))
def test_a_backend_has_it_as_declared(name: str, backend: str) -> None:
    if backend == "torch":
        pytest.importorskip("torch")
    form = getattr(cpu_ops() if backend == "cpu" else torch_ops(), name)
    assert form.__module__ == f"{homes()[name]}._{backend}"
    assert parameters(form) == parameters(getattr(Ops, name))
    assert form.__doc__, "a form says what it does"


def test_a_name_that_is_none() -> None:
    with pytest.raises(AttributeError, match="hazy"):
        cpu_ops().hazy  # type: ignore[attr-defined]  # noqa: B018


def test_an_operation_imports_no_other_family() -> None:
    code = (
        "import sys; from beaufort.corruptions._kernels import cpu_ops; cpu_ops().look_up; "
        "print(*[m for m in sys.modules if m in ('cv2', 'torch') "
        "or m.startswith('beaufort.corruptions._kernels.fog._')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
