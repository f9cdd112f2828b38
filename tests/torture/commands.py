"""The commands that write, each with something to work on and what must come of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beaufort._core.files import is_leftover
from beaufort.store import FileStore
from tests.torture.stores import cell, make_predictions, rows_in_python, rows_in_sql

__all__ = ["COMMANDS", "Command", "Seen", "digits", "rows_at", "suite"]


@dataclass(frozen=True)
class Seen:
    """Return the content of a folder: rows, or files by name."""

    things: Mapping[Any, Any]
    doubles: int = 0
    """How many rows are read more than once, in Python or in SQL."""


@dataclass(frozen=True)
class Command:
    """A command in its own folder."""

    prepare: Callable[[Path], None]
    """Make what it works on."""
    arguments: tuple[str, ...]
    """`{}` stands for the folder."""
    look: Callable[[Path], Seen]
    store: str | None = None
    """The store in the folder that must be without a fault after it was tidied up."""
    steps: bool = True
    """Whether its steps can be counted; else it is killed at random only."""

    def given(self, folder: Path) -> list[str]:
        """The arguments for one folder."""
        return [argument.format(folder) for argument in self.arguments]


def files_in(folder: Path) -> Seen:
    """Every file but drafts, by a digest of its content."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not is_leftover(path.name)]
    return Seen({str(path.relative_to(folder)): _digest(path) for path in paths})


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def rows_in(*names: str) -> Callable[[Path], Seen]:
    """Every row of some stores of a folder, as Python and SQL see it."""

    def look(folder: Path) -> Seen:
        things: dict[Any, Any] = {}
        doubles = 0
        for name in names:
            seen = rows_at(folder / name)
            doubles += seen.doubles
            things |= {(name, *key): row for key, row in seen.things.items()}
        return Seen(things, doubles)

    return look


def rows_at(location: str | Path) -> Seen:
    """Every row of a store, as Python and SQL see it, by its cell and its place."""
    store = FileStore(location)
    rows = [(cell, *row) for cell, rows in rows_in_python(store).items() for row in rows]
    seen = Counter(row[:2] for row in rows)
    doubles = seen.total() - len(seen) + (_doubles_in_sql(store, len(rows)) if rows else 0)
    return Seen({row[:2]: row[2:] for row in rows}, doubles)


def _doubles_in_sql(store: FileStore, rows: int) -> int:
    output = rows_in_sql(store)
    counts = (
        len(output["rows"]),
        output["pieces"],
        sum(one["images"] + one["unread"] for one in output["cells"]),
    )
    return sum(abs(count - rows) for count in counts)


# What they work on.

DIGITS = 32


def digits(folder: Path, count: int = DIGITS) -> None:
    """Digits in MNIST's own files; what is on them does not matter."""
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(3).integers(0, 256, (count, 28, 28)).astype(np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        shape = b"".join(side.to_bytes(4, "big") for side in array.shape)
        (folder / f"t10k-{name}-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + shape + array.tobytes())


def suite(path: Path) -> None:
    """Two corruptions of digits and clean ones."""
    text = "name: small\nversion: 1\ndataset: digits\ncorruptions: [brightness, stripe]\nscale: mnist\n"
    path.write_text(text + "severities: [1]\n")


def _for_run(folder: Path) -> None:
    digits(folder / "digits")
    suite(folder / "small.yaml")


def _images(folder: Path) -> None:
    (folder / "photos" / "more").mkdir(parents=True)
    pixels = np.random.default_rng(4).integers(0, 256, (3, 40, 40, 3)).astype(np.uint8)
    for name, image in zip(("a.png", "b.jpg", "more/c.png"), pixels, strict=True):
        Image.fromarray(image).save(folder / "photos" / name)


def _two_stores(folder: Path) -> None:
    ours, theirs = FileStore(folder / "ours"), FileStore(folder / "theirs")
    for store, ranges in ((ours, ((0, 20), (20, 30))), (theirs, ((10, 30), (25, 40)))):
        for start, stop in ranges:
            store.write(cell(), start, make_predictions(start, stop))
    theirs.write(cell("other"), 0, make_predictions(0, 10))
    theirs.write_run({"suite": {}}, {"time": "2026"})


def _untidy(folder: Path) -> None:
    """A store with rows that are there twice, a damaged file whose rows others have, and an old draft."""
    store = FileStore(folder / "store")
    for start, stop in ((0, 40), (0, 20), (30, 60)):
        store.write(cell(), start, make_predictions(start, stop))
    damaged = folder / "store" / store.write(cell(), 10, make_predictions(10, 30)).path
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (damaged.parent / ".beaufort-00000000-1-00000000-0.part").write_bytes(b"half")


def _with_output(folder: Path) -> None:
    """A store with three conditions, and an output of an earlier time."""
    store = FileStore(folder / "store")
    for one in (cell(corruption=None, severity=None), cell(corruption="fog", severity=1)):
        store.write(one, 0, make_predictions(0, 30))
    (folder / "out").mkdir()
    for name in ("summary.csv", "report.md"):
        (folder / "out" / name).write_text("of an earlier time")


def _for_report(folder: Path) -> None:
    from tests.conftest import fill_store

    _with_output(folder)
    fill_store(folder / "filled", {"net": 0.9}, images=20)


_RUN = ("run", "--model", "demo:digits", "--suite", "{}/small.yaml", "--data", "{}/digits")

COMMANDS: dict[str, Command] = {
    "query": Command(
        _with_output, ("results", "query", "--store", "{}/store", "--output", "{}/out/summary.csv"), files_in
    ),
    "report": Command(_for_report, ("report", "{}/filled", "--output", "{}/out/report.md"), files_in),
    "results verify --repair": Command(
        _untidy, ("results", "verify", "{}/store", "--repair"), rows_in("store"), "store"
    ),
    "results verify --delete": Command(
        _untidy, ("results", "verify", "{}/store", "--delete"), rows_in("store"), "store"
    ),
    "results merge": Command(
        _two_stores, ("results", "merge", "{}/ours", "{}/theirs"), rows_in("ours", "theirs"), "ours"
    ),
    "make": Command(
        lambda folder: digits(folder / "digits", 6),
        ("make", "mnist-c", "{}/digits", "{}/out", "--corruption", "identity,brightness"),
        files_in,
    ),
    "corrupt": Command(
        _images,
        ("corrupt", "{}/photos", "{}/out", "--corruption", "brightness", "--severity", "1,3"),
        files_in,
    ),
    "run": Command(
        _for_run, (*_RUN, "--store", "{}/store", "--engine", "local:1"), rows_in("store"), "store"
    ),
    "run --engine processes:2": Command(
        _for_run,
        (*_RUN, "--store", "{}/store", "--engine", "processes:2"),
        rows_in("store"),
        "store",
        steps=False,  # its workers write too: they are not watched, and outlive the kill for a moment
    ),
}
"""Those with few steps first."""
