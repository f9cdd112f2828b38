"""A wrong constant does not pass: what affects pixels fails the gate, and every constant is pinned.

`tests/golden/mutations.csv` has for each constant, moved up and down, the smallest step that the gate
notices; every one is tried again here. Constants without an effect on pixels, and those of the scale
`inception`, for which there are no reference outputs, are pinned by their fingerprints
(`tests/store/test_frozen.py`).
"""

from __future__ import annotations

from functools import cache

import pytest
from golden_data import Entry, from_pack, read_gate
from mutations import STEPS, Mutation, by_condition, constants, noticed, read_mutations

BLIND = {
    ("canny_edges", "high"): "the slope of a digit's edge is far above or below it",
    ("canny_edges", "low"): "the slope of a digit's edge is far above it",
    ("defocus_blur", "radius"): "a disk changes only where its rim crosses the middle of a pixel",
    ("defocus_blur", "softness"): "at 0.1 and below the Gaussian has no weight outside its middle",
    ("elastic_transform", "sigma"): "of a field that is multiplied by zero",
    ("fog", "least_side"): "images are larger than the smallest map",
    ("glass_blur", "sigma"): "at 0.1 and below the Gaussian has no weight outside its middle",
    ("motion_blur", "radius"): "the kernel is cut off where it has no weight left",
    ("snow", "radius"): "the kernel is cut off where it has no weight left",
    ("spatter", "spread"): "where the mean of the noise is the threshold, half of it is above",
    ("spatter", "strength"): "of water; mud has none",
}
"""Constants that can be off by more than 10 % somewhere and change no pixel there, and why."""


@cache
def entries() -> dict[str, list[Entry]]:
    return by_condition(from_pack())


CASES: dict[str, list[Mutation]] = {}
for one in read_mutations():
    CASES.setdefault(one.condition.split("/")[1], []).append(one)


@pytest.mark.parametrize("name", CASES)
def test_wrong_constants_are_noticed(name: str) -> None:
    gate = read_gate()
    for condition, constant, direction, step in CASES[name]:
        wrong = noticed(entries()[condition], constant, direction, STEPS[-1] if step is None else step, gate)
        assert wrong is (step is not None), (condition, constant, direction)


def test_every_constant_was_tried() -> None:
    found = {(mutation.condition, mutation.constant) for mutation in read_mutations()}
    assert found == {
        (condition, name) for condition, some in entries().items() for name in constants(some[0])
    }


def test_most_constants_are_noticed_at_once() -> None:
    """All except the listed tests fail if a constant is off by 10 %, or by 1 if it is an integer."""
    late = {
        (mutation.condition.split("/")[1], mutation.constant)
        for mutation in read_mutations()
        if mutation.step is None or mutation.step > 0.1
    }
    assert late == set(BLIND)
