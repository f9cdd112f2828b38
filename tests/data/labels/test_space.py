"""Label spaces, compared with a slow loop."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.data.labels import LabelError, LabelSpace
from tests.commands import shows

torch = pytest.importorskip("torch")


@st.composite
def spaces(draw: st.DrawFn) -> LabelSpace:
    count = draw(st.integers(1, 12))
    order = draw(st.permutations(range(count)))
    taken = draw(st.integers(1, count))
    classes = draw(st.integers(1, 6))
    rows: list[list[int]] = [[] for _ in range(classes)]
    for output in order[:taken]:
        rows[draw(st.integers(0, classes - 1))].append(output)
    return LabelSpace(count, tuple(map(tuple, rows)), draw(st.sampled_from(["restricted", "all"])))


def slowly(space: LabelSpace, row: list[float]) -> list[float]:
    if space.outputs is None:
        return row
    made = [max((row[output] for output in some), default=-np.inf) for some in space.outputs]
    belonging = [output for some in space.outputs for output in some]
    if space.convention == "all":
        made += [value for output, value in enumerate(row) if output not in belonging]
    return made


@given(spaces(), st.integers(0, 2**32 - 1))
def test_columns(space: LabelSpace, seed: int) -> None:
    assert space.count is not None
    logits = np.random.default_rng(seed).normal(size=(4, space.count)).astype(np.float32)
    made = space.apply(logits)
    assert made.tolist() == [slowly(space, row) for row in logits.tolist()]
    assert made.shape[1] == space.column_count
    assert np.array_equal(space.apply(torch.from_numpy(logits)).numpy(), made)


@given(spaces(), st.integers(0, 2**32 - 1))
def test_correct_predictions_of_label_sets(space: LabelSpace, seed: int) -> None:
    """A class wins exactly if one of its outputs is the best of those that compete."""
    assert space.count is not None
    logits = np.random.default_rng(seed).normal(size=(1, space.count)).astype(np.float32)
    outputs = space.outputs or tuple((output,) for output in range(space.count))
    belonging = {output for some in outputs for output in some}
    competing = range(space.count) if space.convention == "all" else sorted(belonging)
    best = max(competing, key=lambda output: logits[0, output])
    winner = int(space.apply(logits).argmax())
    label = next((label for label, some in enumerate(outputs) if best in some), None)
    assert winner == label if label is not None else winner >= len(outputs)


@given(spaces())
def test_facts_read_back(space: LabelSpace) -> None:
    assert pickle.loads(pickle.dumps(space)) == space
    read = LabelSpace.from_facts(space.facts())
    assert (read.outputs, read.identity) == (space.outputs, space.identity)
    if not space.identity:
        assert read == space
    for output, column in space.columns.items():
        one_hot = np.full((1, space.count or 0), -1.0, np.float32)
        one_hot[0, output] = 1
        assert space.apply(one_hot).argmax() == column


def test_all_outputs_in_order_are_identity() -> None:
    space = LabelSpace(3, ((0,), (1,), (2,)))
    assert space.identity
    assert space.facts() == {}
    assert shows(str(space), "numbers of outputs", "convention all")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((3, ((0,), (3,))), "from 0 to 2"),
        ((3, ((0,), (-1,))), "from 0 to 2"),
        ((3, ((0, 1), (1,))), "output 1"),
        ((3, ((), ())), "got none"),
        ((3, ((0,),), "some"), r"convention .*'restricted' or 'all'.* 'some'"),
    ],
)
def test_mistakes(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(LabelError, match=says):
        LabelSpace(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("space", "is_trivial"),
    [
        (LabelSpace(1), True),
        (LabelSpace(2), False),
        (LabelSpace(), False),
        (LabelSpace(3, ((1,),)), True),
        (LabelSpace(3, ((1, 2), ())), True),
        (LabelSpace(3, ((1,), (2,))), False),
        (LabelSpace(3, ((1,),), "all"), False),
        (LabelSpace(3, ((0, 1, 2),), "all"), True),
    ],
)
def test_a_single_class_is_every_prediction(space: LabelSpace, is_trivial: bool) -> None:
    assert space.is_trivial is is_trivial
