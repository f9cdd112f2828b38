"""Two-way questions: the intended category, and the one that a zero-shot model wrongly favors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from beaufort.mining.names import display_name
from beaufort.mining.plan import MiningError
from beaufort.mining.verdicts import OTHER, Verdicts

_ORDERS = ("by-image", "both", "truth-first")
"""In which order the two names stand."""


@dataclass(frozen=True)
class TwoWayQuestion:
    """An image and two names."""

    image: str
    """Its id."""
    truth: str
    distractor: str
    truth_first: bool

    @property
    def text(self) -> str:
        """As a model reads it.

        >>> TwoWayQuestion("1.png", "cup", "t_shirt", truth_first=False).text
        'What is the main object in this image? Answer with one of these two: t shirt, cup.'
        """
        names = [display_name(self.truth), display_name(self.distractor)]
        if not self.truth_first:
            names.reverse()
        return f"What is the main object in this image? Answer with one of these two: {', '.join(names)}."

    @property
    def key(self) -> str:
        """What tells it from the others: the image and the order."""
        return f"{self.image} {'truth' if self.truth_first else 'distractor'} first"


def make_questions(
    verdicts: Verdicts, favorites: str, *, orders: str = "by-image", seed: int = 0
) -> tuple[TwoWayQuestion, ...]:
    """A question for each image, or two.

    Args:
        verdicts: with the answers of the model whose wrong favorites are the distractors.
        favorites: that model, as a rule a zero-shot one, which chooses among the categories alone.
        orders: `by-image`, a fair coin that the image's id and the seed throw; `both` orders; or
            `truth-first`, as ImageNet-D was published, which favors models that prefer the first.
        seed: of the coin.
    """
    check_orders(orders)
    row = verdicts.runners_up[verdicts.row(favorites)]
    if (row == OTHER).any():
        lost = verdicts.ids[int((row == OTHER).argmax())]
        raise MiningError(
            f"{favorites} must have a wrong category among its five best answers to every image, got none "
            f"for {lost}; use a model that chooses among the categories alone"
        )
    questions = []
    for image, label, wrong in zip(verdicts.ids, verdicts.labels.tolist(), row.tolist(), strict=True):
        for first in _orders(image, orders, seed):
            truth, distractor = verdicts.categories[label], verdicts.categories[wrong]
            questions.append(TwoWayQuestion(image, truth, distractor, first))
    return tuple(questions)


def _orders(image: str, orders: str, seed: int) -> Sequence[bool]:
    if orders == "both":
        return (True, False)
    if orders == "truth-first":
        return (True,)
    return (sha256(f"{seed} {image}".encode()).digest()[0] % 2 == 0,)


def check_orders(orders: str) -> None:
    """Refuse what is no order of the two names."""
    if orders not in _ORDERS:
        raise MiningError(f"orders must be {', '.join(_ORDERS[:-1])} or {_ORDERS[-1]}, got {orders!r}")
