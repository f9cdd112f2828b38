"""A gate beside a damaged store: the same outcome as before, or exit code 2 with the name of the file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from beaufort.cli._app import app
from tests.conftest import fill_store
from tests.torture.table import Row

__all__ = ["gate_beside_damage"]

Damage = Callable[[Path, random.Random], None]


def _flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def _zero(path: Path, rng: random.Random) -> None:
    """A part that reads as zeros, as after a crash of some file systems."""
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content))
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    path.write_bytes(content)


def _swap(path: Path, rng: random.Random) -> None:
    others = sorted(one for one in path.parent.parent.rglob("*.parquet") if one != path)
    path.write_bytes(rng.choice(others or [path]).read_bytes() + b" ")


def _folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _delete(path: Path, rng: random.Random) -> None:
    path.unlink()


DAMAGE: dict[str, Damage] = {
    "flip": _flip,
    "cut": _cut,
    "zeros": _zero,
    "another": _swap,
    "folder": _folder,
    "delete": _delete,
}


def gate_beside_damage(row: Row, folder: Path, count: int, *, seed: int) -> None:
    """Damage one file of the new or the old store at a time, in every way in turn."""
    for name in ("new", "old"):
        fill_store(folder / "sound" / name, {"net": 0.9}, images=30)
    right = _gate(folder / "sound")
    for number in range(count):
        if not row.has_time():
            return
        rng = random.Random(f"{seed}/gate/{number}")
        kind = list(DAMAGE)[number % len(DAMAGE)]
        shutil.rmtree(folder / "work", ignore_errors=True)
        shutil.copytree(folder / "sound", folder / "work")
        files = sorted(path for path in (folder / "work").rglob("*") if path.is_file())
        path = rng.choice(files)
        DAMAGE[kind](path, rng)
        row.count += 1
        _judge(
            row,
            f"gate, {kind} of {path.name}, --seed {seed}, {number}",
            path,
            kind,
            right,
            _gate(folder / "work"),
        )


def _gate(folder: Path) -> tuple[int, str, BaseException | None]:
    command = ["gate", f"{folder}/new", "--reference", f"{folder}/old", "--suite", "mnist-c"]
    result = CliRunner().invoke(app, command)
    error = None if isinstance(result.exception, SystemExit) else result.exception
    return result.exit_code, result.output.replace(str(folder), ""), error


def _judge(
    row: Row,
    case: str,
    path: Path,
    kind: str,
    right: tuple[int, str, BaseException | None],
    got: tuple[int, str, BaseException | None],
) -> None:
    code, output, error = got
    if error is not None:
        row.uncaught(f"{case}: {type(error).__name__}: {error}")
    elif got == right:
        return
    elif code != 2:
        row.loss(f"{case}: exit code {code}, {output[-500:]}")
    elif path.name not in output and kind not in ("delete", "folder"):  # whose rows are not there
        row.loss(f"{case}: the file is not named in {output[-500:]}")
