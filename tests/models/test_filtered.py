"""An image filter is part of its model: of its predictions, name and digest, in every engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError, UnknownNameError
from beaufort.evaluation import LazyModel
from beaufort.models import FilteredModel, Model, Network, as_model, load_model, with_filter
from beaufort.models.filters import load_filter
from beaufort.results import evaluate
from beaufort.testing import check_model
from beaufort.testing._contracts import example_image

CLASSES = 3
TURNS = np.random.default_rng(5).normal(size=(12 * 12 * 3, CLASSES)) / 500


def linear(batch: NDArray[Any]) -> NDArray[np.float32]:
    """A classifier that looks at every pixel of a 12×12 image."""
    return np.asarray(batch.reshape(len(batch), -1) @ TURNS, np.float32)


def net(**options: Any) -> Model:
    usual: dict[str, Any] = {
        "name": "net",
        "classes": CLASSES,
        "version": "1",
        "input_size": 12,
        "dtype": "uint8",
    }
    return as_model(linear, **{**usual, **options})


def make_images(side: int, count: int = 5) -> NDArray[np.uint8]:
    return np.stack([example_image(side, side, 3, variant=i) for i in range(count)])


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def ten_crops_by_hand(image: NDArray[np.uint8], size: int) -> list[NDArray[np.uint8]]:
    """As one would write it down."""
    far = image.shape[0] - size
    crops = []
    for top, left in ((0, 0), (0, far), (far, 0), (far, far), (far // 2, far // 2)):
        crop = image[top : top + size, left : left + size]
        crops += [crop, crop[:, ::-1]]
    return crops


def test_a_filter_comes_before_the_model() -> None:
    images = make_images(12)
    plain, filtered = net(), with_filter(net(), "clahe:tiles=2")
    np.testing.assert_array_equal(filtered(images), plain(load_filter("clahe:tiles=2")(images)))
    assert (filtered(images) != plain(images)).any()


def test_filters_see_images_of_the_input_size() -> None:
    images = make_images(24)
    plain = net()
    small = plain.spec.preprocessing.fit(images)
    np.testing.assert_array_equal(with_filter(plain, "stretch")(images), plain(load_filter("stretch")(small)))


def test_ten_crops_are_those_of_a_plain_loop() -> None:
    plain = net()
    large = make_images(16)
    predicted = with_filter(plain, "ten-crop:side=16")(large)
    for image, output in zip(large, predicted, strict=True):
        fractions = [
            softmax(plain(np.ascontiguousarray(crop)[None]))[0] for crop in ten_crops_by_hand(image, 12)
        ]
        np.testing.assert_allclose(np.exp(output), np.mean(fractions, axis=0), rtol=1e-5)
    padded = np.pad(make_images(12), ((0, 0), (2, 2), (2, 2), (0, 0)), mode="reflect")
    for image, output in zip(padded, with_filter(plain, "ten-crop:pad=2")(make_images(12)), strict=True):
        fractions = [
            softmax(plain(np.ascontiguousarray(crop)[None]))[0] for crop in ten_crops_by_hand(image, 12)
        ]
        np.testing.assert_allclose(np.exp(output), np.mean(fractions, axis=0), rtol=1e-5)


def test_a_grid_of_one_is_the_middle_crop() -> None:
    plain, large = net(), make_images(16)
    one = with_filter(plain, "multi-crop:grid=1,mirror=no,side=16")(large)
    np.testing.assert_allclose(softmax(one), softmax(plain(large[:, 2:14, 2:14])), rtol=1e-5)
    nine = with_filter(plain, "multi-crop:side=16,mirror=no")(large)
    fractions = [softmax(plain(large[:, y : y + 12, x : x + 12])) for y in (0, 2, 4) for x in (0, 2, 4)]
    np.testing.assert_allclose(softmax(nine), np.mean(fractions, axis=0), rtol=1e-5)


def oblong(height: int, width: int) -> NDArray[np.uint8]:
    return np.stack([example_image(height, width, 3, variant=i) for i in range(5)])


def test_views_are_of_the_preprocessed_image() -> None:
    """Crops cover the whole image for a model that stretches its input."""
    images = oblong(20, 34)
    stretching = net(resize=(12, 12))
    for plain in (stretching, net(resize=12)):
        whole = with_filter(plain, "multi-crop:grid=1,mirror=no,side=12")
        np.testing.assert_allclose(softmax(whole(images)), softmax(plain(images)), rtol=1e-5)
    stretched = net(input_size=16, resize=(16, 16)).spec.preprocessing.fit(images)
    for image_filter in ("ten-crop:side=16", "multi-crop:side=16"):
        np.testing.assert_array_equal(
            with_filter(stretching, image_filter)(images), with_filter(stretching, image_filter)(stretched)
        )
    bordered = with_filter(stretching, "ten-crop:pad=2")
    np.testing.assert_array_equal(bordered(images), bordered(stretching.spec.preprocessing.fit(images)))


@pytest.mark.parametrize("resize", [12, 16, (12, 12), (16, 20)])
def test_a_border_is_added_to_the_input_of_the_model(resize: Any) -> None:
    """Images are resized and cropped to the input of the model before the border is added."""
    images, plain = oblong(20, 34), net(resize=resize)
    seen = plain.spec.preprocessing.fit(images)
    for image_filter in ("multi-crop:grid=1,mirror=no,pad=2", "multi-crop:grid=1,mirror=no,side=12"):
        np.testing.assert_allclose(
            softmax(with_filter(plain, image_filter)(images)), softmax(plain(images)), rtol=1e-5
        )
    bordered = with_filter(plain, "ten-crop:pad=2")
    np.testing.assert_array_equal(bordered(images), bordered(seen))
    alone = with_filter(net(resize=None), "ten-crop:pad=2")
    np.testing.assert_array_equal(alone(seen), bordered(images))
    with pytest.raises(ImageValueError, match=r"not resize.* 20×34"):
        alone(images)


@pytest.mark.parametrize("resize", [16, (16, 16)])
def test_the_digest_covers_views_of_the_input(resize: Any) -> None:
    """Predictions differ from those of crops of a resized image, so the digest differs too."""
    for image_filter, views in (
        ("ten-crop:pad=2", "of the input"),
        ("ten-crop", None if resize == 16 else "stretched"),
    ):
        assert (with_filter(net(resize=resize), image_filter).spec.details or {}).get("views") == views
    assert "views" not in (with_filter(net(resize=None), "ten-crop:pad=2").spec.details or {})


def test_the_digest_covers_stretched_views() -> None:
    stretching, cutting = net(resize=(12, 12)), net(resize=12)
    assert with_filter(stretching, "ten-crop").spec.details == {
        **(stretching.spec.details or {}),
        "front": load_filter("ten-crop").facts,
        "views": "stretched",
    }
    for model, image_filter in ((cutting, "ten-crop"), (stretching, "clahe")):
        expected = {**(model.spec.details or {}), "front": load_filter(image_filter).facts}
        assert with_filter(model, image_filter).spec.details == expected


def test_filters_come_before_and_after_views_in_their_order() -> None:
    plain, large = net(), make_images(16)
    before = with_filter(plain, ["stretch", "ten-crop:side=16"])(large)
    after = with_filter(plain, ["ten-crop:side=16", "stretch"])(large)
    bare = with_filter(plain, "ten-crop:side=16")
    np.testing.assert_array_equal(before, bare(load_filter("stretch")(large)))
    assert (after != before).any()


def test_name_and_digest() -> None:
    plain = net()
    specs = [with_filter(plain, text).spec for text in ("clahe", "clahe:clip=4", "nlm", "ten-crop")]
    assert [spec.name for spec in specs] == ["net+clahe", "net+clahe-clip4", "net+nlm", "net+ten-crop"]
    assert len({plain.spec.digest, *(spec.digest for spec in specs)}) == 5
    assert with_filter(plain, "clahe:clip=2").spec == specs[0]
    assert with_filter(as_model(linear, classes=3), "clahe").spec.digest == "unknown"
    back = type(specs[0]).from_dict(specs[0].to_dict())
    assert back.digest == specs[0].digest


def test_the_filter_of_a_filtered_model_comes_first() -> None:
    images = make_images(12)
    plain, inner = net(), with_filter(net(), "clahe:tiles=2", threads=1)
    both = with_filter(inner, "stretch")
    assert both.spec == with_filter(plain, ["stretch", "clahe:tiles=2"]).spec  # and so their digests
    assert both.spec.name == "net+stretch+clahe-tiles2"
    assert both.threads == 1
    np.testing.assert_array_equal(both(images), inner(load_filter("stretch")(images)))
    others = [with_filter(with_filter(plain, one), "nlm").spec.digest for one in ("clahe", "stretch")]
    assert len({*others, with_filter(plain, "nlm").spec.digest}) == 3
    with pytest.raises(OptionError, match=r"one step.* views"):
        with_filter(with_filter(plain, "ten-crop"), "multi-crop")
    with pytest.raises(OptionError, match="FilteredModel"):
        FilteredModel(inner, load_filter("stretch"))


@pytest.mark.parametrize("text", ["clahe:tiles=2", "nlm:above=0.01", "stretch", "ten-crop", "ten-crop:pad=2"])
def test_the_contract_of_models_holds(text: str) -> None:
    assert check_model(with_filter(net(), text)) == []


@pytest.mark.parametrize("options", [{}, {"resize": None}])
def test_probabilities_are_found_behind_views(options: dict[str, Any]) -> None:
    """Views average the softmax of logits, so a model that returns probabilities gets a second softmax."""
    wrong = net(**options)
    assert isinstance(wrong, Network)
    wrong = replace(wrong, forward=lambda batch: softmax(linear(batch)))
    for image_filter, level, images in (
        ("clahe:tiles=2", "warning", make_images(12)),
        ("ten-crop:side=16", "problem", make_images(16)),
    ):
        (found,) = check_model(with_filter(wrong, image_filter), images=images)
        assert (found.check, found.level) == ("logits", level)
    assert check_model(with_filter(net(**options), "ten-crop:side=16"), images=make_images(16)) == []


def test_a_wrong_range_is_found_behind_an_image_filter() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 200)
    images = np.clip(np.eye(3)[labels][:, None, None] * 120 + 60 + rng.normal(0, 9, (200, 12, 12, 3)), 0, 255)

    def trained(batch: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(np.minimum(batch.mean(axis=(2, 3)), 1) * 9, np.float32)

    wrong = as_model(trained, name="net", classes=3, version="1", input_size=12, range="0..255")
    found = check_model(with_filter(wrong, "stretch"), images=images.astype(np.uint8), labels=labels)
    assert "range" in {finding.check for finding in found}


def test_load_model_takes_an_image_filter() -> None:
    images = np.stack([example_image(28, 28, 1, variant=i) for i in range(4)])
    model = load_model("demo:digits", filter="clahe:tiles=4", threads=1)
    assert model.spec.name == "digits+clahe-tiles4"
    np.testing.assert_array_equal(
        model(images), load_model("demo:digits")(load_filter("clahe:tiles=4")(images))
    )
    with pytest.raises(UnknownNameError, match=r"'claha'.*'clahe'"):
        load_model("nowhere.onnx", filter="claha")  # told before the model is looked for


@pytest.mark.parametrize(
    ("image_filter", "message"),
    [
        ("ten-crop:side=11", r"side .*integer.* least 12.* 11"),
        ("multi-crop:pad=12", r"pad .*integer.* 0 to 11.* 12"),
    ],
)
def test_crops_larger_than_the_image_are_rejected_at_once(image_filter: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        with_filter(net(), image_filter)


def test_floats_and_models_without_a_size_are_rejected() -> None:
    message = "got dtype float32; an image filter comes before values are scaled"
    with pytest.raises(ImageTypeError, match=message):
        with_filter(net(), "clahe")(make_images(12).astype(np.float32))
    wrong: Any = ["photo.jpg"]
    with pytest.raises(ImageTypeError, match=r"images.*uint8.*1.*3\).*list"):
        with_filter(net(), "clahe")(wrong)
    free = as_model(lambda images: images.mean(axis=(1, 2), dtype=np.float32), name="free")
    with pytest.raises(OptionError, match="ten-crop"):
        with_filter(free, "ten-crop")(make_images(12))
    assert with_filter(free, "stretch")(make_images(20)).shape == (5, 3)
    with pytest.raises(OptionError, match=r"ten-crop.* views"):
        load_filter("ten-crop")(make_images(12))
    for resize in (12, None):
        assert with_filter(net(resize=resize), "ten-crop")(make_images(12)[:0]).shape == (0, CLASSES)


def test_only_models_can_be_filtered() -> None:
    for wrong, kind in (("demo:digits", "str"), (linear, "function"), (None, "NoneType")):
        thing: Any = wrong
        message = f"model must be a Model .*got {kind}"
        with pytest.raises(OptionError, match=message):
            with_filter(thing, "clahe")
    for model in (net(), with_filter(net(), "stretch")):
        with pytest.raises(OptionError, match=r"threads.*0"):
            with_filter(model, "clahe", threads=0)


def test_tensors_give_the_same_predictions_as_arrays() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra torch has it")
    images = make_images(20)
    for image_filter in ("clahe:tiles=2", "ten-crop"):
        model = with_filter(net(), image_filter)
        np.testing.assert_array_equal(model(torch.from_numpy(images)), model(images))
        for wrong in ((torch.from_numpy(images) / 255).requires_grad_(), torch.from_numpy(images).bfloat16()):
            with pytest.raises(ImageTypeError, match=r"dtype torch"):
                model(wrong)


def test_stores_distinguish_models_with_an_image_filter(tmp_path: Path) -> None:
    images, labels = make_images(28)[..., :1], np.arange(5)
    models = [LazyModel("demo:digits"), LazyModel("demo:digits", {"filter": ["stretch"]})]
    data = (images, labels)
    first = evaluate(models, ["contrast"], data, tmp_path / "store")
    assert [result.model for result in first.results[:: len(first.results) // 2]] == [
        "digits",
        "digits+stretch",
    ]
    assert len({result.fingerprint for result in first.results}) == len(first.results)
    again = evaluate(models, ["contrast"], data, tmp_path / "store", engine="processes:1")
    assert all(result.reused for result in again.results)
