"""What can be wrong with labels."""

from __future__ import annotations

from beaufort._core.errors import OptionError


class LabelError(OptionError):
    """Labels that cannot be brought together with the outputs of a model.

    >>> error = LabelError("nothing fits", "pass --classes FILE", "use numbers")
    >>> str(error), str(error.without("--classes"))
    ('nothing fits; pass --classes FILE, or use numbers', 'nothing fits; use numbers')

    Args:
        reason: what is wrong.
        ways_out: what to do about it, each on its own.
    """

    def __init__(self, reason: str, *ways_out: str) -> None:
        some = ", or ".join(filter(None, [", ".join(ways_out[:-1]), *ways_out[-1:]]))
        super().__init__(f"{reason}; {some}" if some else reason)
        self.reason, self.ways_out = reason, ways_out

    def without(self, *options: str) -> LabelError:
        """The same for a command that lacks some options."""
        return LabelError(
            self.reason, *(way for way in self.ways_out if not any(option in way for option in options))
        )
