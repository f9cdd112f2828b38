"""Corruptions and augmentations in the pipelines of other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort import Corrupt, corrupt
from beaufort.models import prepare_torchvision

torch = pytest.importorskip("torch")


@pytest.fixture
def photo() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (32, 40, 3), np.uint8)


def test_albumentations(photo: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    albumentations = pytest.importorskip("albumentations")
    from beaufort.compat import albumentations as ours

    fog = ours.CorruptTransform("fog", 3, p=1)
    pipeline = albumentations.Compose([albumentations.VerticalFlip(p=1), fog])
    mask = np.arange(32 * 40).reshape(32, 40).astype(np.uint8)
    found = pipeline(image=photo, mask=mask)
    assert np.array_equal(found["image"], corrupt(np.ascontiguousarray(photo[::-1]), "fog", 3))
    assert np.array_equal(found["mask"], mask[::-1])
    assert np.array_equal(ours.CorruptTransform("fog", 3, p=0)(image=photo)["image"], photo)


def test_torchvision(photo: NDArray[np.uint8]) -> None:
    prepare_torchvision()
    pytest.importorskip("torchvision")
    from torchvision.transforms import v2

    image = torch.from_numpy(photo).movedim(-1, 0)
    found = v2.Compose([v2.CenterCrop(24), Corrupt("fog", 3)])(image)
    expected = corrupt(np.ascontiguousarray(photo[4:28, 8:32]), "fog", 3)
    assert np.array_equal(found.movedim(0, -1).numpy(), expected)


def test_kornia(photo: NDArray[np.uint8]) -> None:
    kornia = pytest.importorskip("kornia.augmentation")
    from beaufort.compat import kornia as ours

    image = torch.from_numpy(photo).movedim(-1, 0)[None].float() / 255
    found = kornia.ImageSequential(kornia.RandomVerticalFlip(p=1.0), ours.CorruptModule("fog", 3))(image)
    expected = corrupt(np.ascontiguousarray(photo[::-1]), "fog", 3)
    assert np.array_equal((found[0].movedim(0, -1) * 255).round().byte().numpy(), expected)
    plain = torch.nn.Sequential(ours.CorruptModule("fog", 3))((image * 255).round().byte())
    assert plain.dtype == torch.uint8


def test_hugging_face_map(photo: NDArray[np.uint8]) -> None:
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    rows = datasets.Dataset.from_dict(
        {"image": [Image.fromarray(photo)]}, features=datasets.Features({"image": datasets.Image()})
    )
    rough = Corrupt("fog", 3)
    found = rows.map(lambda row, index: {"image": rough(row["image"], image_id=index)}, with_indices=True)
    assert np.array_equal(np.asarray(found[0]["image"]), corrupt(photo, "fog", 3, image_id=0))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it leaves the tar open
def test_webdataset(photo: NDArray[np.uint8], tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    file = tmp_path / "photos.tar"
    with webdataset.TarWriter(str(file)) as writer:
        writer.write({"__key__": "a", "png": photo, "cls": 3})
    rough = Corrupt("fog", 3)
    rows = (
        webdataset.WebDataset(str(file), shardshuffle=False).decode("rgb8").to_tuple("__key__", "png", "cls")
    )
    ((key, image, label),) = [(key, rough(image, image_id=key), label) for key, image, label in rows]
    assert np.array_equal(image, corrupt(photo, "fog", 3, image_id="a"))
    assert (key, label) == ("a", 3)


@pytest.mark.parametrize("name", ["AugMix", "Prime"])
def test_augmentations_keep_the_kind_of_image(name: str, photo: NDArray[np.uint8]) -> None:
    from PIL import Image

    from beaufort.training import transforms

    augment: Any = getattr(transforms, name)()
    tensor = torch.from_numpy(photo).movedim(-1, 0)
    torch.manual_seed(0)
    floats = tensor / 255
    for image in (photo, np.stack([photo, photo]), tensor, tensor[None], floats, floats[None].half()):
        found = augment(image)
        assert type(found) is type(image)
        assert (found.shape, found.dtype) == (image.shape, image.dtype)
    made = augment(Image.fromarray(photo))
    assert isinstance(made, Image.Image)
    assert made.size == (40, 32)
    torch.manual_seed(3)
    first = augment(tensor)
    torch.manual_seed(3)
    assert torch.equal(first, augment(tensor))
    assert not torch.equal(first, augment(tensor))
    batch = augment(torch.stack([tensor, tensor]))
    assert not torch.equal(batch[0], batch[1])
    values = augment(tensor / 255)
    assert float(values.min()) >= 0
    assert float(values.max()) <= 1
