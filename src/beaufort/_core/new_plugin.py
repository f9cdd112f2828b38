"""A package of one's own to begin with: a corruption that works, its entry point, its test, how to go on."""

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
"""Templates and what they become: together a package whose corruption is called `my_corruption`."""

_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_OF_TEMPLATES = frozenset(["contract", "corrupt", "corruption", "draw", "np"])
"""Names that the templates use for something else, so that their corruption cannot have them."""


def new_corruption(name: str, folder: Path | str | None = None, *, taken: Iterable[str] = ()) -> list[Path]:
    """Write a package with one corruption in it that works; the files that were written.

    Args:
        name: of the corruption, and of its module.
        folder: where to; made if it is missing, and else empty. `name` in the working folder if None.
        taken: names that other corruptions, lists of them and shifts have.
    """
    _check_name(name, set(taken))
    folder = Path(name if folder is None else folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"the folder of a new package must be empty or missing, got {folder}")
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
            "the name of a corruption must be 2 to 40 lower-case letters, digits and '_', a letter first, "
            f"and no word of Python, got {name!r:.60}"
        )
    if name in taken or name in _OF_TEMPLATES:
        raise OptionError(f"the name {name!r} is taken in Beaufort; use another name")
    if find_spec(name) is not None:
        raise OptionError(f"a module called {name!r} is already installed; use another name")
