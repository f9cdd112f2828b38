"""Difficulty of corruptions and of pairs of them: the error of a reference model.

A drifting stream changes one corruption into another along conditions of about the same difficulty, as the
benchmark CCC does (Press et al. 2023, arXiv:2306.05401). The errors are in `data/difficulty/SCALE.json`;
`tools/difficulty.py` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message

SINGLE = (1, 2, 3, 4, 5)
"""Severities of a single corruption whose error was measured."""
PAIRED = (1, 3, 5)
"""Severities of each corruption of a pair whose error was measured."""
_FOLDER = "difficulty"
_STEP = 0.5
_LEVELS = np.arange(1, 5 + _STEP, _STEP)
"""Severities along a path; a corruption may also be absent."""


@dataclass(frozen=True)
class Difficulty:
    """Errors of a reference model in percent."""

    single: Mapping[str, Sequence[float]]
    """By corruption, at each severity of `SINGLE`; the order of names is the order of pairs."""
    pair: Mapping[str, Sequence[Sequence[float]]]
    """By `A+B`, at each severity of `PAIRED` of A, and of B."""

    def error(self, first: str, a: float, second: str, b: float) -> float:
        """Return the error under two corruptions, interpolated between severities; 0 for absent."""
        if not a or not b:
            return float(np.interp(a or b, SINGLE, self.single[first if a else second]))
        if f"{first}+{second}" not in self.pair:
            first, a, second, b = second, b, first, a
        rows = [np.interp(b, PAIRED, row) for row in self.pair[f"{first}+{second}"]]
        return float(np.interp(a, PAIRED, rows))

    def path(self, first: str, second: str, error: float) -> Iterator[str]:
        """Yield conditions that turn one corruption into another, at about the same error in percent.

        The first corruption weakens step by step. The second one strengthens as far as the error allows;
        alone, it is the start of the next path.
        """
        for name in (first, second):
            if name not in self.single:
                raise OptionError(unknown_message("corruption of a drifting stream", name, self.single))
        at = 0.0
        start, end = (self._nearest(name, error) for name in (first, second))
        yield self._text(first, start, second, 0)
        for a in _LEVELS[start > _LEVELS][::-1]:
            levels = [level for level in (0.0, *_LEVELS) if at <= level <= end]
            at = min(levels, key=lambda b: abs(self.error(first, a, second, b) - error))
            yield self._text(first, a, second, at)

    def _nearest(self, name: str, error: float) -> float:
        return float(min(_LEVELS, key=lambda level: abs(np.interp(level, SINGLE, self.single[name]) - error)))

    def _text(self, first: str, a: float, second: str, b: float) -> str:
        places = {name: place for place, name in enumerate(self.single)}
        both = sorted(((first, a), (second, b)), key=lambda one: places[one[0]])
        return "+".join(f"{name}@{level:g}" for name, level in both if level)


@cache
def difficulty_of(scale: str) -> Difficulty:
    """Return the difficulty of corruptions at a scale."""
    file = files("beaufort.suites") / "data" / _FOLDER / f"{scale}.json"
    if not file.is_file():
        raise OptionError(
            f"a drifting stream requires errors of a reference model; there are none for the scale {scale}"
        )
    values = json.loads(file.read_text(encoding="utf-8"))
    return Difficulty(values["single"], values["pair"])
