"""Sets of valid labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.data.labels import LabelError, LabelSets, LabelSpace, read_label_sets
from beaufort.evaluation import predictions
from beaufort.models.scoring import correct, score_logits
from beaufort.store import summarize


def test_the_published_list(tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    file.write_text(json.dumps([[5], [], [2, 7]]))
    label_sets = read_label_sets(file)
    ids = ["n01440764/ILSVRC2012_val_00000003.JPEG", "ILSVRC2012_val_00000001.jpg", "val/1"]
    assert [label_sets.of(image) for image in ids] == [(2, 7), (5,), ()]
    assert label_sets.labels(ids, LabelSpace(10)).tolist() == [[2, 7], [5, -1], [-1, -1]]
    subset = LabelSpace(10, ((7,), (5, 2)))
    assert label_sets.labels(ids, subset).tolist() == [[1, 0], [1, -1], [-1, -1]]
    assert label_sets.labels(ids, LabelSpace(10, ((5,),))).tolist() == [[-1, -1], [0, -1], [-1, -1]]
    assert label_sets.labels(ids, LabelSpace(10, ((5,),), "all")).tolist() == [[3, 7], [0, -1], [-1, -1]]
    with pytest.raises(LabelError, match="'ILSVRC2012_val_00000004"):
        label_sets.of("ILSVRC2012_val_00000004.JPEG")
    with pytest.raises(LabelError, match=r"6.* outputs.* 7"):
        label_sets.labels(ids, LabelSpace(6))


@pytest.mark.parametrize("text", ["3", "[]", "[3]", '{"a": ["b"]}', "[[-1]]", "[[1.5]]", "{"])
def test_files_of_other_formats(tmp_path: Path, text: str) -> None:
    (tmp_path / "real.json").write_text(text)
    with pytest.raises(LabelError, match=r"real\.json"):
        read_label_sets(tmp_path / "real.json")


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=7, unique=True), min_size=1, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_a_set_is_one_class(sets: list[list[int]], seed: int) -> None:
    """Compared with a sum of probabilities."""
    label_sets = LabelSets("sets", {str(i): tuple(row) for i, row in enumerate(sets)})
    logits = np.random.default_rng(seed).normal(0, 3, (len(sets), 7)).astype(np.float32)
    valid = label_sets.labels([str(i) for i in range(len(sets))], LabelSpace(7))
    scores = score_logits(logits, valid)
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    for row, labels in enumerate(sets):
        inside = sum(p[row, label] for label in labels)
        outside = [p[row, label] for label in range(7) if label not in labels]
        assert scores.p_label[row] == pytest.approx(inside, abs=1e-6)
        assert scores.nll[row] == pytest.approx(-np.log(inside) if labels else np.inf, rel=1e-5, abs=1e-6)
        assert scores.brier[row] == pytest.approx((1 - inside) ** 2 + sum(q * q for q in outside), abs=1e-6)
        assert correct(scores.top, valid)[row] == (logits[row].argmax() in labels)
        best5 = np.argsort(-logits[row], kind="stable")[:5]
        assert correct(scores.top, valid, among=5)[row] == bool(set(best5.tolist()) & set(labels))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_sets_of_one_are_labels(labels: list[int], seed: int) -> None:
    logits = np.random.default_rng(seed).normal(0, 3, (len(labels), 7)).astype(np.float32)
    single, sets = np.array(labels), np.array(labels)[:, None]
    for one, other in zip(score_logits(logits, single), score_logits(logits, sets), strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


def test_images_without_a_label_are_counted_apart() -> None:
    logits = np.eye(3, dtype=np.float32)
    valid = np.array([[0, 1], [2, -1], [-1, -1]])
    table = predictions(["a", "b", "c"], [0, 1, 2], logits, label_sets=valid)
    found = summarize(table)
    assert (found["rows"], found["correct"], found["unread"]) == (2, 1, 1)
    assert summarize(predictions(["a", "b", "c"], [0, 1, 2], logits))["unread"] == 0
