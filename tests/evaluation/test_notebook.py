"""A run in a notebook: no store, a table, a data frame."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from fsspec import filesystem

import beaufort
from beaufort import evaluate
from beaufort._core.errors import MissingExtraError, OptionError
from beaufort.data import Dataset, from_arrays
from beaufort.models import Model, as_model
from beaufort.results import open_results, score
from beaufort.suites import Suite

SUITE = Suite(
    name="two",
    version=1,
    title="Two <kinds>",
    dataset="colors",
    scale="cifar",
    corruptions=("fog", "contrast"),
    severities=(1, 5),
)


def data() -> Dataset:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = np.eye(3)[labels][:, None, None] * 60 + rng.integers(0, 180, (60, 32, 32, 3))
    return from_arrays("colors", images.astype(np.uint8), labels, classes=("red", "green", "blue"))


def model(name: str = "mean <color>") -> Model:
    return as_model(
        lambda shown: shown.mean(axis=(1, 2)).astype(np.float32), name=name, classes=3, version=name
    )


def test_without_a_store_the_numbers_are_those_of_one(tmp_path: object) -> None:
    loose = evaluate([model()], SUITE, data())
    kept = evaluate([model()], SUITE, data(), f"{tmp_path}/store")
    assert [one.accuracy for one in loose.results] == [one.accuracy for one in kept.results]
    mine, theirs = loose.scores(resamples=100), score(open_results(f"{tmp_path}/store"), resamples=100)
    assert mine.models[0].metrics == theirs.models[0].metrics
    assert mine.models[0].conditions == theirs.models[0].conditions
    assert mine.notes == theirs.notes
    assert kept.scores(calibration=False).models[0].metrics == mine.models[0].metrics


def test_memory_store_is_deleted_with_the_result() -> None:
    found = evaluate([model()], SUITE, data())
    assert found.store is not None
    location = found.store.location
    assert filesystem("memory").exists(location)
    del found
    gc.collect()
    assert not filesystem("memory").exists(location)


def test_a_notebook_shows_the_headline_and_no_markup_of_names() -> None:
    found = evaluate([model(), model("other")], SUITE, data())
    shown = found._repr_html_()
    assert "mean &lt;color&gt;" in shown
    assert "Two &lt;kinds&gt;" in shown
    assert "<color>" not in shown
    for one in found.scores(calibration=False).models:
        assert f"{one.headline:.1%}".replace(" %", "\u00a0%") in shown
    bare = evaluate([model()], SUITE.conditions("colors")[:1], data())
    assert "<td>colors</td>" in bare._repr_html_()
    with pytest.raises(OptionError, match="scores require a suite"):
        bare.scores()


def test_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed; the extra pandas has it")
    found = evaluate([model()], SUITE, data())
    frame = found.to_pandas()
    assert list(frame["accuracy"]) == [one.accuracy for one in found.results]
    assert ((frame["low"] <= frame["accuracy"]) & (frame["accuracy"] <= frame["high"])).all()
    scores = found.scores(resamples=100)
    every = scores.to_pandas()
    fog = every.query("metric == 'accuracy' and corruption == 'fog' and severity == 5")
    assert fog["value"].item() == next(
        one.value
        for c, one in scores.models[0].conditions.items()
        if (c.corruption, c.severity) == ("fog", 5)
    )
    assert every["severity"].dtype == pd.Int64Dtype()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*'beaufort\[pandas\]'"):
        found.to_pandas()


def test_evaluate_is_listed() -> None:
    assert "evaluate" in dir(beaufort)
