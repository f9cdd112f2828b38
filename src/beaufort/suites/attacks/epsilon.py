"""How far an attack may go, as it is written: `8/255`, `0.5/255` or `0.1`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from beaufort._core.errors import OptionError

_TEXT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)(?:/([1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class Epsilon:
    """The radius of the ball around an image, in units of the range 0..1 of its values.

    >>> Epsilon.of("0.5/255").value == 0.5 / 255
    True
    >>> Epsilon.of("-1")
    Traceback (most recent call last):
    beaufort.OptionError: epsilon must be a number from 0, written as 8/255 or 0.5, got '-1'
    """

    value: float

    @classmethod
    def of(cls, text: str, example: str = "") -> Epsilon:
        """The number that a text stands for, rounded once.

        Args:
            text: a number, or a number over a whole one.
            example: how all of it is written, for the error.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            whole = f", as in {example}" if example else ""
            raise OptionError(
                f"epsilon must be a number from 0, written as 8/255 or 0.5{whole}, got {text!r:.60}"
            )
        return cls(float(Fraction(match[1]) / int(match[2] or 1)))
