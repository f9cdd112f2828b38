"""The torch backend compared with the CPU backend, on the CPU and, if available, on CUDA."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from beaufort import corrupt
from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError
from beaufort.corruptions import SEVERITIES, SUBSETS, Corrupt, corruptions
from beaufort.corruptions._kernels import cpu_ops, torch_ops
from beaufort.corruptions.rng import FieldKey, Key, id_words
from beaufort.data import load_dataset
from beaufort.testing._contracts import digit, example_image

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason="torch is not installed")

NAMES = sorted(corruptions)
PHOTO_NAMES = SUBSETS["all"]
IDS: list[int | str] = [3, "n01440764/a.jpg", 2**40, "b", 0]

MAY_DIFFER = {"elastic_transform": 1e-4, "fog": 2e-4}
"""The fraction of the values that may be one level off; all others are equal.

Elastic transform sums the waves of a field, and fog the largest of its values, in another order."""

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]
    ),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def samples(scale: str) -> np.ndarray:
    """Return two images for the scale, with odd and unequal sides."""
    if scale == "mnist":
        return np.stack([digit(variant=i) for i in range(2)])
    sides = {"cifar": (33, 32), "tiny": (64, 61)}.get(scale, (75, 88))
    return np.stack([example_image(*sides, variant=i) for i in range(2)])


def to_tensor(images: np.ndarray, device: str) -> torch.Tensor:
    return torch.from_numpy(np.moveaxis(images, -1, -3).copy()).to(device)


def to_array(images: torch.Tensor) -> np.ndarray:
    return np.moveaxis(images.cpu().numpy(), -3, -1)


def agrees(name: str, ours: np.ndarray, wanted: np.ndarray) -> None:
    off = np.abs(ours.astype(int) - wanted.astype(int))
    assert off.max(initial=0) <= (1 if name in MAY_DIFFER else 0)
    assert (off > 0).mean() <= MAY_DIFFER.get(name, 0)


@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_the_cpu_engine(name: str, device: str) -> None:
    for scale, recipe in corruptions[name].recipes.items():
        images = samples(scale)
        tensor = to_tensor(images, device)
        for severity in SEVERITIES[: len(recipe.levels)]:
            wanted = corruptions[name](images, severity, ids=IDS[:2], scale=scale)
            ours = corruptions[name](tensor, severity, ids=IDS[:2], scale=scale, backend="torch")
            assert ours.device == tensor.device
            agrees(name, to_array(ours), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_any_size_gray_and_color(name: str, device: str) -> None:
    for height, width, channels in ((16, 97, 1), (51, 17, 3), (35, 40, 4)):
        images = example_image(height, width, channels)
        tensor = to_tensor(images, device)
        for scale in ("auto", "relative"):
            wanted = corruptions[name](images, 3, ids=["a"], scale=scale)
            ours = corruptions[name](tensor, 3, ids=["a"], scale=scale, backend="torch")
            assert ours.shape == tensor.shape
            agrees(name, to_array(ours), wanted)
    assert torch.equal(ours[3], tensor[3])


@pytest.fixture(scope="module")
def photos(shared: Path) -> np.ndarray:
    """Two photos, `(2, 224, 224, 3)`."""
    from PIL import Image

    dataset = load_dataset(shared / "data" / "imagenet_val_1k")
    return np.stack([np.asarray(Image.fromarray(dataset[i].image).resize((224, 224))) for i in range(2)])


@pytest.mark.parametrize("name", PHOTO_NAMES)
def test_photos(name: str, device: str, photos: np.ndarray) -> None:
    for severity in (1, 5):
        wanted = corruptions[name](photos, severity, ids=IDS[:2])
        ours = corruptions[name](to_tensor(photos, device), severity, ids=IDS[:2], backend="torch")
        agrees(name, to_array(ours), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_does_not_matter(name: str, device: str) -> None:
    scale = corruptions[name].relative_to
    images = to_tensor(np.stack([example_image(40, 48, variant=i) for i in range(5)]), device)
    for identity in (IDS, None):
        together = corruptions[name](images, 3, ids=identity, scale=scale, backend="torch")
        for i, image in enumerate(images):
            alone = corruptions[name](image, 3, ids=identity and [identity[i]], scale=scale, backend="torch")
            assert torch.equal(alone, together[i])
        order = [3, 0, 4, 2, 1]
        ids = identity and [identity[i] for i in order]
        assert torch.equal(
            corruptions[name](images[order], 3, ids=ids, scale=scale, backend="torch"), together[order]
        )


def test_pieces_do_not_matter(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from beaufort.corruptions import _backends

    images = to_tensor(np.stack([example_image(32, 32, variant=i) for i in range(7)]), device)
    for name in ("gaussian_noise", "frost", "snow", "contrast", "elastic_transform"):
        whole = corruptions[name](images, 3, ids=range(7), backend="torch")
        with monkeypatch.context() as patch:
            patch.setattr(_backends, "_CPU_PIECE", 32 * 32 * 3 * 24 * 3)
            patch.setattr(_backends, "_GPU_PIECE", 32 * 32 * 3 * 24 * 3)
            assert torch.equal(corruptions[name](images, 3, ids=range(7), backend="torch"), whole)


@pytest.mark.parametrize("shape", [(5,), (8,), (33, 31, 3)])
def test_numbers_are_those_of_the_cpu_engine(shape: tuple[int, ...], device: str) -> None:
    ours, wanted = torch_ops(), cpu_ops()
    key, words = Key.of(7, "fog", 1, 3), id_words(IDS)
    ids = torch.from_numpy(words.view(np.int64)).to(device)

    def same(op: str, *args: object) -> None:
        expected = getattr(wanted, op)(FieldKey(key, words, 2), shape, *args)
        found = getattr(ours, op)(FieldKey(key, ids, 2), shape, *args).cpu().numpy()
        assert np.array_equal(found.view(expected.dtype), expected), op

    same("philox_words")
    same("philox_normal")
    same("philox_uniform", -3.0, 5.0)
    same("philox_bernoulli", 0.7)
    same("philox_impulses", 0.7)
    same("philox_integers", -3, 4, np.int8)
    same("philox_integers", -200, 400, np.int16)
    same("philox_integers", 0, np.array([1, 2, 3, 4, 5]), np.int32)


@pytest.mark.parametrize("rate", [3, 60, 500])
def test_counts_and_content_ids_are_those_of_the_cpu_engine(rate: float, device: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 31, 33, 3), np.uint8)
    key, words = Key.of(0, "shot_noise", 1, 3), id_words(IDS)
    ids = torch.from_numpy(words.view(np.int64)).to(device)
    cpu: Any = cpu_ops()
    ops: Any = torch_ops()
    counts = ops.philox_poisson(FieldKey(key, ids, 0), torch.from_numpy(images).to(device), rate)
    assert np.array_equal(counts.cpu().numpy(), cpu.philox_poisson(FieldKey(key, words, 0), images, rate))
    table = np.arange(40, dtype=np.uint8)
    levels = ops.philox_levels(FieldKey(key, ids, 0), torch.from_numpy(images).to(device), rate, table)
    assert np.array_equal(
        levels.cpu().numpy(), cpu.philox_levels(FieldKey(key, words, 0), images, rate, table)
    )
    for some in (images, images[:, :24, :16].copy()):
        found = ops.content_ids(torch.from_numpy(some).to(device)).cpu().numpy()
        assert np.array_equal(found.view(np.uint64), cpu.content_ids(some))


def test_tensors_come_back_as_they_came(device: str) -> None:
    class ImageTensor(torch.Tensor):
        """A subclass, as torchvision has them."""

    for channels, shape in ((1, (40, 48)), (3, (40, 48)), (4, (40, 48))):
        image = to_tensor(example_image(*shape, channels), device)
        before = image.clone()
        out = corrupt(image, "gaussian_noise", 3, image_id="a")
        assert out.shape == image.shape
        assert out.device == image.device
        assert out.is_contiguous()
        assert torch.equal(image, before)
        assert type(corrupt(image.as_subclass(ImageTensor), "fog", 3)) is ImageTensor
    batch = to_tensor(np.stack([example_image(40, 48)] * 3), device).contiguous(
        memory_format=torch.channels_last
    )
    out = corruptions["fog"](batch, 3)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert corruptions["fog"](batch[:0], 3, backend="torch").shape == (0, 3, 40, 48)


def test_tensors_of_the_processor_are_the_cpu_engines() -> None:
    images = np.stack([example_image(40, 48, variant=i) for i in range(3)])
    for name in ("elastic_transform", "fog"):
        wanted = corruptions[name](images, 2, ids=IDS[:3])
        assert np.array_equal(to_array(corruptions[name](to_tensor(images, "cpu"), 2, ids=IDS[:3])), wanted)
        assert np.array_equal(
            corruptions[name](images, 2, ids=IDS[:3], backend="torch"),
            to_array(corruptions[name](to_tensor(images, "cpu"), 2, ids=IDS[:3], backend="torch")),
        )


def test_the_reference_stream_is_the_cpu_engines(device: str) -> None:
    images = np.stack([example_image(32, 32, variant=i) for i in range(2)])
    wanted = corruptions["glass_blur"](images, 3, stream="reference", seed=5)
    ours = corruptions["glass_blur"](to_tensor(images, device), 3, stream="reference", seed=5)
    assert ours.device.type == device
    assert np.array_equal(to_array(ours), wanted)


@pytest.mark.parametrize(
    ("tensor", "error", "says"),
    [
        (torch.zeros(3, 32, 32), ImageTypeError, "float32"),
        (torch.zeros(32, 32, 3, dtype=torch.uint8), ImageValueError, "movedim"),
        (torch.zeros(32, 32, dtype=torch.uint8), ImageValueError, r"\(32, 32\)"),
        (torch.zeros(2, 32, 32, dtype=torch.uint8), ImageValueError, "1, 3 or 4"),
        (torch.zeros(3, 32, 9, dtype=torch.uint8), ImageValueError, "32×9"),
        (torch.tensor(3, dtype=torch.uint8), ImageValueError, "shape"),
    ],
)
def test_rejected_with_an_error(tensor: torch.Tensor, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        corruptions["fog"](tensor)


def test_invalid_backend() -> None:
    with pytest.raises(OptionError, match="gpu"):
        corruptions["fog"](example_image(32, 32), backend="gpu")


@pytest.mark.parametrize("image_ids", [None, IDS])
def test_transform_works_where_the_images_are(device: str, image_ids: list[int | str] | None) -> None:
    images = np.stack([example_image(40, 48, variant=i) for i in range(5)])
    step = Corrupt(["gaussian_noise", "contrast", "frost", "pixelate"], range(1, 6), seed=2)
    ours = step(to_tensor(images, device), image_id=image_ids)
    assert ours.device.type == device
    assert np.array_equal(to_array(ours), step(images, image_id=image_ids))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_two_streams_give_the_same() -> None:
    images = to_tensor(np.stack([example_image(64, 64, variant=i) for i in range(8)]), "cuda")
    for name in PHOTO_NAMES:
        whole = corruptions[name](images, 3, ids=range(8))
        halves, streams = [], [torch.cuda.Stream() for _ in range(2)]  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        for half, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                part = slice(4 * half, 4 * half + 4)
                halves.append(corruptions[name](images[part], 3, ids=range(8)[part]))
        torch.cuda.synchronize()
        assert torch.equal(torch.cat(halves), whole), name


def test_torch_is_imported_only_for_tensors() -> None:
    code = "import sys, numpy, beaufort; beaufort.corrupt(numpy.zeros((32, 32, 3), 'u1'), 'fog', 3); "
    subprocess.run([sys.executable, "-c", code + "assert 'torch' not in sys.modules"], check=True)


INTERPRETED = """
import sys, numpy as np, torch
from beaufort.corruptions import corruptions
from beaufort.testing._contracts import digit, example_image
for name in sys.argv[1:]:
    scale = corruptions[name].relative_to
    image = digit() if scale == "mnist" else example_image(20, 24)
    wanted = corruptions[name](image, 4, ids=["a"], scale=scale)
    tensor = torch.from_numpy(image).movedim(-1, 0)
    ours = corruptions[name](tensor, 4, ids=["a"], scale=scale, backend="torch").movedim(0, -1)
    off = np.abs(ours.numpy().astype(int) - wanted)
    assert off.max() <= 1 and (off > 0).mean() < 0.002, (name, off.max(), (off > 0).mean())
"""


def test_kernels_in_tritons_interpreter() -> None:
    """Without a GPU, kernels can be run by Triton's interpreter; not those that take long, or files."""
    pytest.importorskip("triton", reason="Triton is not installed")
    left_out = ("motion_blur", "snow", "zoom_blur", "frost", "pessimal_noise")
    names = [name for name in NAMES if name not in left_out]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "BEAUFORT_KERNELS": "1"}
    subprocess.run([sys.executable, "-c", INTERPRETED, *names], check=True, env=environment)
