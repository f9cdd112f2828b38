"""`Corrupt` in loaders: policies, torchvision, albumentations, Hugging Face datasets, floats."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict, UserDict, defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from beaufort import corrupt
from beaufort._core.arrays import to_levels
from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError
from beaufort.corruptions import Chain, Corrupt, corruptions
from beaufort.testing._contracts import example_image

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason="torch is not installed")

CHAIN = "fog@2+jpeg_compression@3"
PHOTO = example_image(40, 48)


def tensor(photo: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(photo, -1, -3)))


def test_weights() -> None:
    policy = Corrupt(["noise", "contrast", CHAIN], severity=(1, 5), weights=[3, 1, 2])
    counts = Counter(choice[0] for i in range(6000) if (choice := policy.choose(i)))
    assert set(counts) == {"gaussian_noise", "shot_noise", "impulse_noise", "contrast", CHAIN}
    for name in set(counts) - {CHAIN}:
        assert 900 < counts[name] < 1100  # 1000 are expected, with a standard deviation of 29
    assert 1850 < counts[CHAIN] < 2150
    chosen = [choice for i in range(200) if (choice := policy.choose(i))]
    assert {severity for name, severity in chosen if name == CHAIN} == {None}


def test_weights_do_not_change_unweighted_choices() -> None:
    """Without weights, the choice for each image is the same as before weights existed."""
    plain = Corrupt("common", range(1, 6))
    assert plain.choose(11) == ("glass_blur", 1)


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [1, 0], [1, -1], [1, float("nan")], [1, True], [1, "2"]])
def test_wrong_weights(weights: Any) -> None:
    with pytest.raises(OptionError, match="weights must be"):
        Corrupt(["fog", "snow"], 3, weights=weights)


def test_chains_and_severities_of_their_own() -> None:
    policy = Corrupt([CHAIN, "contrast@2.5"], seed=4)
    seen = set()
    for i in range(12):
        choice = policy.choose(i)
        assert choice is not None
        seen.add(choice[0])
        expected = Chain.parse(choice[0])(PHOTO, ids=[i], seed=4)
        np.testing.assert_array_equal(policy(PHOTO, image_id=i), expected)
        np.testing.assert_array_equal(policy(tensor(PHOTO), image_id=i).permute(1, 2, 0).numpy(), expected)
    assert seen == {CHAIN, "contrast@2.5"}
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert hash(again) == hash(policy)
    foggy = Corrupt(CHAIN)
    assert (foggy.for_epoch(1)(PHOTO, image_id=0) != foggy.for_epoch(2)(PHOTO, image_id=0)).any()


def test_severities_with_fractions() -> None:
    policy = Corrupt("contrast", [1.5, 2, 4.25])
    assert {choice[1] for i in range(100) if (choice := policy.choose(i))} == {1.5, 2, 4.25}
    np.testing.assert_array_equal(Corrupt("contrast", 2.5)(PHOTO), corrupt(PHOTO, "contrast", 2.5))


def sample() -> tuple[Any, dict[str, Any]]:
    from beaufort._core.optional import require

    require("torchvision", "torchvision", what="these tests")
    from torchvision import tv_tensors

    boxes = tv_tensors.BoundingBoxes([[0, 0, 9, 9]], format="XYXY", canvas_size=(40, 48))
    mask = tv_tensors.Mask(torch.zeros(40, 48, dtype=torch.uint8))
    return tv_tensors.Image(tensor(PHOTO)), {"boxes": boxes, "masks": mask, "label": 3}


@pytest.mark.parametrize("name", ["elastic_transform", "common", "fog@1+elastic_transform@2"])
def test_boxes_are_rejected_where_pixels_move(name: str) -> None:
    image, target = sample()
    severity = None if "@" in name else 3
    with pytest.raises(OptionError, match=r"elastic_transform .*the"):
        Corrupt(name, severity)(image, target)
    with pytest.raises(OptionError, match="masks"):
        Corrupt(name, severity)({"image": image, "mask": target["masks"]})
    made, kept = Corrupt(name, severity, boxes="keep")(image, target)
    assert type(made) is type(image)
    assert kept["boxes"] is target["boxes"]
    with pytest.raises(OptionError, match=r"boxes.*move"):
        Corrupt(name, severity, boxes="move")


def test_boxes_stay_where_nothing_moves() -> None:
    image, target = sample()
    made, kept = Corrupt("noise", 3)(image, target)
    assert (made != image).any()
    assert kept["boxes"] is target["boxes"]
    assert kept["masks"] is target["masks"]


def test_corruptions_that_move_pixels() -> None:
    """Corruptions that keep the order of a ramp do not move pixels; those that distort it do."""
    assert {name for name, one in corruptions.items() if one.moves} == {
        *("elastic_transform", "rotate", "shear", "scale", "translate"),
        *("caustic_refraction", "pinch_and_twirl", "ripple"),
    }


def test_albumentations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for its newest version
    albumentations: Any = pytest.importorskip("albumentations", reason="albumentations is not installed")
    rough = Corrupt("noise", severity=(1, 3))

    def roughen(image: np.ndarray, **_: Any) -> np.ndarray:
        return rough(image)  # type: ignore[no-any-return]

    steps = albumentations.Compose([albumentations.Lambda(image=roughen, name="roughen")])
    mask = np.zeros((40, 48), np.uint8)
    made = steps(image=PHOTO, mask=mask)
    np.testing.assert_array_equal(made["image"], rough(PHOTO))
    np.testing.assert_array_equal(made["mask"], mask)


def test_hugging_face_datasets() -> None:
    datasets: Any = pytest.importorskip("datasets", reason="datasets is not installed")
    rough = Corrupt("noise", severity=(1, 5), seed=1)
    rows = datasets.Dataset.from_dict(
        {"image": [Image.fromarray(PHOTO)] * 2, "label": [0, 1]},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}),
    )
    once = rows.map(lambda row, i: {"image": rough(row["image"], image_id=i)}, with_indices=True)
    for i in range(2):
        np.testing.assert_array_equal(np.asarray(once[i]["image"]), rough(PHOTO, image_id=i))
        assert once[i]["label"] == i
    whole = rows.map(rough)  # rows are mappings of the library's own
    np.testing.assert_array_equal(np.asarray(whole[1]["image"]), rough(PHOTO))
    assert whole[1]["label"] == 1
    batched = rows.map(rough, batched=True)
    np.testing.assert_array_equal(np.asarray(batched[1]["image"]), rough(PHOTO))


def test_mappings_keep_their_kind() -> None:
    step = Corrupt("contrast", 3)
    for given in (
        defaultdict(list, {"image": PHOTO, "label": 3}),
        OrderedDict(image=PHOTO, label=3),
        UserDict(image=PHOTO, label=3),
        MappingProxyType({"image": PHOTO, "label": 3}),
    ):
        made = step(given)
        assert type(made) is type(given)
        assert dict(made).keys() == {"image", "label"}
        np.testing.assert_array_equal(made["image"], step(PHOTO))
        np.testing.assert_array_equal(given["image"], PHOTO)
    assert step(defaultdict(list, image=PHOTO))["boxes"] == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_floats_are_rounded_as_stated(kind: str, dtype: str) -> None:
    if (kind, dtype) == ("array", "bfloat16"):
        pytest.skip("NumPy has no bfloat16")
    step = Corrupt("shot_noise", 3, floats=True)
    expected = step(PHOTO, image_id=1)
    given: Any
    if kind == "tensor":
        given = (tensor(PHOTO).to(torch.float64) / 255).to(getattr(torch, dtype))
        made = step(given, image_id=1)
        assert (made.dtype, made.shape) == (given.dtype, given.shape)
        levels = (made.to(torch.float64) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    else:
        given = (PHOTO / 255).astype(dtype)
        made = step(given, image_id=1)
        assert (made.dtype, made.shape) == (given.dtype, given.shape)
        levels = np.rint(made.astype(np.float64) * 255).astype(np.uint8)
    exact = dtype != "bfloat16"  # which has fewer than 256 levels from a half to one
    assert (np.abs(levels.astype(int) - expected) <= (0 if exact else 1)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_level_is_the_nearest(dtype: str) -> None:
    """Levels are the nearest ones, although 255 times a value has more digits than its type."""
    values = torch.linspace(0, 1, 4801, dtype=torch.float64).to(getattr(torch, dtype))
    nearest = np.rint(values.to(torch.float64).numpy() * 255)
    np.testing.assert_array_equal(to_levels(values).numpy(), nearest)
    if dtype != "bfloat16":
        np.testing.assert_array_equal(to_levels(values.numpy()), nearest)


def test_values_that_do_not_change_keep_their_digits() -> None:
    values = np.random.default_rng(0).random((40, 48, 3)).astype(np.float32)
    clean = Corrupt("contrast", 5, p=0, floats=True)(values)
    np.testing.assert_array_equal(clean, values)
    levels = np.rint(values * 255).astype(np.uint8)
    hit = Corrupt("impulse_noise", 1, floats=True)(values, image_id=0)
    same = corrupt(levels, "impulse_noise", 1, image_id=0) == levels
    np.testing.assert_array_equal(hit[same], values[same])
    assert set(np.unique(hit[~same])) <= {0, 1}
    assert 0.5 < same.mean() < 1


def test_floats_keep_their_class_and_are_opt_in() -> None:
    image, _ = sample()
    made = Corrupt("contrast", 3, floats=True)(image / 255)
    assert made.dtype == torch.float32
    from torchvision import tv_tensors

    wrapped = Corrupt("contrast", 3, floats=True)(tv_tensors.Image(image / 255))
    assert type(wrapped) is tv_tensors.Image
    with pytest.raises(ImageTypeError, match="got dtype"):
        Corrupt("contrast", 3)(PHOTO / 255)


@pytest.mark.parametrize(
    ("value", "says"), [(1.5, "got 0 to 1.5"), (-0.1, "got -0.1 to 0"), (np.nan, "got nan to nan")]
)
def test_floats_outside_0_to_1_are_rejected(value: float, says: str) -> None:
    values = np.zeros((40, 48, 3))
    values[3, 4, 1] = value
    for image in (values, torch.from_numpy(values.transpose(2, 0, 1))):
        with pytest.raises(ImageValueError, match=rf"0.*1.*{says}"):
            Corrupt("contrast", 3, floats=True)(image)


def test_floats_that_need_gradients() -> None:
    """Values are rounded without warnings of torch, and gradients pass unchanged values."""
    torch = pytest.importorskip("torch")
    values = torch.full((3, 32, 32), 0.4, requires_grad=True)
    made = Corrupt("contrast", 3, floats=True)(values)
    made.sum().backward()
    assert values.grad is not None
