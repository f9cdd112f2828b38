"""Example images are those that the models saw, and their captions come from the store."""

from __future__ import annotations

import io
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.data import Dataset
from beaufort.models import as_model
from beaufort.report import Examples, examples_of_data, examples_of_images
from beaufort.report.thumbnails import thumbnail_uri
from beaufort.results import Scores, open_results
from beaufort.suites.conditions import Condition


def pixels(examples: Examples, place: int) -> np.ndarray:
    kind, _, content = examples.images[place].partition(";base64,")
    assert kind == "data:image/png"  # small images are lossless
    return np.asarray(Image.open(io.BytesIO(b64decode(content))))


@pytest.fixture(scope="module")
def examples(scores: Scores, data: Dataset) -> Examples:
    return examples_of_data(scores, data, seed=3)


def test_strips_show_the_evaluated_images(scores: Scores, data: Dataset, examples: Examples) -> None:
    predictions = scores.results.predictions("good")
    assert len(examples.strips) == 3
    for strip in examples.strips:
        place = list(data.ids).index(strip.name)
        assert strip.label == data.labels[place]
        assert predictions.correct[0, place]
        for row, condition in enumerate(scores.suite.conditions(data.name)):
            image = data[place].image[None]
            expected = condition.apply(image, ids=[strip.name], seed=0, scale="cifar")[0]
            assert np.array_equal(pixels(examples, strip.images[row]), expected)
            result = strip.predictions["good"][row]
            assert result.label == predictions.top[row, place, 0]
            assert result.confidence == pytest.approx(float(predictions.confidence[row, place]))


def test_mistakes_are_mistakes(scores: Scores, data: Dataset, examples: Examples) -> None:
    assert examples.mistakes is not None
    assert set(examples.mistakes) == {model.model for model in scores.models}
    for name, found in examples.mistakes.items():
        predictions = scores.results.predictions(name)
        rows = {(c.corruption, c.severity): row for row, c in enumerate(predictions.conditions)}
        assert found
        for one in found:
            assert one.prediction.label != one.label
            row = rows[one.corruption, one.severity]
            condition = Condition(data.name, one.corruption, one.severity)
            shown = pixels(examples, one.image)
            places = [
                place
                for place in np.flatnonzero(predictions.top[row, :, 0] == one.prediction.label).tolist()
                if predictions.labels[place] == one.label
                and np.array_equal(
                    shown, condition.apply(data[place].image[None], ids=[data.ids[place]], scale="cifar")[0]
                )
            ]
            assert len(places) == 1
            assert one.clean == predictions.top[0, places[0], 0]
            assert one.prediction.confidence == pytest.approx(float(predictions.confidence[row, places[0]]))


def test_note_names_the_sampled_images(
    scores: Scores, data: Dataset, examples: Examples, make: SimpleNamespace, tmp_path: Path
) -> None:
    assert "good classifies correctly" in examples.note
    suite = replace(make.suite, clean=False)
    make.fill(tmp_path / "damaged", data, suite, ["good"])
    damaged = make.scored(open_results(tmp_path / "damaged"))
    assert examples_of_data(damaged, data).note.endswith("with the seed 0.")


def test_draws_follow_the_seed(scores: Scores, data: Dataset, examples: Examples) -> None:
    assert examples_of_data(scores, data, seed=3) == examples
    assert examples_of_data(scores, data, seed=4).strips != examples.strips


def test_other_data_are_rejected(scores: Scores, make: SimpleNamespace) -> None:
    with pytest.raises(OptionError, match="the run, toys"):
        examples_of_data(scores, make.dataset(count=50))


def test_progress_ends_at_the_end(scores: Scores, data: Dataset) -> None:
    steps: list[tuple[int, int]] = []
    examples_of_data(scores, data, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (len(steps), len(steps))


def test_figures_do_not_read_the_test_images(
    scores: Scores, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a test image was opened")

    monkeypatch.setattr(type(data.pixels), "read", fail)
    for place in range(5):
        Image.new("RGB", (50 + place, 40), (place * 40, 90, 90)).save(tmp_path / f"{place}.png")
    for given in ("scene", str(tmp_path)):
        found = examples_of_images(scores, given)
        assert found.mistakes is None
        assert "no test images" in found.note
        assert all(strip.label is None and not strip.predictions for strip in found.strips)
    assert len(found.strips) == 3
    assert pixels(found, found.strips[0].images[0]).shape == (32, 32, 3)
    monkeypatch.undo()
    with pytest.raises(OptionError, match=r"toys.* test images"):
        examples_of_images(scores, data)


def test_models_can_predict_examples(scores: Scores, make: SimpleNamespace) -> None:
    bright = as_model(
        lambda images: np.stack(
            [images.mean(axis=(1, 2, 3)) / 10] + [np.full(len(images), 12.0)] * 3, axis=1
        ),
        name="bright",
        classes=4,
        version="1",
    )
    other = make.dataset(count=7)
    found = examples_of_images(scores, other, predict_with=[bright])
    strip = found.strips[0]
    assert strip.label == 0
    assert len(strip.predictions["bright"]) == len(scores.suite.conditions())
    mean = pixels(found, strip.images[0]).mean() / 10
    odds = np.exp([mean, 12, 12, 12])
    assert strip.predictions["bright"][0].label == int(np.argmax(odds))
    assert strip.predictions["bright"][0].confidence == pytest.approx(odds.max() / odds.sum(), rel=1e-3)
    assert "by bright" in found.note


def test_digits_are_painted_for_suites_of_digits(digits: tuple[Scores, Dataset]) -> None:
    found = examples_of_images(digits[0])
    assert pixels(found, 0).shape == (28, 28)
    assert len(found.strips[0].images) == 16


def test_photos_become_small_jpegs() -> None:
    rng = np.random.default_rng(0)
    uri = thumbnail_uri(rng.integers(0, 256, (224, 300, 3)).astype(np.uint8), 112)
    image = Image.open(io.BytesIO(b64decode(uri.partition(",")[2])))
    assert (image.format, image.size) == ("JPEG", (112, 84))
