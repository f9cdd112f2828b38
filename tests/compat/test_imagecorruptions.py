# ruff: noqa: NPY002  (the global generator is part of the interface)
from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import beaufort.compat.imagecorruptions as compat
from beaufort import corrupt as own
from beaufort._core.errors import AssetError, BeaufortError
from beaufort.compat.imagecorruptions import corrupt, corruption_dict, corruption_tuple, get_corruption_names

COMMON = [
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
]  # fmt: skip
VALIDATION = ["speckle_noise", "gaussian_blur", "spatter", "saturate"]
ALL = COMMON + VALIDATION
FIXED = {
    "defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression", "gaussian_blur",
    "saturate",
}  # fmt: skip
NAMES = pytest.mark.parametrize("name", ALL)


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    y, x = np.mgrid[:48, :72]
    waves = [128 + 100 * np.sin(x / 7 + c) * np.cos(y / 5) for c in range(3)]
    return np.stack(waves, axis=-1).astype(np.uint8)


@pytest.fixture(autouse=True)
def frost_or_skip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip frost where its textures are neither cached nor mirrored: tests do not fetch."""
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("name") == "frost":
        try:
            own(np.zeros((32, 32, 3), np.uint8), "frost", 1)
        except AssetError as error:
            pytest.skip(f"frost's textures are not here: {error}")


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Start each test from a known state and leave no trace of it."""
    state = np.random.get_state()
    np.random.seed(0)
    yield
    np.random.set_state(state)


def differs(a: np.ndarray, b: np.ndarray) -> bool:
    return not np.array_equal(a, b)


def test_names_and_order() -> None:
    assert get_corruption_names() == COMMON
    assert get_corruption_names("validation") == VALIDATION
    assert get_corruption_names(subset="all") == ALL
    assert get_corruption_names("noise") == COMMON[:3]
    assert get_corruption_names("blur") == COMMON[3:7]
    assert get_corruption_names("weather") == COMMON[7:11]
    assert get_corruption_names("digital") == COMMON[11:]
    assert [function.__name__ for function in corruption_tuple] == ALL
    assert list(corruption_dict) == ALL
    assert all(getattr(compat, name) is corruption_dict[name] for name in ALL)


def test_signatures() -> None:
    assert list(inspect.signature(corrupt).parameters) == [
        "image", "severity", "corruption_name", "corruption_number",
    ]  # fmt: skip
    defaults = [p.default for p in inspect.signature(corrupt).parameters.values()]
    assert defaults[1:] == [1, None, -1]
    for name, function in corruption_dict.items():
        first = "image" if name == "elastic_transform" else "x"
        assert list(inspect.signature(function).parameters) == [first, "severity"]
        assert inspect.signature(function).parameters["severity"].default == 1
        assert pickle.loads(pickle.dumps(function)) is function


def test_all_is_what_can_be_imported() -> None:
    assert compat.__all__ == sorted(compat.__all__)
    assert all(hasattr(compat, name) for name in compat.__all__)


@NAMES
def test_seed_governs_every_corruption(photo: np.ndarray, name: str) -> None:
    first, second = corrupt(photo, 3, name), corrupt(photo, 3, name)
    assert differs(first, second) == (name not in FIXED)
    np.random.seed(0)
    np.testing.assert_array_equal(corrupt(photo, 3, name), first)
    np.testing.assert_array_equal(corrupt(photo, 3, name), second)


@NAMES
def test_fixed_corruptions_leave_the_generator_alone(photo: np.ndarray, name: str) -> None:
    before = np.random.get_state(legacy=False)["state"]
    corrupt(photo, 3, name)
    after = np.random.get_state(legacy=False)["state"]
    moved = before["pos"] != after["pos"] or differs(before["key"], after["key"])
    assert moved == (name not in FIXED)


@NAMES
def test_number_is_the_place_of_the_name(photo: np.ndarray, name: str) -> None:
    by_name = corrupt(photo, 2, name)
    np.random.seed(0)
    np.testing.assert_array_equal(corrupt(photo, 2, corruption_number=ALL.index(name)), by_name)


def test_negative_numbers_count_from_the_end(photo: np.ndarray) -> None:
    np.testing.assert_array_equal(corrupt(photo, 1, corruption_number=-3), corrupt(photo, 1, "gaussian_blur"))


@NAMES
@pytest.mark.parametrize("shape", [(32, 32), (48, 32, 1), (33, 90, 3)])
def test_output_has_three_channels(name: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    before = image.copy()
    made = corrupt(image, 5, name)
    assert made.shape == (*shape[:2], 3)
    assert made.dtype == np.uint8
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("name", sorted(FIXED))
def test_constants_are_those_of_imagenet_at_any_size(photo: np.ndarray, name: str) -> None:
    np.testing.assert_array_equal(corrupt(photo, 4, name), own(photo, name, 4, scale="imagenet"))


def test_gray_is_stacked_before_it_is_corrupted(photo: np.ndarray) -> None:
    noisy = corrupt(photo[..., 0], 3, "gaussian_noise")
    assert differs(noisy[..., 0], noisy[..., 1])
    np.random.seed(0)
    np.testing.assert_array_equal(corrupt(np.stack([photo[..., 0]] * 3, -1), 3, "gaussian_noise"), noisy)


def test_noise_has_the_published_strength() -> None:
    noisy = corrupt(np.full((256, 256, 3), 128, np.uint8), 1, "gaussian_noise").astype(float)
    assert noisy.std() == pytest.approx(0.08 * 255, rel=0.02)


@NAMES
def test_functions_do_what_corrupt_does(photo: np.ndarray, name: str) -> None:
    expected = corrupt(photo, 2, name)
    for image in (photo, Image.fromarray(photo)):
        np.random.seed(0)
        made = corruption_dict[name](image, 2)
        np.testing.assert_array_equal(np.uint8(made), expected)
        pil = name in ("pixelate", "jpeg_compression") and image is not photo
        assert isinstance(made, Image.Image if pil else np.ndarray)


BAD_IMAGES = {
    "list": np.zeros((32, 32), np.uint8).tolist(),
    "PIL": Image.new("RGB", (32, 32)),
    "float": np.zeros((32, 32, 3)),
    "row": np.zeros(4096, np.uint8),
    "batch": np.zeros((2, 32, 32, 3), np.uint8),
    "two channels": np.zeros((32, 32, 2), np.uint8),
    "alpha": np.zeros((32, 32, 4), np.uint8),
    "flat": np.zeros((31, 64, 3), np.uint8),
    "narrow": np.zeros((64, 31), np.uint8),
}


@pytest.mark.parametrize("image", BAD_IMAGES.values(), ids=BAD_IMAGES)
def test_bad_images_are_attribute_errors(image: Any) -> None:
    with pytest.raises(AttributeError) as caught:
        corrupt(image, 1, "contrast")
    assert isinstance(caught.value, BeaufortError)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"severity": 0, "corruption_name": "fog"}, AttributeError),
        ({"severity": 6, "corruption_name": "fog"}, AttributeError),
        ({"severity": None, "corruption_name": "fog"}, AttributeError),
        ({"severity": 3.0, "corruption_name": "fog"}, TypeError),
        ({"corruption_name": "fgo"}, KeyError),
        ({"corruption_name": "line"}, KeyError),
        ({"corruption_number": 19}, IndexError),
        ({"corruption_number": 1.0}, TypeError),
        ({}, ValueError),
    ],
)
def test_bad_arguments_raise_the_same_types(
    photo: np.ndarray, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        corrupt(photo, **arguments)


@pytest.mark.parametrize("subset", ["comon", "mnist-c", None])
def test_unknown_subsets_are_value_errors(subset: Any) -> None:
    with pytest.raises(ValueError, match="unknown subset"):
        get_corruption_names(subset)


def test_importing_is_light() -> None:
    code = "import sys, beaufort.compat.imagecorruptions; print({'numba', 'cv2', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


STAND_IN = """
import sys
import beaufort.compat.imagecorruptions
sys.modules["imagecorruptions"] = beaufort.compat.imagecorruptions
import numpy as np
import imagecorruptions
import imagecorruptions.corruptions
from imagecorruptions.corruptions import motion_blur
from imagecorruptions import corrupt

image = np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)
np.random.seed(1)
one = imagecorruptions.corruptions.gaussian_noise(image, 2)
np.random.seed(1)
two = corrupt(image, 2, "gaussian_noise")
assert np.array_equal(one, two)
assert callable(motion_blur)
assert not hasattr(imagecorruptions.corruptions, "register")  # not the registry of another package
"""


def test_it_stands_in_for_the_original() -> None:
    """A program that imports the original and its submodule by name gets this package."""
    subprocess.run([sys.executable, "-c", STAND_IN], check=True, timeout=900)


def test_the_submodule_has_every_function() -> None:
    from beaufort.compat.imagecorruptions import corruptions

    assert all(getattr(corruptions, name) is getattr(compat, name) for name in ALL)
