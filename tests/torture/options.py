"""Options of models with values that they cannot have."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort.models import adapters, load_model
from tests.torture.service import Outcome

__all__ = ["VALUES", "load_with"]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 1.5, float("nan"), float("inf"), float("-inf"), 10**30),
    *("", "abc", "\0", "\ud800", "1,2", "0..1", "NCHW", "x" * 10_000, b"x"),
    *(
        [],
        [1],
        [1, 2, 3],
        ["a"],
        ["a", "a"],
        [None],
        [float("nan")] * 3,
        (0, 0),
        (-1, 5),
        (16, 16),
        (10**9, 10**9),
    ),
    *({}, {"a": 1}, object(), np.array([1, 2]), np.array(3), np.float32(2)),
)


def load_with(values: tuple[Any, ...] = VALUES) -> Outcome:
    """Load models with every value for every option, and ask those that are loaded."""
    nets = ModuleType("torture_nets")
    nets.make = lambda: lambda images: np.zeros((len(images), 3), np.float32)  # type: ignore[attr-defined]
    sys.modules["torture_nets"] = nets
    outcome = Outcome()
    images = np.zeros((2, 28, 28, 1), np.uint8)
    for text in ("demo:digits", "python:torture_nets:make"):
        for name in adapters[text.partition(":")[0]].options:
            for value in values:
                outcome.requests += 1
                try:
                    model = load_model(text, **{name: value})
                    model(images)
                    str(model.spec.to_dict()).encode()
                    outcome.replies += 1
                except BeaufortError:
                    outcome.errors += 1
                except Exception as error:
                    outcome.findings.append(
                        f"{text} {name}={value!r:.40}: {type(error).__name__}: {error!s:.100}"
                    )
    return outcome
