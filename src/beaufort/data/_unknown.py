"""What is said about data that nothing here can open: what came, and the nearest guesses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from beaufort._core.registry import near_names
from beaufort._core.text import encodable
from beaufort.data._reader import readers
from beaufort.data.images import is_picture_name

NAMES = "`beaufort ls datasets` lists the names and kinds"
_MOST_ENTRIES = 1000
_GUESSES = 3
_SIGNS = {
    "npz": ("npz",),
    "npy": ("npy", "cifar10-c"),
    "tar": ("wds",),
    "arrow": ("hf",),
    "bin": ("cifar",),
    "gz": ("mnist", "cifar"),
    "zip": ("csv",),
    "pictures": ("folder", "csv", "imagenet-val"),
    "folders": ("folder", "imagenet-c"),
    "csv": ("csv", "cifar"),
    "txt": ("imagenet-val", "csv"),
}
"""The kinds that are likely meant where such files are; those that say most come first."""


def unknown_name(spec: str, names: Sequence[str]) -> str:
    """The sentence about a text that is neither a path that exists nor a name."""
    kind = [f"{spec}:PATH"] if spec in readers else []
    near = near_names(spec, names) + kind or _prefixed(spec)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else NAMES
    return f"data must be a path that exists, kind:path or a name, got {spec!r:.200}; {hint}"


def _prefixed(spec: str) -> list[str]:
    """`kind:path` for a kind that was mistyped."""
    kind, colon, rest = spec.partition(":")
    return [f"{near}:{rest}" for near in near_names(kind, readers)] if colon else []


def unknown_kind(path: Path) -> str:
    """The sentence about a file or folder that is of no known kind: what it has, and what would do."""
    found = _signs(path)
    kinds = dict.fromkeys(kind for sign, near in _SIGNS.items() if sign in found for kind in near)
    guesses = list(kinds)[:_GUESSES] or ["folder", "csv", "npz"]
    told = "".join(f"\n  {kind}: {readers[kind].looks_like}" for kind in guesses)
    return f"{path} must be a data set of a known kind, got {_what(path, found)}; nearest are{told}\n{NAMES}"


def _signs(path: Path) -> Counter[str]:
    """How many pictures, folders and files of other endings there are, of the first so many."""
    if path.is_file():
        return Counter([_sign(path.name, is_folder=False)])
    with os.scandir(path) as entries:
        return Counter(
            _sign(entry.name, is_folder=entry.is_dir()) for entry in islice(entries, _MOST_ENTRIES)
        )


def _sign(name: str, *, is_folder: bool) -> str:
    if is_folder:
        return "folders"
    return "pictures" if is_picture_name(name) else Path(name).suffix.lower().lstrip(".") or "files"


def _what(path: Path, found: Counter[str]) -> str:
    if path.is_file():
        return f"a file whose name ends in {encodable(path.suffix)}" if path.suffix else "a file"
    parts = [_counted(sign, count) for sign, count in found.most_common(3)]
    return f"a folder with {', '.join(parts)}" if parts else "an empty folder"


def _counted(sign: str, count: int) -> str:
    plain = sign in ("pictures", "folders", "files")
    many = sign if plain else f".{encodable(sign):.20} files"
    return f"{count} {many if count > 1 else many.removesuffix('s')}"
