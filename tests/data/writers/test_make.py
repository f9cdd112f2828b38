"""The published datasets in their published layouts."""

from __future__ import annotations

import errno
import gzip
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import beaufort
from beaufort._core import files as draft_files
from beaufort._core.errors import ImageFileError, OptionError, UnknownNameError
from beaufort.corruptions import corruptions
from beaufort.data import PreparedImages, load_dataset
from beaufort.data.images import FORMATS, encode
from beaufort.data.writers import PUBLISHED_SETS, Outcome, make_dataset
from beaufort.report.gallery import _clean
from beaufort.suites import get_suite
from tests.data.writers.outputs import opened

RNG = np.random.default_rng(8)
SHARED = Path(os.environ.get("BEAUFORT_SHARED", Path(__file__).parents[4] / "shared"))


def idx(array: np.ndarray) -> bytes:
    shape = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    folder = tmp_path / "mnist"
    folder.mkdir()
    for prefix, count in {"train": 7, "t10k": 5}.items():
        images = RNG.integers(0, 256, (count, 28, 28), np.uint8)
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8)))
    return folder


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    folder = tmp_path / "cifar"
    folder.mkdir()
    np.save(folder / "images.npy", RNG.integers(0, 256, (6, 32, 32, 3), np.uint8))
    np.save(folder / "labels.npy", np.array([6, 9, 9, 4, 1, 1]))
    return folder


def test_mnist_c_has_the_layout_of_zenodo(mnist: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ["identity", "brightness", "stripe"]
    assert make_dataset("mnist-c", mnist, out, names=names) == Outcome(done=12)
    found = {path.relative_to(out).as_posix() for path in out.rglob("*.npy")}
    files = [f"{split}_{part}.npy" for split in ("train", "test") for part in ("images", "labels")]
    assert found == {f"{name}/{file}" for name in names for file in files}
    clean, bright = (np.load(out / name / "test_images.npy") for name in ("identity", "brightness"))
    assert (bright.dtype, bright.shape) == (np.uint8, (5, 28, 28, 1))
    labels = np.load(out / "brightness/train_labels.npy")
    assert (labels.dtype, labels.tolist()) == (np.int64, list(range(7)))
    np.testing.assert_array_equal(bright, corruptions["brightness"](clean, scale="mnist"))


def test_mnist_c_identifies_images_by_split_and_number(mnist: Path, tmp_path: Path) -> None:
    make_dataset("mnist-c", mnist, tmp_path / "out", names=["shot_noise", "identity"], seed=4)
    clean, noisy = (np.load(tmp_path / "out" / n / "train_images.npy") for n in ("identity", "shot_noise"))
    alone = beaufort.corrupt(clean[3], "shot_noise", scale="mnist", seed=4, image_id="train/3")
    np.testing.assert_array_equal(noisy[3], alone)


def test_mnist_c_makes_the_published_corruptions(mnist: Path, tmp_path: Path) -> None:
    assert len(PUBLISHED_SETS["mnist-c"].corruptions) == 16
    assert len(PUBLISHED_SETS["mnist-c"].extra) == 32
    for file in mnist.glob("train*"):
        file.unlink()
    assert make_dataset("mnist-c", mnist, tmp_path / "out").done == 32
    assert not list((tmp_path / "out").rglob("train*"))


def test_cifar10_c_has_the_published_layout(cifar: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert make_dataset("cifar10-c", cifar, out, names=["brightness", "shot_noise"], jobs=2) == Outcome(
        done=3
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "beaufort.json",
        "brightness.npy",
        "labels.npy",
        "shot_noise.npy",
    ]
    made, clean = np.load(out / "shot_noise.npy"), np.load(cifar / "images.npy")
    assert (made.dtype, made.shape) == (np.uint8, (30, 32, 32, 3))
    labels = np.load(out / "labels.npy")
    assert (labels.dtype, labels.tolist()) == (np.uint8, [6, 9, 9, 4, 1, 1] * 5)
    for severity in range(1, 6):
        row = (severity - 1) * 6 + 2
        alone = beaufort.corrupt(clean[2], "shot_noise", severity, scale="cifar", image_id="test/2")
        np.testing.assert_array_equal(made[row], alone)


def test_cifar100_c_is_made_of_the_download(tmp_path: Path) -> None:
    planes = RNG.integers(0, 256, (4, 3072), np.uint8)
    batch = {"fine_labels": [49, 33, 72, 99], "coarse_labels": [1, 2, 3, 4], "data": planes}
    (tmp_path / "test").write_bytes(pickle.dumps(batch, protocol=2))
    out = tmp_path / "out"
    assert make_dataset("cifar100-c", tmp_path, out, names=["contrast"]) == Outcome(done=2)
    assert np.load(out / "labels.npy").tolist() == [49, 33, 72, 99] * 5
    clean = np.ascontiguousarray(planes[1].reshape(3, 32, 32).transpose(1, 2, 0))
    expected = beaufort.corrupt(clean, "contrast", 2, scale="cifar", image_id="test/1")
    np.testing.assert_array_equal(np.load(out / "contrast.npy")[4 + 1], expected)


def test_mnist_c_of_other_kinds_of_data(tmp_path: Path) -> None:
    images = RNG.integers(0, 256, (3, 28, 28), np.uint8)
    np.savez(tmp_path / "digits.npz", images=images, labels=np.array([7, 1, 0]))
    assert make_dataset("mnist-c", f"npz:{tmp_path / 'digits.npz'}", tmp_path / "out", names=["identity"]).ok
    np.testing.assert_array_equal(np.load(tmp_path / "out/identity/test_images.npy")[..., 0], images)


def test_files_are_those_of_numpy(cifar: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_dataset("cifar10-c", cifar, out, names=["brightness"])
    np.save(tmp_path / "again.npy", np.load(out / "brightness.npy"))
    assert (tmp_path / "again.npy").read_bytes() == (out / "brightness.npy").read_bytes()


def test_chunks_change_nothing(cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_dataset("cifar10-c", cifar, tmp_path / "whole", names=["shot_noise"])
    monkeypatch.setattr("beaufort.data.writers.published_arrays._CHUNK", 4)
    seen: list[tuple[int, int]] = []
    make_dataset(
        "cifar10-c", cifar, tmp_path / "cut", names=["shot_noise"], progress=lambda *at: seen.append(at)
    )
    whole, cut = (np.load(tmp_path / name / "shot_noise.npy") for name in ("whole", "cut"))
    np.testing.assert_array_equal(whole, cut)
    assert seen == sorted(seen)
    assert seen[-1] == (60, 60)


def test_arrays_are_made_once_and_limits_do_not_mix(cifar: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_dataset("cifar10-c", cifar, out, names=["brightness"], limit=2)
    assert np.load(out / "brightness.npy").shape[0] == 10
    again = make_dataset("cifar10-c", cifar, out, names=["brightness", "contrast"], limit=2)
    assert again == Outcome(done=1, skipped=2)
    others: list[dict[str, Any]] = [{}, {"limit": 3}, {"limit": 2, "seed": 1}]
    for options in others:
        with pytest.raises(OptionError, match="was made with"):
            make_dataset("cifar10-c", cifar, out, **options)


def test_a_full_disk_leaves_no_half_array(
    cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", full)
    out = tmp_path / "out"
    report = make_dataset("cifar10-c", cifar, out, names=["brightness", "contrast"])
    assert report.stopped is not None
    assert report.done == 0
    assert [path.name for path in out.iterdir()] == ["beaufort.json"]
    monkeypatch.undo()
    (out / f".beaufort-{draft_files._HOST}-{os.getpid()}-{'0' * 8}-3.part").write_bytes(
        b"left by a killed run"
    )
    assert make_dataset("cifar10-c", cifar, out, names=["brightness", "contrast"]) == Outcome(done=3)
    assert not list(out.glob(".*"))


def image(path: Path, size: tuple[int, int], mode: str = "RGB", **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = RNG.integers(0, 256, (size[1] // 4, size[0] // 4, 3), np.uint8)
    Image.fromarray(pixels).resize(size).convert(mode).save(path, **options)


def test_imagenet_c_is_cropped_corrupted_and_saved_as_published(tmp_path: Path) -> None:
    source, out = tmp_path / "val", tmp_path / "out"
    exif = Image.Exif()
    exif[0x0112] = 6
    image(source / "n01/a.JPEG", (300, 260), exif=exif)
    image(source / "n01/gray.JPEG", (260, 400), "L")
    image(source / "n02/b.png", (100, 90))
    report = make_dataset("imagenet-c", source, out, names=["brightness"])
    assert report == Outcome(done=15)
    made = opened(out / "brightness/3/n01/a.JPEG")
    assert (made.format, made.mode, made.size) == ("JPEG", "RGB", (224, 224))
    assert opened(out / "brightness/5/n01/gray.JPEG").mode == "RGB"
    assert (out / "brightness/1/n02/b.JPEG").is_file()
    clean = opened(source / "n01/a.JPEG").resize((295, 256), Image.Resampling.BILINEAR)  # not turned
    cropped = np.asarray(clean.crop((36, 16, 260, 240)))
    expected = Image.fromarray(beaufort.corrupt(cropped, "brightness", 3, scale="imagenet"))
    expected.save(tmp_path / "expected.jpg", quality=85, optimize=True)
    assert (tmp_path / "expected.jpg").read_bytes() == (out / "brightness/3/n01/a.JPEG").read_bytes()


def rows_first(image: Image.Image, size: tuple[int, int], *how: Any) -> Image.Image:
    """Pillow's `resize` as it was before version 13, whatever the shape of an image."""
    across = RESIZE(image, (size[0], image.height), *how)
    return RESIZE(across, size, *how)


RESIZE = Image.Image.resize
SIZES = {"tall": (300, 900), "wide": (900, 300), "small": (40, 30)}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", ["imagenet-c", "tiny-imagenet-c"])
def test_files_have_the_pixels_of_a_run(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image(tmp_path / "val/n01/a.png", size)
    suite, photos = get_suite(name), load_dataset(tmp_path / "val")
    seen = PreparedImages(photos, suite.prepare, gray=False)(0)
    assert isinstance(seen, np.ndarray)
    noisy = beaufort.corrupt(seen, "shot_noise", 1, scale=suite.scale, image_id=photos.ids[0])
    monkeypatch.setattr(Image.Image, "resize", rows_first)  # any version of Pillow may be installed
    assert make_dataset(name, tmp_path / "val", tmp_path / "out", names=["shot_noise"]) == Outcome(done=5)
    made = (tmp_path / "out/shot_noise/1/n01/a.JPEG").read_bytes()
    assert made == encode(Image.fromarray(noisy), FORMATS["jpeg"], 85)


def test_the_gallery_has_the_pixels_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image(tmp_path / "val/n01/a.png", SIZES["tall"])
    photos = load_dataset(tmp_path / "val")
    monkeypatch.setattr(Image.Image, "resize", rows_first)
    shown = _clean(tmp_path / "val/n01/a.png", digits=False)
    seen = PreparedImages(photos, get_suite("imagenet-c").prepare, gray=False)(0)
    np.testing.assert_array_equal(np.asarray(shown), seen)


def flat(root: Path) -> Path:
    """ImageNet's validation images as they are unpacked, with Caffe's list."""
    for number in (1, 2, 3):
        image(root / f"ILSVRC2012_val_{number:08}.JPEG", (260, 240))
    lines = [f"ILSVRC2012_val_{number:08}.JPEG {label}\n" for number, label in ((1, 65), (2, 970), (3, 65))]
    (root / "val.txt").write_text("".join(lines))
    return root


def zipped(root: Path) -> Path:
    """The same images in a zip, with a list of class numbers and names."""
    flat(root)
    rows = [
        ("n01751748", 1, 65, "sea snake"),
        ("n09193705", 2, 970, "alp"),
        ("n01751748", 3, 65, "sea snake"),
    ]
    lines = ["file,label,zip,name"]
    with zipfile.ZipFile(root / "all.zip", "w") as archive:
        for wnid, number, label, name in rows:
            file = f"ILSVRC2012_val_{number:08}.JPEG"
            archive.write(root / file, f"{wnid}/{file}")
            lines.append(f"{wnid}/{file},{label},all.zip,{name}")
    for path in [*root.glob("*.JPEG"), root / "val.txt"]:
        path.unlink()
    (root / "labels.csv").write_text("\n".join(lines))
    return root


def sorted_out(root: Path) -> Path:
    flat(root)
    for number, wnid in ((1, "n01751748"), (2, "n09193705"), (3, "n01751748")):
        (root / wnid).mkdir(exist_ok=True)
        file = f"ILSVRC2012_val_{number:08}.JPEG"
        (root / file).rename(root / wnid / file)
    (root / "val.txt").unlink()
    return root


def test_imagenet_c_is_the_same_of_every_kind_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for form in (sorted_out, flat, zipped):
        monkeypatch.setitem(globals(), "RNG", np.random.default_rng(3))
        source, out = form(tmp_path / form.__name__), tmp_path / f"out of {form.__name__}"
        assert make_dataset("imagenet-c", source, out, names=["shot_noise"]) == Outcome(done=15)
        files = sorted(path for path in out.rglob("*.JPEG"))
        made[form.__name__] = {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
    assert "shot_noise/3/n01751748/ILSVRC2012_val_00000003.JPEG" in made["flat"]
    assert made["sorted_out"] == made["flat"] == made["zipped"]
    again = make_dataset("imagenet-c", tmp_path / "flat", tmp_path / "out of flat", names=["shot_noise"])
    assert again == Outcome(skipped=15)


def test_two_images_with_the_same_name_are_reported(tmp_path: Path) -> None:
    image(tmp_path / "a/1.png", (64, 64))
    image(tmp_path / "b/1.png", (64, 64))
    (tmp_path / "labels.csv").write_text("file,label\na/1.png,cat\nb/1.png,cat\n")
    report = make_dataset("tiny-imagenet-c", tmp_path, tmp_path.parent / "out", names=["contrast"])
    assert report.done == 5
    assert [(problem.path, "as those of a/1.png" in problem.message) for problem in report.failures] == [
        ("b/1.png", True)
    ]


def test_limit_takes_the_first_images_of_the_dataset(tmp_path: Path) -> None:
    """Images of all classes, as in a run."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    np.save(source / "images.npy", RNG.integers(0, 256, (12, 64, 64, 3), np.uint8))
    np.save(source / "labels.npy", np.array([2, 1, 0] * 4))
    assert make_dataset("tiny-imagenet-c", source, out, names=["contrast"], limit=2).done == 10
    found = sorted(path.relative_to(out / "contrast/1").as_posix() for path in out.rglob("1/*/*.JPEG"))
    assert found == ["1/1.JPEG", "2/0.JPEG"]


def test_tiny_imagenet_c_is_64_by_64(tmp_path: Path) -> None:
    image(tmp_path / "val/n01/a.JPEG", (64, 64))
    image(tmp_path / "val/n01/b.JPEG", (80, 40))
    image(tmp_path / "val/n02/c.JPEG", (80, 40))
    out = tmp_path / "out"
    assert make_dataset("tiny-imagenet-c", tmp_path / "val", out, names=["contrast"], limit=2).done == 10
    assert opened(out / "contrast/2/n01/b.JPEG").size == (64, 64)
    assert make_dataset("tiny-imagenet-c", tmp_path / "val", out, names=["contrast"]) == Outcome(5, 10)


def test_impossible_requests_are_reported(mnist: Path, cifar: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UnknownNameError, match="did you mean"):
        make_dataset("cifar1000-c", cifar, out)
    with pytest.raises(UnknownNameError, match="identity"):
        make_dataset("cifar10-c", cifar, out, names=["identity"])
    with pytest.raises(OptionError, match="stripe"):
        make_dataset("cifar10-c", cifar, out, names=["stripe"])
    with pytest.raises(OptionError, match="dataset not found"):
        make_dataset("cifar10-c", tmp_path / "nothing", out)
    with pytest.raises(OptionError, match="limit"):
        make_dataset("cifar10-c", cifar, out, limit=0)
    with pytest.raises(ImageFileError, match=r"\(28.*28.*1\).*\(32.*32.*3\).*test/0"):
        make_dataset("mnist-c", cifar, out)
    with pytest.raises(ImageFileError, match=r"\(32, 32, 3\)"):
        make_dataset("cifar10-c", mnist, out)
    (mnist / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ImageFileError, match=r"train-labels.* not found"):
        make_dataset("mnist-c", mnist, out)
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="not a dataset"):
        make_dataset("imagenet-c", tmp_path / "file", out)
    np.save(cifar / "labels.npy", np.array([6, 9, 9, 4, 1, 10]))
    for name in ("cifar10-c", "cifar10-p"):
        with pytest.raises(ImageFileError, match=rf"{name}.*0.*9.*10"):
            make_dataset(name, cifar, out)
    assert not out.exists()


@pytest.mark.skipif(not (SHARED / "data/mnist").is_dir(), reason="needs MNIST")
def test_real_mnist(tmp_path: Path) -> None:
    assert make_dataset("mnist-c", SHARED / "data/mnist", tmp_path, names=["identity"], limit=100).ok
    assert np.load(tmp_path / "identity/test_labels.npy")[:5].tolist() == [7, 2, 1, 0, 4]


@pytest.mark.skipif(not (SHARED / "data/cifar10_test").is_dir(), reason="needs CIFAR-10")
def test_real_cifar(tmp_path: Path) -> None:
    assert make_dataset("cifar10-c", SHARED / "data/cifar10_test", tmp_path, names=["contrast"], limit=100).ok
    assert np.load(tmp_path / "labels.npy")[:5].tolist() == [3, 8, 8, 0, 6]


@pytest.mark.parametrize("name", ["cifar10-c", "cifar10-p"])
@pytest.mark.parametrize("kind", ["", "npy:"])
def test_no_arrays_are_made_among_those_of_the_source(cifar: Path, name: str, kind: str) -> None:
    """`labels.npy` of the source would be taken for that of the set, which is five times as long."""
    before = sorted(cifar.rglob("*"))
    with pytest.raises(OptionError, match=r"output.* outside the source"):
        make_dataset(name, f"{kind}{cifar}", cifar, limit=1)
    assert sorted(cifar.rglob("*")) == before


@pytest.mark.parametrize("below", [".", "made"])
def test_no_arrays_are_made_in_a_folder_of_classes(tmp_path: Path, below: str) -> None:
    """A folder in it would be a class."""
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(tmp_path / "photos" / "cat" / "1.png")
    with pytest.raises(OptionError, match=r"output.* outside the source"):
        make_dataset("cifar10-c", tmp_path / "photos", tmp_path / "photos" / below, names=["contrast"])
    assert load_dataset(tmp_path / "photos").classes == ("cat",)


def test_digits_may_be_made_below_the_source(mnist: Path) -> None:
    with pytest.raises(OptionError, match=r"output.* outside the source"):
        make_dataset("mnist-c", mnist, mnist, names=["identity"])
    assert make_dataset("mnist-c", mnist, mnist / "mnist-c", names=["identity"]).ok
