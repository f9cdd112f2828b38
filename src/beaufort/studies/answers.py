"""What a network of a study answers, and the file that keeps it."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError
from beaufort._core.files import write_bytes

_DAMAGE = (
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error),
    *(AttributeError, KeyError, TypeError, ValueError),
)
"""What reading a file raises that is cut, damaged or of another kind."""


@dataclass(frozen=True, eq=False)
class StudyAnswers:
    """One network's answers."""

    conditions: tuple[str, ...]
    predicted: NDArray[np.uint8]
    """`(conditions, images)`."""
    labels: NDArray[np.uint8]
    facts: dict[str, Any]
    """Recipe, seed, device and seconds."""

    @property
    def right(self) -> NDArray[np.bool_]:
        """`(conditions, images)`."""
        found: NDArray[np.bool_] = self.predicted == self.labels
        return found

    @property
    def bits(self) -> bool:
        """Whether only right (1) and wrong (0) are told apart, not classes."""
        return bool((self.labels == 1).all() and (self.predicted <= 1).all())

    def row(self, condition: str) -> NDArray[np.bool_]:
        """Which images it recognizes under a condition."""
        found: NDArray[np.bool_] = self.right[self.conditions.index(condition)]
        return found


def write_answers(path: Path, answers: StudyAnswers) -> None:
    """Keep answers in a file, whole or not at all."""
    buffer = io.BytesIO()
    about = json.dumps({"conditions": list(answers.conditions), **answers.facts})
    arrays = {"predicted": answers.predicted, "labels": answers.labels}
    if answers.bits:  # an image's conditions side by side: they are alike, which compresses best
        arrays = {"bits": np.packbits(answers.predicted.T, axis=1)}
    np.savez_compressed(buffer, **arrays, about=np.frombuffer(about.encode(), np.uint8))  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


@contextmanager
def open_arrays(path: Path, what: str) -> Iterator[Any]:
    """The arrays of a file that a study made, by name; a file that cannot be read is told as such."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            yield file
    except _DAMAGE as error:
        told = str(error) or type(error).__name__
        raise ImageFileError(f"{path} cannot be read as {what} ({told}); delete it to make it anew") from None


def read_answers(path: Path) -> StudyAnswers:
    """Answers from their file."""
    with open_arrays(path, "answers") as file:
        about = json.loads(bytes(file["about"]))
        conditions = tuple(about.pop("conditions"))
        if "bits" not in file:
            return StudyAnswers(conditions, file["predicted"], file["labels"], about)
        right = np.unpackbits(file["bits"], axis=1, count=len(conditions))
        return StudyAnswers(conditions, right.T, np.ones(len(right), np.uint8), about)


def answers_by_seed(folder: Path) -> dict[str, list[StudyAnswers]]:
    """The answers in files `NAME-seedN.npz` of a folder by name, in the order of names and of seeds."""
    found: dict[str, dict[int, StudyAnswers]] = {}
    for path in sorted(folder.glob("*-seed*.npz")):
        name, _, seed = path.stem.rpartition("-seed")
        if seed.isdecimal():
            found.setdefault(name, {})[int(seed)] = read_answers(path)
    return {name: [by[seed] for seed in sorted(by)] for name, by in found.items()}


def machine_facts(answers: Iterable[StudyAnswers]) -> dict[str, str]:
    """What the networks were trained on and with, as a page tells it."""
    every = list(answers)
    return {
        "hardware": ", ".join(sorted({one.facts["device"] for one in every})),
        "torch": ", ".join(sorted({one.facts["torch"] for one in every})),
    }
