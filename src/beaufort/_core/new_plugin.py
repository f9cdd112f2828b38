"""Create a plug-in package: a working corruption, its entry point, its test and a README."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes

_TEMPLATE = Path(__file__).parent / "template"
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "module.py.txt": "{name}.py",
    "test_module.py.txt": "test_{name}.py",
}
"""Templates, and the files they become; their corruption is called `my_corruption`."""

_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_OF_TEMPLATES = frozenset(["contract", "corrupt", "corruption", "draw", "np"])
"""Names that the templates use otherwise."""


def new_corruption(name: str, folder: Path | str | None = None, *, taken: Iterable[str] = ()) -> list[Path]:
    """Write a package with one working corruption; return the files written.

    Args:
        name: name of the corruption and of its module.
        folder: an empty or new directory; `name` in the working directory by default.
        taken: names of other corruptions, groups and shifts.
    """
    _check_name(name, set(taken))
    folder = Path(name if folder is None else folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"{folder} is not empty; choose an empty or new directory for the package")
    written = []
    for template, target in _FILES.items():
        text = (_TEMPLATE / template).read_text(encoding="utf-8")
        text = text.replace("my_corruption", name).replace("my-corruption", name.replace("_", "-"))
        written.append(folder / target.format(name=name))
        write_bytes(written[-1], text.encode())
    return written


def _check_name(name: str, taken: set[str]) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        raise OptionError(
            "the name of a corruption must be an identifier of 2 to 40 lowercase letters, digits and '_', "
            f"got {name!r:.60}"
        )
    if name in taken or name in _OF_TEMPLATES:
        raise OptionError(f"the name {name!r} is already used by Beaufort; choose another name")
    if find_spec(name) is not None:
        raise OptionError(f"a module called {name!r} is already installed; choose another name")
