"""The contract of all kinds of datasets."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import BeaufortError
from beaufort.data import Dataset, Sample, iterate, load_dataset, readers

RNG = np.random.default_rng(7)
GREY = RNG.integers(0, 256, (10, 20, 16), np.uint8)
COLOR = RNG.integers(0, 256, (10, 20, 16, 3), np.uint8)
TILES = RNG.integers(0, 256, (10, 32, 32, 3), np.uint8)
LABELS = np.array([3, 0, 1, 2, 2, 1, 0, 3, 1, 1])


def png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def make_mnist(root: Path) -> str:
    (root / "t10k-images-idx3-ubyte").write_bytes(idx(GREY))
    (root / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS), mtime=0))
    return f"mnist:{root}"


def make_mnist_gz(root: Path) -> str:
    (root / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(GREY), mtime=0))
    (root / "t10k-labels-idx1-ubyte").write_bytes(idx(LABELS))
    return str(root)


def make_folder(root: Path) -> str:
    for i, label in enumerate(LABELS):
        (root / f"class{label}").mkdir(exist_ok=True)
        (root / f"class{label}" / f"{i}.png").write_bytes(png(COLOR[i]))
    return str(root)


def table(zips: bool) -> str:
    rows = [f"d/{i}.png,{label}" + f",{i % 2}.zip" * zips for i, label in enumerate(LABELS)]
    return "\n".join(["file,label" + ",zip" * zips, *rows])


def make_cifar(root: Path) -> str:
    records = np.concatenate([LABELS[:, None], TILES.transpose(0, 3, 1, 2).reshape(10, -1)], axis=1)
    (root / "test_batch.bin").write_bytes(records.astype(np.uint8).tobytes())
    return str(root)


def make_cifar_pickled(root: Path) -> str:
    batch = {"labels": LABELS.tolist(), "data": TILES.transpose(0, 3, 1, 2).reshape(10, -1)}
    (root / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    return f"cifar:{root}"


def make_cifar_grid(root: Path) -> str:
    grid = TILES.reshape(2, 5, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(64, 160, 3)
    (root / "grid.png").write_bytes(png(grid))
    (root / "labels.csv").write_text("\n".join(["label", *map(str, LABELS)]))
    return str(root)


def make_imagenet_val(root: Path) -> str:
    names = [f"ILSVRC2012_val_{i:08}.JPEG" for i in range(10)]
    for name, image in zip(names, COLOR, strict=True):
        (root / name).write_bytes(png(image))
    lines = [f"{name} {label}" for name, label in zip(names, LABELS, strict=True)]
    (root / "val.txt").write_text("\n".join(lines))
    return str(root)


def make_csv(root: Path) -> str:
    (root / "d").mkdir()
    for i in range(10):
        (root / "d" / f"{i}.png").write_bytes(png(COLOR[i]))
    (root / "labels.csv").write_text(table(zips=False))
    return str(root)


def make_csv_zips(root: Path) -> str:
    for part, method in enumerate([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]):
        with zipfile.ZipFile(root / f"{part}.zip", "w", method) as archive:
            for i in range(part, 10, 2):
                archive.writestr(zipfile.ZipInfo(f"d/{i}.png"), png(COLOR[i]), method)
    (root / "labels.csv").write_text(table(zips=True))
    return f"csv:{root}"


def make_csv_in_zip(root: Path) -> str:
    with zipfile.ZipFile(root / "all.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("labels.csv"), table(zips=False))
        for i in range(10):
            archive.writestr(zipfile.ZipInfo(f"d/{i}.png"), png(COLOR[i]))
    return str(root / "all.zip")


def make_npy(root: Path) -> str:
    np.save(root / "images.npy", COLOR)
    np.save(root / "labels.npy", LABELS)
    return str(root)


def make_npz(root: Path) -> str:
    np.savez(root / "x.npz", images=GREY, labels=LABELS)
    return str(root / "x.npz")


def make_npz_packed(root: Path) -> str:
    np.savez_compressed(root / "x.npz", x_test=COLOR, y_test=LABELS)
    return f"npz:{root / 'x.npz'}#test"


def make_cifar10_c(root: Path) -> str:
    np.save(root / "fog.npy", np.concatenate([COLOR + i for i in range(5)]).astype(np.uint8))
    np.save(root / "labels.npy", np.tile(LABELS, 5).astype(np.uint8))
    return f"{root}#fog@1"


def make_cifar100_c(root: Path) -> str:
    make_cifar10_c(root)
    return f"cifar100-c:{root}#fog@1"


def make_cifar10_c_bar(root: Path) -> str:
    make_cifar10_c(root)
    return f"cifar10-c-bar:{root}#fog@1"


def make_cifar10_p(root: Path) -> str:
    np.save(root / "rotate.npy", COLOR.reshape(10, 2, 10, 16, 3))
    np.save(root / "labels.npy", LABELS)
    return f"cifar10-p:{root}#rotate"


def make_mnist_c(root: Path) -> str:
    (root / "fog").mkdir()
    np.save(root / "fog" / "test_images.npy", GREY[..., None])
    np.save(root / "fog" / "test_labels.npy", LABELS)
    return f"{root}#fog"


def make_imagenet_c(root: Path) -> str:
    (root / "fog" / "3").mkdir(parents=True)
    make_folder(root / "fog" / "3")
    return f"{root}#fog@3"


def make_mined(root: Path) -> str:
    (root / "texture").mkdir()
    make_folder(root / "texture")
    return f"mined:{root}"


def make_tiny_imagenet_c(root: Path) -> str:
    make_imagenet_c(root)
    return f"tiny-imagenet-c:{root}#fog@3"


def make_imagenet_3dcc(root: Path) -> str:
    (root / "fog_3d" / "3").mkdir(parents=True)
    make_folder(root / "fog_3d" / "3")
    return f"imagenet-3dcc:{root}#fog_3d@3"


def make_imagenet_c_bar(root: Path) -> str:
    for magnitude in ("0.80", "10.00", "2.40", "4.00", "5.60"):
        (root / "fog" / magnitude).mkdir(parents=True)
    make_folder(root / "fog" / "4.00")
    return f"imagenet-c-bar:{root}#fog@3"


def make_wds(root: Path) -> str:
    for shard in range(2):
        with tarfile.open(root / f"val-{shard:03}.tar", "w") as archive:
            for i in range(5 * shard, 5 * shard + 5):
                for name, content in (
                    (f"{i:04}.png", png(COLOR[i])),
                    (f"{i:04}.cls", str(LABELS[i]).encode()),
                ):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return f"{root}/val-{{000..001}}.tar"


def make_hf(root: Path) -> str:
    hf = pytest.importorskip("datasets")
    rows = {"image": [{"bytes": png(image)} for image in COLOR], "label": LABELS}
    features = hf.Features({"image": hf.Image(), "label": hf.ClassLabel(names=list("abcd"))})
    hf.Dataset.from_dict(rows, features=features).save_to_disk(str(root / "saved"))
    return str(root / "saved")


MAKERS: dict[str, Callable[[Path], str]] = {
    name.removeprefix("make_"): maker for name, maker in list(globals().items()) if name.startswith("make_")
}


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    return MAKERS[request.param]


@pytest.fixture
def made(maker: Callable[[Path], str], tmp_path: Path) -> tuple[Path, str]:
    root = tmp_path / "data"
    root.mkdir()
    return root, maker(root)


def opened(spec: str) -> Dataset:
    return load_dataset(spec)


def test_every_kind_is_tested() -> None:
    """Here, or in the tests of layouts with hundreds of directories."""
    places = (
        *(f"test_{name}.py" for name in ("natural_shifts", "frame_sets", "icons", "imagenet_x", "relabeled")),
        "../corruptions/sequences/test_videos.py",
    )
    elsewhere = "".join((Path(__file__).parent / name).read_text() for name in places)
    here = {name.replace("_", "-") for name in MAKERS}
    assert not [kind for kind in readers if kind not in here and f'"{kind}' not in elsewhere]


def test_samples(made: tuple[Path, str]) -> None:
    dataset = opened(made[1])
    assert len(dataset) == len(dataset.ids) == len(dataset.labels) == 10
    assert dataset.labels.dtype == np.int64
    assert len(set(dataset.ids)) == 10
    assert dataset.problems == ()
    samples = list(iterate(dataset))
    for i, sample in enumerate(samples):
        assert isinstance(sample, Sample)
        assert (sample.id, sample.label) == (dataset.ids[i], dataset.labels[i])
        number = i if "/" not in sample.id or sample.id.startswith("test/") else None
        if number is None:
            number = int("".join(filter(str.isdigit, sample.id.rpartition("/")[2]))) % 10_000
        assert sample.label == LABELS[number]
        images = {(20, 16, 3): COLOR, (20, 16, 1): GREY[..., None], (32, 32, 3): TILES}
        expected = images[sample.image.shape][number]
        assert sample.image.dtype == np.uint8
        np.testing.assert_array_equal(sample.image, expected)
    np.testing.assert_array_equal(dataset[-1].image, dataset[9].image)
    with pytest.raises(IndexError, match="10 samples"):
        dataset[10]


def test_a_slice_and_a_limit(made: tuple[Path, str]) -> None:
    dataset = opened(made[1])
    few = load_dataset(made[1], limit=4)
    assert list(few.ids) == list(dataset.ids[:4])
    assert [item.id for item in iterate(dataset, 3, 5)] == list(dataset.ids[3:5])
    assert few.digest() != dataset.digest()
    assert load_dataset(made[1], limit=99).digest() == dataset.digest()
    with pytest.raises(BeaufortError, match="limit"):
        load_dataset(made[1], limit=0)


def test_the_digest_is_that_of_the_content(made: tuple[Path, str], tmp_path: Path) -> None:
    root, spec = made
    digest = opened(spec).digest()
    assert len(digest) == 64
    assert opened(spec).digest(fresh=True) == digest
    root.rename(tmp_path / "elsewhere")
    assert opened(spec.replace(str(root), str(tmp_path / "elsewhere"))).digest() == digest


def test_any_byte_changes_the_digest(made: tuple[Path, str], request: pytest.FixtureRequest) -> None:
    """Unless the dataset cannot be opened any more, or the byte is not part of it."""
    root, spec = made
    digest = opened(spec).digest()
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    rng = np.random.default_rng(1)
    changed = tried = 0
    for path in files:
        content = path.read_bytes()
        for at in rng.integers(0, len(content), 8):
            path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
            tried += 1
            try:
                dataset = opened(spec)
                same = dataset.digest() == digest
            except (BeaufortError, MemoryError):
                same = False
            if same:  # such as a padding byte, or a time stamp in an archive
                kept = [item.image for item in iterate(dataset) if isinstance(item, Sample)]
                assert len(kept) == 10
                shutil.rmtree(os.environ["BEAUFORT_CACHE"], ignore_errors=True)
            changed += not same
        path.write_bytes(content)
    assert opened(spec).digest() == digest
    assert changed >= tried / 8


def test_it_can_go_to_another_process(made: tuple[Path, str]) -> None:
    dataset = pickle.loads(pickle.dumps(opened(made[1])))
    np.testing.assert_array_equal(dataset[4].image, opened(made[1])[4].image)


def test_a_name_fits_a_condition(made: tuple[Path, str]) -> None:
    assert opened(made[1]).name.replace("-", "").replace(".", "").replace("_", "").isalnum()


def test_the_container_does_not_matter(tmp_path: Path) -> None:
    def digest(maker: Callable[[Path], str]) -> str:
        root = tmp_path / maker.__name__
        root.mkdir()
        return opened(maker(root)).digest()

    assert digest(make_mnist) == digest(make_mnist_gz)
    assert digest(make_csv) == digest(make_csv_zips) == digest(make_csv_in_zip)
    assert digest(make_npy) == digest(make_npz_packed)
    assert digest(make_folder) == digest(make_imagenet_c)
    assert digest(make_cifar) == digest(make_cifar_pickled) == digest(make_cifar_grid)
