"""Label spaces, their conventions, and errors about labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import is_tensor
from beaufort._core.errors import OptionError


class LabelError(OptionError):
    """Labels that do not match the outputs of a model.

    >>> error = LabelError("nothing fits", "pass --classes FILE", "use numbers")
    >>> str(error), str(error.without("--classes"))
    ('nothing fits; pass --classes FILE, or use numbers', 'nothing fits; use numbers')

    Args:
        reason: the cause.
        fixes: alternative solutions.
    """

    def __init__(self, reason: str, *fixes: str) -> None:
        some = ", or ".join(filter(None, [", ".join(fixes[:-1]), *fixes[-1:]]))
        super().__init__(f"{reason}; {some}" if some else reason)
        self.reason, self.fixes = reason, fixes

    def without(self, *options: str) -> LabelError:
        """Return the error for a command that lacks some options."""
        fixes = (fix for fix in self.fixes if not any(option in fix for option in options))
        return LabelError(self.reason, *fixes)


CONVENTIONS = ("restricted", "all")
"""`restricted`: only outputs that belong to a class compete; `all`: all outputs of the model compete."""


def check_convention(convention: str) -> None:
    """Raise an error for an unknown convention."""
    if convention not in CONVENTIONS:
        raise LabelError(f"convention must be {' or '.join(map(repr, CONVENTIONS))}, got {convention!r:.60}")


@dataclass(frozen=True)
class LabelSpace:
    """The classes of a dataset and the outputs of a model that count as each.

    Applying a space gives logits of columns: the classes and, under the convention `all`, the outputs that
    belong to no class, each in their order.

    >>> space = LabelSpace(count=4, outputs=((2,), (0, 3)))
    >>> space.apply(np.array([[1.0, 9.0, 2.0, 3.0]], np.float32)).tolist()
    [[2.0, 3.0]]
    >>> str(space)
    '2 classes, from 3 of 4 outputs; only these compete (convention restricted)'
    """

    count: int | None = None
    """Number of outputs of the model; None if unknown."""
    outputs: tuple[tuple[int, ...], ...] | None = None
    """The outputs that count as each class, possibly none; None if labels are indices of outputs."""
    convention: str = "restricted"
    outcomes: int = 0
    """Number of outputs after the classes of the model, which stand for replies without a prediction; they
    compete under both conventions, and are the last columns."""

    def __post_init__(self) -> None:
        check_convention(self.convention)
        if self.outputs is None:
            return
        outputs = tuple(tuple(dict.fromkeys(int(output) for output in some)) for some in self.outputs)
        every = [output for some in outputs for output in some]
        if self.count is None or not every or not 0 <= min(every) <= max(every) < self.count:
            raise LabelError(
                f"outputs of a label space must be from 0 to {(self.count or 0) - 1}, got "
                f"{sorted(set(every))[:5] or 'none'}"
            )
        if len(set(every)) != len(every):
            twice = next(output for output in every if every.count(output) > 1)
            raise LabelError(f"output {twice} of the label space belongs to two classes")
        plain = outputs == tuple((output,) for output in range(self.count - self.outcomes))
        object.__setattr__(self, "outputs", None if plain else outputs)

    @property
    def identity(self) -> bool:
        """Whether labels are indices of outputs; then all outputs compete under both conventions."""
        return self.outputs is None

    def __str__(self) -> str:
        if self.outputs is None:
            return "labels are numbers of outputs; every output competes (convention all)"
        competing = "only these compete" if self.convention == "restricted" else "every output competes"
        classes, belonging, count = len(self.outputs), sum(map(len, self.outputs)), self.class_outputs
        return (
            f"{classes:,} class{'es' * (classes != 1)}, from {belonging:,} of {count:,} outputs; "
            f"{competing} (convention {self.convention})"
        )

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """Outputs that belong to no class."""
        belonging = {output for some in self.outputs or () for output in some}
        return tuple(output for output in range(self.count or 0) if output not in belonging)

    @property
    def class_outputs(self) -> int:
        """Number of outputs of the model that stand for classes; 0 if it is unknown."""
        return (self.count or 0) - self.outcomes if self.count else 0

    @cached_property
    def competing(self) -> tuple[int, ...]:
        """Outputs that belong to no class, but compete."""
        return self.rest if self.convention == "all" else self.rest[len(self.rest) - self.outcomes :]

    @cached_property
    def columns(self) -> dict[int, int]:
        """Column by output."""
        classes = self.outputs or ()
        columns = {output: label for label, some in enumerate(classes) for output in some}
        return columns | {output: len(classes) + place for place, output in enumerate(self.competing)}

    @property
    def column_count(self) -> int | None:
        """Number of columns."""
        if self.outputs is None:
            return self.count
        return len(self.outputs) + len(self.competing)

    @property
    def class_columns(self) -> int | None:
        """Number of columns that stand for classes; the others are outcomes."""
        count = self.column_count
        return None if count is None else count - self.outcomes

    @property
    def is_trivial(self) -> bool:
        """Whether only one class competes, so that it is predicted for all images."""
        if self.outputs is None:
            return self.class_columns == 1
        return sum(map(bool, self.outputs)) + len(self.competing) - self.outcomes == 1

    def apply(self, logits: Any) -> Any:
        """Convert logits of all outputs, an array or a tensor `(images, outputs)`, to logits of the columns.

        The logit of a class is the maximum of its outputs: the class wins exactly if one of its outputs does.
        That of a class without outputs is -inf.
        """
        if self.outputs is None:
            return logits
        if logits.shape[1] != self.count:
            raise LabelError(f"logits must have {self.count} columns, one per output, got {logits.shape[1]}")
        members, empty = self._members
        if is_tensor(logits):
            import torch

            places = torch.as_tensor(members, device=logits.device)
            made = logits[:, places].amax(dim=2)
            if empty.any():
                made = made.masked_fill(torch.as_tensor(empty, device=logits.device), -torch.inf)
            if not self.competing:
                return made
            rest = torch.as_tensor(self.competing, dtype=torch.int64, device=logits.device)
            return torch.cat([made, logits[:, rest]], dim=1)
        made = logits[:, members].max(axis=2)
        made[:, empty] = -np.inf
        if not self.competing:
            return made
        return np.concatenate([made, logits[:, np.array(self.competing, np.int64)]], axis=1)

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the outputs of each class, padded with the first one, and which classes have none."""
        assert self.outputs is not None
        most = max(map(len, self.outputs))
        filled = [(*some, *((some or (0,))[0],) * (most - len(some))) for some in self.outputs]
        return np.array(filled, np.int64), np.array([not some for some in self.outputs])

    def facts(self) -> dict[str, Any]:
        """Return all that can change a prediction as JSON values; nothing if labels are outputs."""
        outcomes = {"outcomes": self.outcomes} if self.outcomes else {}
        if self.outputs is None:
            return {**outcomes, "count": self.count} if outcomes else {}
        short = [some[0] if len(some) == 1 else list(some) for some in self.outputs]
        return {"count": self.count, "outputs": short, "convention": self.convention, **outcomes}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> LabelSpace:
        """Return the space that `facts` describes."""
        outcomes = facts.get("outcomes", 0)
        if "outputs" not in facts:
            return cls(facts.get("count"), outcomes=outcomes)
        outputs: Sequence[Any] = facts["outputs"]
        listed = tuple(tuple(some) if isinstance(some, list) else (some,) for some in outputs)
        return cls(facts["count"], listed, facts["convention"], outcomes)
