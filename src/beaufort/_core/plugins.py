"""Plug-ins: what this package's applications and other packages add to the core, through entry points.

| group | an entry is |
|---|---|
| `beaufort.plugins` | a module that registers corruptions, datasets or suites when it is imported |
| `beaufort.commands` | a function or a `typer.Typer` that becomes a command |
| `beaufort.model_kinds` | an `Adapter` that loads models written as `kind:where` |
| `beaufort.models` | a function that returns a model |
| `beaufort.shifts` | a kind of shift for conditions |
| `beaufort.trackers` | a function that returns a tracker of runs |

```toml
[project.entry-points."beaufort.plugins"]
street = "street_weather"
```

The command line imports all installed modules of `beaufort.plugins` and those named with `--import`. In
Python, `import` does; `load_plugins` does what the command line does, also for worker processes. Entries of
the other groups are loaded when they are first used.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list

GROUP = "beaufort.plugins"
_VARIABLE = "BEAUFORT_IMPORT"
"""Comma-separated names of modules that worker processes import too."""


@cache
def offered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, none of them loaded."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load_plugins(modules: Iterable[str] = ()) -> None:
    """Import the modules of installed plug-ins, and others by name.

    An installed plug-in that cannot be imported causes a warning, a named module an error.

    Args:
        modules: names of modules, which may be in the working directory.
    """
    _remember(modules)
    for entry in offered(GROUP).values():
        try:
            entry.load()
        except Exception as error:  # whatever someone else's module raises
            owner = entry.dist.name if entry.dist else "an unknown package"
            text = f"cannot import the plug-in {entry.name} of {owner}: {type(error).__name__}: {error}"
            warnings.warn(text, stacklevel=2)
    for name in named_modules():
        _import(name)


def _import(name: str) -> None:
    look_here_too()
    try:
        import_module(name)
    except Exception as error:  # whatever someone else's module raises
        raise OptionError(f"cannot import the module {name!r}: {type(error).__name__}: {error}") from error


def _remember(modules: Iterable[str]) -> None:
    """Note modules in the environment, which worker processes inherit."""
    names = dict.fromkeys([*named_modules(), *(part for text in modules for part in comma_list(text))])
    if names:
        os.environ[_VARIABLE] = ",".join(names)


def named_modules() -> list[str]:
    """Return the modules that were named, for worker processes."""
    return comma_list(os.environ.get(_VARIABLE, ""))


def look_here_too() -> None:
    """Append the working directory to the import path.

    It comes last, so that a file in it cannot replace an installed library.
    """
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
