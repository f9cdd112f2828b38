"""`evaluate` accepts common types of arguments, and rejects others with clear errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort import evaluate
from beaufort._core.errors import BeaufortError, OptionError
from beaufort.corruptions.rng import Id
from beaufort.data import from_arrays
from beaufort.evaluation import LocalOptions, RunOptions
from beaufort.models import as_model
from beaufort.suites import get_suite, suite_from_corruptions
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import register_shift
from beaufort.testing._contracts import example_image

IMAGES = np.stack([example_image(32, 32, variant=i) for i in range(8)])
LABELS = np.arange(8) % 3


def mean(images: np.ndarray) -> np.ndarray:
    return np.asarray(images.mean(axis=(1, 2)), np.float32)


MODEL = as_model(mean, name="mean", classes=3, version="1")


def correct_counts(data: Any, tmp_path: Path, model: Any = MODEL, suite: Any = ("contrast",)) -> list[int]:
    found = evaluate(model, suite, data, tmp_path / "store")
    return [result.correct for result in found.results]


@pytest.fixture
def right(tmp_path: Path) -> list[int]:
    return correct_counts(from_arrays("plain", IMAGES, LABELS), tmp_path / "plain")


# Models


def test_one_model_or_many(tmp_path: Path, right: list[int]) -> None:
    pair = (IMAGES, LABELS)
    assert correct_counts(pair, tmp_path / "a", [MODEL]) == right
    assert correct_counts(pair, tmp_path / "b", (MODEL,)) == right
    assert correct_counts(pair, tmp_path / "c", mean) == right  # a function
    assert correct_counts(pair, tmp_path / "d", iter([MODEL])) == right


def test_a_torch_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    found = evaluate(module, ["contrast"], (IMAGES, LABELS), tmp_path / "a")
    assert {result.model for result in found.results} == {"Sequential"}
    assert [result.images for result in found.results] == [8] * 6
    again = evaluate([module.eval()], ["contrast"], (IMAGES, LABELS), tmp_path / "a")
    assert all(result.reused for result in again.results)


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ([], r"models .*empty"),
        (3, r"list.* got .*int"),
        ([3], r"got .*type int"),
        ({"a": MODEL}, r"list.* got .*dict"),
        ([dict], "got the class dict instead of an instance"),
        (None, r"got .*type NoneType"),
    ],
)
def test_invalid_model(tmp_path: Path, models: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        evaluate(models, ["fog"], (IMAGES, LABELS), tmp_path)


def test_error_explains_how_to_name_two_modules_of_one_class(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'mean' twice.*name="):
        evaluate([mean, mean], ["fog"], (IMAGES, LABELS), tmp_path)


# Suites


def test_names_of_corruptions(tmp_path: Path) -> None:
    found = evaluate(MODEL, ["fog", "noise"], (IMAGES, LABELS), tmp_path)
    named = [result.condition for result in found.results]
    assert named[:3] == ["data", "data/fog@1", "data/fog@2"]
    assert len(named) == 1 + 4 * 5
    assert found.scores(calibration=False).models[0].metrics["mean_accuracy"].n == 8
    one = evaluate(MODEL, "fog", (IMAGES, LABELS), tmp_path)
    assert [result.fingerprint for result in one.results] == [r.fingerprint for r in found.results[:6]]
    assert all(result.reused for result in one.results)


def test_conditions(tmp_path: Path) -> None:
    fog = Condition("data", "fog", 3)
    for requested in (fog, [fog], (fog,)):
        found = evaluate(MODEL, requested, (IMAGES, LABELS), tmp_path)
        assert [result.condition for result in found.results] == ["data/fog@3"]
        assert not found.predictions


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        ([], "suite must be .* got an empty list"),
        (3, r"suite must be .*got .*type int"),
        (["fog", 3], r"got a list of 2 \(str, int\)"),
        (["fogg"], r"unknown corruption 'fogg'.* 'fog'"),
        (["fog@3"], "a corruption must be a name such as 'fog', got 'fog@3'"),
        ("fogg", "unknown suite 'fogg'"),
    ],
)
def test_invalid_suite(tmp_path: Path, suite: Any, says: str) -> None:
    with pytest.raises(BeaufortError, match=says):
        evaluate(MODEL, suite, (IMAGES, LABELS), tmp_path)


def test_suites_of_corruptions_have_names_that_say_what_is_in_them() -> None:
    assert str(suite_from_corruptions(["fog", "snow"], [3])) == "fog-snow-3@1"
    assert str(suite_from_corruptions(["weather"])) == "weather-1-5@1"
    assert suite_from_corruptions(["mnist-c"]).name != get_suite("mnist-c").name
    names = ["gaussian_noise", "defocus_blur", "elastic_transform", "jpeg_compression", "pixelate"]
    long = [suite_from_corruptions(names, [severity]).name for severity in (1, 2)]
    assert long[0].startswith("5-corruptions-")
    assert long[0] != long[1]
    with pytest.raises(BeaufortError, match=r"severity.*1.*5.*6"):
        suite_from_corruptions(["fog"], [6])


def test_left_as_they_are() -> None:
    suite = get_suite("imagenet-c")
    left = suite.unprepared()
    assert (left.name, left.prepare, left.label_space) == ("imagenet-c-unprepared", (), "imagenet-1k")
    assert left.unprepared() is left
    assert get_suite("cifar10-c").unprepared() is get_suite("cifar10-c")


# Data


def test_images_and_labels(tmp_path: Path, right: list[int]) -> None:
    first = np.moveaxis(IMAGES, -1, 1)
    fraction = (IMAGES / 255).astype(np.float32)
    for number, images in enumerate((IMAGES, list(IMAGES), first, fraction)):
        assert correct_counts((images, LABELS), tmp_path / str(number)) == right
    assert correct_counts((IMAGES, LABELS.tolist()), tmp_path / "list") == right
    assert correct_counts([IMAGES, LABELS], tmp_path / "pair") == right


def test_tensors(tmp_path: Path, right: list[int]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    images, labels = torch.tensor(IMAGES).movedim(-1, 1), torch.tensor(LABELS)
    assert correct_counts((images, labels), tmp_path / "a") == right
    assert correct_counts((images.float() / 255, labels), tmp_path / "b") == right
    assert correct_counts((images.movedim(1, -1), labels), tmp_path / "c") == right


class Pairs:
    """A torch `Dataset`: a length, and items by index."""

    classes = ("a", "b", "c")

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def pairs() -> list[Any]:
    return [(image, int(label)) for image, label in zip(IMAGES, LABELS, strict=True)]


def test_items(tmp_path: Path, right: list[int]) -> None:
    from PIL import Image

    assert correct_counts(Pairs(pairs()), tmp_path / "a") == right
    images = [(Image.fromarray(image), label) for image, label in pairs()]
    assert correct_counts(Pairs(images), tmp_path / "b") == right
    mappings = [{"image": image, "label": label, "more": 1} for image, label in pairs()]
    assert correct_counts(Pairs(mappings), tmp_path / "c") == right
    found = evaluate(MODEL, ["contrast"], Pairs(pairs()), tmp_path / "a" / "store")
    assert all(result.reused for result in found.results)
    changed = [(image ^ 1, label) for image, label in pairs()]
    found = evaluate(MODEL, ["contrast"], Pairs(changed), tmp_path / "a" / "store")
    assert not any(result.reused for result in found.results)


def test_a_torch_dataset_and_a_loader(tmp_path: Path, right: list[int]) -> None:
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    torch = pytest.importorskip("torch")
    images = torch.tensor(IMAGES).movedim(-1, 1).float() / 255
    tensors = data.TensorDataset(images, torch.tensor(LABELS))
    assert correct_counts(tensors, tmp_path / "a") == right
    loader = data.DataLoader(tensors, batch_size=3, shuffle=True)
    assert correct_counts(loader, tmp_path / "a") == right
    assert correct_counts(data.Subset(tensors, range(8)), tmp_path / "b") == right

    class Stream(data.IterableDataset):  # type: ignore[name-defined,misc]
        def __iter__(self) -> Any:
            return iter(pairs())

    for thing in (Stream(), data.DataLoader(Stream())):
        with pytest.raises(OptionError, match=r"an.*Stream"):
            evaluate(MODEL, ["fog"], thing, tmp_path)


def test_random_transforms_are_rejected(tmp_path: Path) -> None:
    shifts = count(1)  # chance would repeat itself now and then

    class Augmented(Pairs):
        def __getitem__(self, index: int) -> Any:
            image, label = self.items[index]
            return np.roll(image, next(shifts), axis=0), label

    with pytest.raises(OptionError, match="remove random transforms"):
        evaluate(MODEL, ["fog"], Augmented(pairs()), tmp_path)


def test_an_item_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    class Broken(Pairs):
        targets = LABELS

        def __getitem__(self, index: int) -> Any:
            if index == 5:
                raise FileNotFoundError("5.png")
            return self.items[index]

    found = evaluate(MODEL, ["contrast"], Broken(pairs()), tmp_path)
    assert [problem.id for problem in found.problems] == ["item/5"]
    assert {(result.images, result.unread) for result in found.results} == {(7, 1)}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (IMAGES, r"got an array of shape \(8, 32, 32, 3\)"),
        ((IMAGES,), r"got a tuple of 1 \(ndarray\)"),
        ((IMAGES, LABELS[:5]), r"labels must be .*got int64 of shape \(5,\)"),
        ((IMAGES, LABELS / 2), "labels must be .*float64"),
        ((IMAGES, list("aabbccaa")), "labels must be"),
        ((IMAGES[0, 0], LABELS), r"images must be \(n, h, w, c\).*got an array of shape \(32, 3\)"),
        ((IMAGES.astype(np.float32), LABELS), "got float32 from 40 to 255"),
        ((IMAGES.astype(np.int64), LABELS), "images must be uint8, or floats from 0 to 1.*got int64"),
        (((IMAGES / 255 - 0.5) / 0.2, LABELS), "normalization belongs to the model"),
        (Pairs([]), r"number of images .*positive integer"),
        (Pairs([IMAGES[0]]), r"item 0 must be \(image, label\).*got ndarray"),
        ({"a": 1}, "data must be one dataset, .*got a"),
        (None, "data must be a path .*got an object of type NoneType"),
    ],
)
def test_invalid_data(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        evaluate(MODEL, ["fog"], data, tmp_path)


def test_a_long_text_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(BeaufortError, match="dataset not found"):
        evaluate(MODEL, ["fog"], "x" * 5000, tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"limit": 0}, r"limit .*positive integer.* 0"),
        ({"limit": "3"}, r"limit .*positive integer.* '3'"),
        ({"engine": "local:0"}, r"threads .*positive integer.* 0"),
        ({"engine": "processes:0"}, r"processes .*positive integer.* 0"),
        ({"engine": "slurm"}, "unknown engine 'slurm'"),
        ({"engine": "processes:two"}, r"count of engine processes .*number.* 'two'"),
        ({"options": RunOptions(precision=0.01)}, "precision must be at least 0.05 .*, got 0.01"),
        ({"seed": 2**63}, r"seed .*integer.* -\(2\*\*63 - 1\) to 2\*\*63 - 1.* 922"),
        ({"store": 3}, "store must be a folder, a URL or a Store, got 3"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        evaluate(MODEL, ["contrast"], (IMAGES, LABELS), **{"store": tmp_path / "store", **options})
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"first": 1.5}, r"first .*positive integer.* 1.5"),
        ({"batch_size": 0}, r"batch_size .*positive integer.* 0"),
        ({"strict": "no"}, r"strict .*True or False.* 'no'"),
        ({"prepare": "all"}, "prepare must be 'none'.*got 'all'"),
    ],
)
def test_run_options_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        RunOptions(**options)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    numbers: list[Any] = [int, np.int64]
    plain, again = (
        evaluate(
            MODEL,
            ["contrast"],
            (IMAGES, LABELS),
            tmp_path / "store",
            limit=number(4),
            seed=number(7),
            engine=LocalOptions(number(1)),
            options=RunOptions(batch_size=number(2)),
        )
        for number in numbers
    )
    assert [one.fingerprint for one in again.results] == [one.fingerprint for one in plain.results]
    assert all(one.reused for one in again.results)


@pytest.mark.usefixtures("no_model_checks")
def test_pil_images_are_read_as_those_in_files(tmp_path: Path) -> None:
    deep = Image.fromarray((np.arange(32 * 32).reshape(32, 32) * 64).astype(np.uint16))
    glass = Image.new("RGBA", (32, 32), (0, 0, 0, 0))
    seen = []

    def watch(images: np.ndarray) -> np.ndarray:
        seen.append(images[:, :, :, 0].mean())
        return mean(images)

    model = as_model(watch, name="watch", classes=3)
    evaluate(
        model, Condition("data"), Pairs([(deep, 0), (glass, 1)]), tmp_path, options=RunOptions(batch_size=1)
    )
    assert seen == [pytest.approx((np.asarray(deep) >> 8).mean()), 255]


@register_shift("test-picky")
class Picky:
    """A shift that takes no image below 16×16 pixels, and does not say so before."""

    def __init__(self, level: str) -> None: ...

    def facts(self, *, seed: int) -> dict[str, Any]:
        return {"version": 1}

    def apply(self, images: np.ndarray, *, ids: Sequence[Id], seed: int) -> np.ndarray:
        if images.shape[1] < 16:
            raise OptionError("picky")
        return images


def test_error_names_the_image_that_a_shift_rejects(tmp_path: Path) -> None:
    for name, side in (("large.png", 32), ("small.png", 8)):
        (tmp_path / "photos" / "a").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side, side)).save(tmp_path / "photos" / "a" / name)
    model = as_model(lambda shown: np.zeros((len(shown), 1), np.float32), name="one", classes=1)
    with pytest.raises(BeaufortError, match="picky") as caught:
        evaluate(model, [Condition.parse("photos/test-picky")], tmp_path / "photos")
    assert caught.value.__notes__ == ["a/small.png, under photos/test-picky"]
    found = evaluate(model, ["contrast"], tmp_path / "photos")
    assert [problem.id for problem in found.problems] == ["a/small.png"]


def test_a_model_with_nan_outputs_is_named() -> None:
    nan = as_model(lambda shown: np.full((len(shown), 3), np.nan, np.float32), name="nan", classes=3)
    with pytest.raises(BeaufortError, match=r"8.*test/0") as caught:
        evaluate([MODEL, nan], ["contrast"], (IMAGES, LABELS))
    assert caught.value.__notes__ == ["nan, under data"]


def test_a_function_may_return_tensors_with_gradients(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")

    def tensors(images: np.ndarray) -> Any:
        return torch.from_numpy(mean(images)).requires_grad_().bfloat16()

    model = as_model(tensors, name="tensors", classes=3)
    np.testing.assert_allclose(model(IMAGES), mean(IMAGES), rtol=0.01)


def test_rows_of_hugging_face(tmp_path: Path, right: list[int]) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b", "c"])}
    rows = {"image": list(map(Image.fromarray, IMAGES)), "label": LABELS.tolist()}
    given = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    assert correct_counts(given, tmp_path) == right
    named = as_model(mean, name="named", classes=["c", "a", "b"], version="2")
    found = evaluate(named, ["contrast"], given)
    assert "from 3 of 3 outputs" in found.results[0].labels
