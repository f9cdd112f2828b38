"""`precision`: as many images as it takes, in a fair order, and no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import RunOptions
from beaufort.models import Model, as_model
from beaufort.results import evaluate, open_results, score
from beaufort.store import FileStore
from beaufort.suites import Suite

CLASSES = 4
SUITE = Suite(
    name="small",
    version=1,
    dataset="dots",
    scale="mnist",
    corruptions=("stripe", "shear"),
    severities="published",
)


def dataset(count: int = 3000) -> Dataset:
    """Dark images with a bright quarter, which is the class; sorted by class, so that the order matters."""
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(0, CLASSES, count))
    images = rng.integers(0, 120, (count, 28, 28, 1)).astype(np.uint8)
    for i, label in enumerate(labels):
        y, x = divmod(int(label), 2)
        images[i, 14 * y : 14 * y + 14, 14 * x : 14 * x + 14] += rng.integers(0, 12, dtype=np.uint8)
    return from_arrays("dots", images, labels)


def quarters(calls: list[int] | None = None) -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        if calls is not None:
            calls.append(len(images))
        sums = images[..., 0].astype(np.float32).reshape(-1, 2, 14, 2, 14).mean(axis=(2, 4))
        return np.asarray(sums.reshape(-1, 4))

    return as_model(predict, name="quarters", classes=CLASSES, version="1")


def test_it_stops_when_it_is_precise_enough(tmp_path: Path) -> None:
    evaluation = evaluate([quarters()], SUITE, dataset(), tmp_path, options=RunOptions(precision=2.5))
    stop = evaluation.stop
    assert stop is not None
    assert stop.met
    assert 500 <= stop.images < 3000
    assert stop.of == 3000
    scores = score(open_results(FileStore(tmp_path)))
    assert scores.images == stop.images
    assert scores.models[0].headline.half_width == pytest.approx(stop.widest, rel=0.1)
    every = evaluate([quarters()], SUITE, dataset(), tmp_path / "all")
    assert every.stop is None
    expected = score(open_results(FileStore(tmp_path / "all"))).models[0].headline.value
    seen = scores.models[0].headline
    assert (
        seen.low <= expected <= seen.high
    )  # it would not be in the order of the file: classes come one by one


def test_images_come_in_a_random_order_and_under_their_own_ids(tmp_path: Path) -> None:
    evaluate([quarters()], SUITE, dataset(), tmp_path, options=RunOptions(precision=3))
    predictions = open_results(FileStore(tmp_path)).predictions("quarters")
    known = dict(zip(dataset().ids, dataset().labels.tolist(), strict=True))
    assert all(
        known[image] == label
        for image, label in zip(predictions.ids, predictions.labels.tolist(), strict=True)
    )
    fractions = np.bincount(predictions.labels, minlength=CLASSES) / len(predictions)
    assert fractions == pytest.approx(0.25, abs=0.08)


def test_a_prediction_is_the_same_as_in_a_complete_run(tmp_path: Path) -> None:
    evaluate([quarters()], SUITE, dataset(), tmp_path / "some", options=RunOptions(precision=5))
    evaluate([quarters()], SUITE, dataset(), tmp_path / "all")
    some = open_results(FileStore(tmp_path / "some")).predictions("quarters")
    whole = open_results(FileStore(tmp_path / "all")).predictions("quarters")
    places = {image: place for place, image in enumerate(whole.ids)}
    where = [places[image] for image in some.ids]
    assert np.array_equal(some.top, whole.top[:, where])


@pytest.mark.usefixtures("no_model_checks")
def test_it_takes_up_where_it_stopped(tmp_path: Path) -> None:
    calls: list[int] = []
    first = evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=3))
    again = evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=3))
    assert first.stop == again.stop
    assert first.stop is not None
    assert sum(calls) == 3 * first.stop.images
    more = evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=2))
    assert more.stop is not None
    assert more.stop.images > first.stop.images
    assert sum(calls) == 3 * more.stop.images
    assert (
        evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=2)).stop
        == more.stop
    )
    assert (
        evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=3)).stop
        == first.stop
    )
    last = evaluate([quarters(calls)], SUITE, dataset(), tmp_path, options=RunOptions(precision=3))
    assert {(result.images, result.reused) for result in last.results} == {(first.stop.images, True)}
    assert sum(calls) == 3 * more.stop.images


def test_images_may_run_out(tmp_path: Path) -> None:
    stop = evaluate([quarters()], SUITE, dataset(600), tmp_path, options=RunOptions(precision=0.1)).stop
    assert stop is not None
    assert not stop.met
    assert stop.images == stop.of == 600


@pytest.mark.parametrize("precision", [0, -1, 0.01, float("nan")])
def test_a_precision_that_cannot_be(tmp_path: Path, precision: float) -> None:
    with pytest.raises(OptionError, match=r"precision.*0\.05 .*got"):
        evaluate([quarters()], SUITE, dataset(600), tmp_path, options=RunOptions(precision=precision))


def test_conditions_alone_have_no_headline(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="requires a suite"):
        evaluate(
            [quarters()], SUITE.conditions("dots"), dataset(600), tmp_path, options=RunOptions(precision=2)
        )


def test_shuffled_dataset_has_the_same_data() -> None:
    data = dataset(100)
    mixed = data.shuffled(3)
    assert mixed.digest() == data.digest()
    assert sorted(mixed.ids) == sorted(data.ids)
    assert list(mixed.ids) != list(data.ids)
    assert list(mixed.ids) == list(data.shuffled(3).ids)
    place = list(data.ids).index(mixed.ids[0])
    assert np.array_equal(mixed[0].image, data[place].image)
    with pytest.raises(OptionError, match=r"dots.*3"):
        mixed.shuffled(4)
