# ruff: noqa: NPY002  (the global generator must stay as it is)
from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from beaufort import corrupt
from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError, UnknownNameError
from beaufort.corruptions import Corrupt

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason="torch is not installed")

SEVERITIES = range(1, 6)


@pytest.fixture(scope="module")
def photos() -> np.ndarray:
    """Return eight different images (8, 40, 56, 3)."""
    y, x = np.mgrid[:40, :56]
    waves = [128 + 100 * np.sin(x / (i + 3) + c) * np.cos(y / (i + 5)) for i in range(8) for c in range(3)]
    return np.stack(waves).reshape(8, 3, 40, 56).transpose(0, 2, 3, 1).astype(np.uint8)


class Compose:
    """The interface of torchvision's class of that name."""

    def __init__(self, *steps: Callable[[Any], Any]) -> None:
        self.steps = steps

    def __call__(self, image: Any) -> Any:
        for step in self.steps:
            image = step(image)
        return image


def channels_first(photos: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(photos, -1, -3)))


def chosen(step: Corrupt, image_id: int) -> tuple[str, float | None]:
    """The corruption and severity of an image that does not stay clean."""
    choice = step.choose(image_id)
    assert choice is not None
    return choice


def test_one_corruption_is_corrupt(photos: np.ndarray) -> None:
    made = Corrupt("fog", 3, seed=7)(photos[0], image_id="a.jpg")
    np.testing.assert_array_equal(made, corrupt(photos[0], "fog", 3, seed=7, image_id="a.jpg"))


def test_without_id_the_pixels_identify_the_image(photos: np.ndarray) -> None:
    step = Corrupt("gaussian_noise", 2)
    np.testing.assert_array_equal(step(photos[0]), corrupt(photos[0], "gaussian_noise", 2))
    assert (step(photos[0]) - photos[0] != step(photos[1]) - photos[1]).any()


@pytest.mark.parametrize("image_id", [None, 5])
def test_kinds_of_image_agree(photos: np.ndarray, image_id: Any) -> None:
    step = Corrupt(["shot_noise", "contrast", "snow"], SEVERITIES, 1)
    for photo in photos[:4]:
        expected = step(photo, image_id=image_id)
        from_pil = step(Image.fromarray(photo), image_id=image_id)
        from_tensor = step(channels_first(photo), image_id=image_id)
        assert from_pil.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(from_pil), expected)
        np.testing.assert_array_equal(from_tensor.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("shape", [(40, 56), (40, 56, 1), (40, 56, 4), (3, 40, 56, 3), (0, 40, 56, 3)])
def test_arrays_keep_shape_and_dtype(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    before = image.copy()
    made = Corrupt("noise", 3)(image)
    assert made.shape == shape
    assert made.dtype == np.uint8
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("shape", [(1, 40, 56), (3, 40, 56), (4, 40, 56), (2, 1, 40, 56), (2, 4, 40, 56)])
def test_tensors_keep_shape_dtype_and_device(shape: tuple[int, ...]) -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, np.uint8))
    before = image.clone()
    made = Corrupt("noise", 3)(image)
    assert made.shape == image.shape
    assert made.dtype == torch.uint8
    assert made.device == image.device
    assert made.is_contiguous()
    assert torch.equal(image, before)
    if shape[-3] == 4:
        assert torch.equal(made[..., 3, :, :], image[..., 3, :, :])


def test_subclasses_of_tensor_stay(photos: np.ndarray) -> None:
    class ImageTensor(torch.Tensor):
        pass

    made = Corrupt("contrast", 3)(channels_first(photos[0]).as_subclass(ImageTensor))
    assert type(made) is ImageTensor


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_tensors_come_back_there(photos: np.ndarray) -> None:
    step = Corrupt("noise", SEVERITIES)
    images = channels_first(photos)
    made = step(images.cuda())
    assert made.is_cuda
    assert torch.equal(made.cpu(), step(images))


@pytest.mark.parametrize("ids", [None, [f"{i}.png" for i in range(8)]])
def test_alone_as_in_any_batch(photos: np.ndarray, ids: list[str] | None) -> None:
    step = Corrupt("noise", SEVERITIES, seed=3)
    whole = step(photos, image_id=ids)
    order = [5, 2, 7]
    some = step(photos[order], image_id=ids and [ids[i] for i in order])
    for made, i in zip(some, order, strict=True):
        np.testing.assert_array_equal(made, whole[i])
        np.testing.assert_array_equal(made, step(photos[i], image_id=ids and ids[i]))


def test_chosen_corruptions_are_applied(photos: np.ndarray) -> None:
    step = Corrupt(["fog", "blur"], [2, 4], seed=9)
    made = step(photos, image_id=range(8))
    for i in range(8):
        name, severity = chosen(step, i)
        np.testing.assert_array_equal(made[i], corrupt(photos[i], name, severity, seed=9, image_id=i))


def test_choices_are_even_and_independent() -> None:
    step = Corrupt("noise", SEVERITIES)
    counts = Counter(step.choose(i) for i in range(3000))
    assert len(counts) == 15
    assert min(counts.values()) > 150  # 200 are expected, with a standard deviation of 14
    assert max(counts.values()) < 250


def test_choices_depend_on_seed_and_id_alone() -> None:
    step = Corrupt("common", SEVERITIES)
    assert step.choose(11) == ("glass_blur", 1)  # must never change: results are reproducible by id
    assert step.choose("val/0001.png") == step.choose("val/0001.png")
    assert [step.choose(i) for i in range(50)] != [
        Corrupt("common", SEVERITIES, 1).choose(i) for i in range(50)
    ]
    names = [chosen(Corrupt("common", 3), i)[0] for i in range(50)]
    assert names == [chosen(step, i)[0] for i in range(50)]


def test_no_global_generator_is_touched(photos: np.ndarray) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].copy(), torch.get_rng_state()
    Corrupt("noise", SEVERITIES)(photos)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], before[0])
    assert torch.equal(torch.get_rng_state(), before[1])


def test_published_severity_of_digits() -> None:
    digit = np.zeros((28, 28), np.uint8)
    digit[6:22, 12:16] = 255
    made = Corrupt("stripe")(digit, image_id=3)
    np.testing.assert_array_equal(made, corrupt(digit, "stripe", image_id=3))
    assert chosen(Corrupt("mnist-c", scale="mnist"), 3)[1] is None


def test_ids_may_be_arrays_and_tensors(photos: np.ndarray) -> None:
    step = Corrupt("noise", SEVERITIES)
    expected = step(photos, image_id=list(range(8)))
    array: Any = np.arange(8)
    tensor: Any = torch.arange(8)
    np.testing.assert_array_equal(step(photos, image_id=array), expected)
    np.testing.assert_array_equal(step(photos, image_id=tensor), expected)
    np.testing.assert_array_equal(step(photos[2], image_id=tensor[2]), expected[2])


def test_is_a_value(photos: np.ndarray) -> None:
    step = Corrupt(["fog", "noise"], SEVERITIES, 4)
    again = pickle.loads(pickle.dumps(step))
    assert again == step == Corrupt(("fog", "noise"), (1, 2, 3, 4, 5), 4)
    assert hash(again) == hash(step)
    assert repr(Corrupt("fog", 3)) == (
        "Corrupt(name='fog', severity=3, seed=0, p=1.0, scale='auto', weights=None, floats=False, "
        "boxes='reject')"
    )
    np.testing.assert_array_equal(again(photos), step(photos))


def test_in_a_chain_of_steps(photos: np.ndarray) -> None:
    chain = Compose(lambda image: image.crop((0, 0, 32, 32)), Corrupt("contrast", 3), np.asarray)
    assert chain(Image.fromarray(photos[0])).shape == (32, 32, 3)


@pytest.mark.parametrize("workers", [0, 1])
def test_in_a_data_loader(photos: np.ndarray, workers: int) -> None:
    step = Corrupt("noise", SEVERITIES, seed=2)
    images = channels_first(photos)
    each: Any = list(images)  # a list has all that the loader needs
    loader: torch.utils.data.DataLoader[Any] = torch.utils.data.DataLoader(
        each,
        batch_size=None,
        collate_fn=step,
        num_workers=workers,
        multiprocessing_context="spawn" if workers else None,
    )
    assert torch.equal(torch.stack(list(loader)), step(images))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("fgo", 3), UnknownNameError, "did you mean 'fog'"),
        ((["fog", "weathr"], 3), UnknownNameError, "did you mean 'weather'"),
        ((3, 3), UnknownNameError, "unknown corruption 3"),
        (([], 3), OptionError, "empty lists"),
        (("fog", []), OptionError, "empty lists"),
        (("fog", 6), OptionError, "from 1 to 5"),
        (("fog", [1, 0]), OptionError, "from 1 to 5"),
        (("fog", 5.5), OptionError, r"severity .*number.* 1 to 5.* 5.5"),
        (("fog", (1, 2.5)), OptionError, r"integers, got \(1, 2.5\)"),
        (("fog", (5, 1)), OptionError, r"\(lowest, highest\), got \(5, 1\)"),
        (("fog@6", None), OptionError, r"from 1 to 5, got '6' \(in the chain 'fog@6'\)"),
        (("fog@2+snwo@3", None), UnknownNameError, r"did you mean 'snow'\? \(in the chain 'fog@2"),
        (("fog", True), OptionError, "from 1 to 5"),
        (("fog", 3, 0.5), OptionError, "must be an integer"),
    ],
)
def test_invalid_arguments_are_reported_at_once(arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Corrupt(*arguments)


def test_scale_is_checked_at_once() -> None:
    with pytest.raises(OptionError, match="unknown scale"):
        Corrupt("fog", 3, scale="huge")
    with pytest.raises(OptionError, match="'relative'"):
        Corrupt("line", 3, scale="imagenet")


@pytest.mark.parametrize(
    ("image", "error", "says"),
    [
        (torch.zeros(3, 40, 40), ImageTypeError, "before normalizing"),
        (torch.zeros(40, 40, 3, dtype=torch.uint8), ImageValueError, "movedim"),
        (torch.zeros(40, 40, dtype=torch.uint8), ImageValueError, "must be a uint8 tensor"),
        (np.zeros((40, 40, 3)), ImageTypeError, "multiply"),
        (Image.new("P", (40, 40)), ImageTypeError, "convert"),
        ([[0]], OptionError, "no image"),
    ],
)
def test_invalid_images_are_rejected(image: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Corrupt("fog", 3)(image)


@pytest.mark.parametrize(
    ("count", "image_id", "says"),
    [
        (1, [1], "one id for one image"),
        (2, 1, "a list of 2 ids"),
        (2, "ab", "a list of 2 ids"),
        (2, [1], "2 ids"),
    ],
)
def test_ids_must_fit_the_images(photos: np.ndarray, count: int, image_id: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        Corrupt("fog", 3)(photos[0] if count == 1 else photos[:count], image_id=image_id)


def test_importing_is_light() -> None:
    code = (
        "import sys; from beaufort.corruptions import Corrupt; Corrupt('fog', 3); "
        "print({'numba', 'cv2', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_label_beside_the_image_comes_back(photos: np.ndarray) -> None:
    """It used to be taken for the id of the image, and swallowed."""
    step = Corrupt("gaussian_noise", 3)
    alone = step(photos[0])
    made, label = step(photos[0], 7)
    assert label == 7
    np.testing.assert_array_equal(made, alone)
    made, label = step((Image.fromarray(photos[0]), 7))
    assert label == 7
    np.testing.assert_array_equal(np.asarray(made), alone)
    again = step({"image": photos[0], "label": 7, "meta": {"file": "a.jpg"}})
    assert (again["label"], again["meta"]) == (7, {"file": "a.jpg"})
    np.testing.assert_array_equal(again["image"], alone)
    with pytest.raises(OptionError, match="no image"):
        step("a.jpg", 7)
    with pytest.raises(OptionError, match="expected an image"):
        step()


def test_samples_go_through_as_transforms_v2_do_it(photos: np.ndarray) -> None:
    from beaufort._core.optional import require

    require("torchvision", "torchvision", what="these tests")
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    image = tv_tensors.Image(channels_first(photos[0]))
    boxes = tv_tensors.BoundingBoxes([[0, 0, 9, 9]], format="XYXY", canvas_size=(40, 56))
    mask = tv_tensors.Mask(torch.zeros(40, 56, dtype=torch.uint8))
    step = Corrupt("contrast", 3)
    chain = v2.Compose([step, v2.ToDtype(torch.float32, scale=True)])
    made, target = chain(image, {"boxes": boxes, "masks": mask, "label": 3})
    assert type(made) is tv_tensors.Image
    assert torch.equal((made * 255).round().to(torch.uint8), step(channels_first(photos[0])))
    assert torch.equal(target["boxes"], boxes)
    assert torch.equal(target["masks"], mask)
    assert target["label"] == 3
    plain, label = step((channels_first(photos[0]), torch.tensor(3)))
    assert plain.shape == (3, 40, 56)
    assert int(label) == 3


def test_a_fraction_of_images_stays_clean(photos: np.ndarray) -> None:
    half = Corrupt("contrast", 5, p=0.5)
    chosen = [half.choose(i) is not None for i in range(2000)]
    assert 0.45 < np.mean(chosen) < 0.55
    made = half(photos, image_id=list(range(8)))
    for i in range(8):
        assert (made[i] == photos[i]).all() == (not chosen[i])
    assert Corrupt("contrast", 5, p=0).choose(1) is None
    np.testing.assert_array_equal(Corrupt("contrast", 5, p=0)(photos[0]), photos[0])
    with pytest.raises(OptionError, match=r"^p .*0 to 1.* 50"):
        Corrupt("fog", 3, p=50)


@pytest.mark.parametrize("severity", ["2.5", "1-5", np.array(3), 10**400])
def test_severity_is_reported_as_given(severity: Any) -> None:
    """Strings, arrays of one number and large numbers give a clear error."""
    with pytest.raises(OptionError, match=r"severity.*1.*5") as caught:
        Corrupt("fog", severity)
    assert str(caught.value).endswith(f"got {severity!r:.60}")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": {"fog", "snow"}}, "name must be a name or a list of names, got {"),
        ({"name": {"fog": 2, "snow": 1}}, "name must be a name or a list of names, got {'fog': 2"),
        ({"name": ["fog", "snow"], "weights": {"fog": 4, "snow": 1}}, "weights must be a number"),
        ({"name": "fog", "severity": [[1, 2], [3, 4]]}, r"severity must be a number .* got \[1, 2\]"),
        ({"name": "fog", "severity": {1: 2}}, r"severity must be a number .* got \{1: 2\}"),
    ],
)
def test_lists_are_required(options: dict[str, Any], says: str) -> None:
    """The order of texts in a set, and so the choice for each image, is another one in each process."""
    with pytest.raises(OptionError, match=says):
        Corrupt(**options)


def test_a_pair_of_severities_is_a_range() -> None:
    seen = {chosen(Corrupt("fog", (2, 5)), i)[1] for i in range(200)}
    assert seen == {2, 3, 4, 5}
    only = Corrupt("fog", [2, 5])
    assert {chosen(only, i)[1] for i in range(200)} == {2, 5}
    assert hash(only) == hash(pickle.loads(pickle.dumps(only)))


def test_epochs_differ_and_repeat(photos: np.ndarray) -> None:
    step = Corrupt("noise", SEVERITIES, seed=3)
    first, again, second = step.for_epoch(1), step.for_epoch(1), step.for_epoch(2)
    assert step.for_epoch(0) == step
    np.testing.assert_array_equal(first(photos), again(photos))
    assert (first(photos) != second(photos)).any()
    with pytest.raises(OptionError, match=r"epoch.*0.*-1"):
        step.for_epoch(-1)
