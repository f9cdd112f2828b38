"""One flipped bit in each file of a store: the right result, or an error that names the file."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from beaufort._core.errors import BeaufortError
from beaufort.store import FileStore

__all__ = ["Flips", "flip_bits", "flipped"]

Question = Callable[[FileStore], Any]


@dataclass
class Flips:
    """Results of flipping bits."""

    tried: int = 0
    right: int = 0
    """Results that were as before."""
    rejected: int = 0
    """Refusals that name the file."""
    wrong: list[str] = field(default_factory=list)
    """Everything else: other results, other errors, errors that do not name the file."""
    unseen: list[str] = field(default_factory=list)
    """Flips that `verify` does not find."""


def flipped(path: Path, bit: int) -> bytes:
    """Flip a bit of a file, keeping its times; what it held before."""
    before, state = path.read_bytes(), path.stat()
    content = bytearray(before)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return before


def flip_bits(
    root: Path,
    questions: dict[str, Question],
    each: int,
    *,
    seed: int = 0,
    pattern: str = "*",
    heal: Callable[[], object] | None = None,
    has_time: Callable[[], bool] = lambda: True,
) -> Flips:
    """Flip `each` bits of every file of a store, one at a time, and ask every question each time.

    With `heal`, which fills the store again, every result must then be right, and nothing be damaged.
    """
    store, rng, found = FileStore(root), random.Random(seed), Flips()
    right = {name: call(store) for name, call in questions.items()}
    for path in sorted(path for path in root.rglob(pattern) if path.is_file()):
        for bit in _places(path, each, rng):
            if not has_time() or found.wrong:
                return found
            before, state = flipped(path, bit), path.stat()
            found.tried += 1
            what = f"{path.relative_to(root)} bit {bit}"
            if not any(finding.path == str(path.relative_to(root)) for finding in store.verify()):
                found.unseen.append(what)
            for name, call in questions.items():
                _query(found, f"{name}, {what}", path, partial(call, store), right[name])
            if heal is not None:
                heal()
                if any(call(store) != right[name] for name, call in questions.items()) or store.verify():
                    found.wrong.append(f"{what}: not repaired")
            path.write_bytes(before)
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return found


def _places(path: Path, each: int, rng: random.Random) -> Iterator[int]:
    """Places over all of a file, and as many near its end, where a footer is."""
    bits = 8 * path.stat().st_size
    near = min(bits, 8 * 2500)
    yield from (rng.randrange(bits) for _ in range(each - each // 2))
    yield from (bits - 1 - rng.randrange(near) for _ in range(each // 2))


def _query(found: Flips, what: str, path: Path, call: Callable[[], Any], right: Any) -> None:
    try:
        output = call()
    except BeaufortError as error:
        if path.name in str(error):
            found.rejected += 1
        else:
            found.wrong.append(f"{what}: {error}")
    except Exception as error:
        found.wrong.append(f"{what}: {type(error).__name__}: {error}")
    else:
        if output == right:
            found.right += 1
        else:
            found.wrong.append(f"{what}: wrong result")
