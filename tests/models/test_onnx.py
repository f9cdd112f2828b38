"""ONNX files: properties, logits, and rejected files."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from beaufort import models
from beaufort._core.errors import BeaufortError, MissingExtraError, OptionError
from beaufort.data import load_dataset, prepare
from beaufort.models import ModelError, ModelFileError, load_model
from beaufort.models.onnx import names_in
from beaufort.suites import get_suite
from tests.models.models_nets import onnx_linear

onnxruntime = pytest.importorskip("onnxruntime")


def session_logits(path: Path, batch: NDArray[np.float32]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: batch})[0])


def test_equals_the_runtime(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    path = onnx_linear(tmp_path / "net.onnx", shape=["n", 3, 32, 32])
    model = load_model(f"onnx:{path}", threads=1, device="cpu", mean=(0.5, 0.4, 0.3), std=0.5)
    assert (model.spec.classes, model.spec.input_size, model.spec.name) == (4, (32, 32), "net")
    prepared = model.spec.preprocessing.apply(photos)
    np.testing.assert_array_equal(model(photos), session_logits(path, prepared))


@pytest.mark.parametrize("batch", [1, 4])
def test_fixed_batch(tmp_path: Path, photos: NDArray[np.uint8], batch: int) -> None:
    fixed = onnx_linear(tmp_path / "fixed.onnx", shape=[batch, 3, 32, 32])
    free = onnx_linear(tmp_path / "free.onnx", shape=["n", 3, 32, 32])
    np.testing.assert_allclose(load_model(str(fixed))(photos), load_model(str(free))(photos), rtol=1e-5)


def test_layout_dtype_and_gray_are_read(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    from onnx import TensorProto

    last = onnx_linear(tmp_path / "last.onnx", shape=["n", 32, 32, 3], layout="NHWC")
    whole = onnx_linear(tmp_path / "whole.onnx", shape=["n", 3, 32, 32], kind=TensorProto.UINT8)
    half = onnx_linear(tmp_path / "half.onnx", shape=["n", 3, 32, 32], kind=TensorProto.FLOAT16)
    first = load_model(str(onnx_linear(tmp_path / "first.onnx", shape=["n", 3, 32, 32])))(photos)
    np.testing.assert_allclose(load_model(str(last))(photos), first, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(load_model(str(whole))(photos) / 255, first, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(load_model(str(half))(photos), first, rtol=1e-2, atol=1e-2)
    gray = load_model(str(onnx_linear(tmp_path / "gray.onnx", shape=["n", 1, 32, 32])))
    assert gray.spec.preprocessing.channels == 1
    assert gray(photos).shape == (6, 4)


def test_any_size(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    path = onnx_linear(tmp_path / "any.onnx", shape=["n", 3, "h", "w"])
    model = load_model(str(path))
    assert model.spec.input_size is None
    assert model(photos).shape == (6, 4)
    assert load_model(str(path), input_size=32).spec.input_size == (32, 32)


def test_a_file_of_one_size_takes_no_other(tmp_path: Path) -> None:
    path = onnx_linear(tmp_path / "net.onnx", shape=["n", 3, 32, 32])
    assert load_model(str(path), input_size=32).spec.input_size == (32, 32)
    for size in (64, (32, 48), None):
        with pytest.raises(OptionError, match=r"input_size.*\(32.*32\)"):
            load_model(str(path), input_size=size)


def test_weights_beside_the_file_count(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    path = onnx_linear(tmp_path / "net.onnx", shape=["n", 3, 32, 32], external="weights.bin")
    inside = load_model(str(onnx_linear(tmp_path / "inside.onnx", shape=["n", 3, 32, 32])))
    model = load_model(str(path))
    np.testing.assert_array_equal(model(photos), inside(photos))
    beside = tmp_path / "weights.bin"
    content = bytearray(beside.read_bytes())
    content[1] ^= 1
    beside.write_bytes(bytes(content))
    assert load_model(str(path)).spec.digest != model.spec.digest
    beside.unlink()
    with pytest.raises(ModelFileError, match=r"not found.* folder"):
        load_model(str(path))


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "/etc/passwd", "link.bin", "a/../../secret.bin", "w\0.bin", "w\x1b[2J", "loop.bin"],
)
def test_external_weights_are_rejected(tmp_path: Path, location: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(1000))
    path = onnx_linear(tmp_path / "model/net.onnx", shape=["n", 3, 32, 32], external="x" * len(location))
    path.write_bytes(path.read_bytes().replace(b"x" * len(location), location.encode()))
    if location == "loop.bin":
        (tmp_path / "model/loop.bin").symlink_to(tmp_path / "model/loop.bin")
    if location == "link.bin":
        (tmp_path / "model/link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ModelFileError, match="outside of its folder"):
        load_model(str(path))


@pytest.mark.parametrize("content", [b"", b"no model", bytes(range(256)) * 8, b"\xff" * 64], ids=list("abcd"))
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        load_model(str(path))


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = onnx_linear(tmp_path / "net.onnx", shape=["n", 3, 32, 32])
    for options in ({"output": "probabilities"}, {"threads": 0}, {"device": "tpu"}, {"max_batch": 0}):
        with pytest.raises(BeaufortError, match=next(iter(options))):
            load_model(str(path), **options)
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        with pytest.raises(MissingExtraError, match="onnxruntime-gpu"):
            load_model(str(path), device="cuda")


def photos_of_imagenet(folder: Path, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images, labels = [], []
    with (folder / "labels.csv").open() as file, zipfile.ZipFile(folder / "images_0.zip") as archive:
        names = {Path(name).name: name for name in archive.namelist()}
        rows = [row for row in csv.DictReader(file) if row["file"] in names]
        for row in rows[:: len(rows) // count][:count]:
            with Image.open(io.BytesIO(archive.read(names[row["file"]]))) as opened:
                images.append(prepare(np.asarray(opened.convert("RGB")), get_suite("imagenet-c").prepare))
            labels.append(int(row["label"]))
    return np.stack(images), np.array(labels)


def test_a_real_mobilenet(shared: Path) -> None:
    data = shared / "data"
    images, labels = photos_of_imagenet(data / "imagenet_val_1k", 64)
    file = data / "imagenet_models/mobilenet_v1_0.25_128.onnx"
    model = load_model(str(file), interpolation="bicubic", threads=2)
    assert model.spec.classes == 1000
    accuracy = float((model(images).argmax(axis=1) == labels).mean())
    assert 0.25 < accuracy < 0.8, accuracy


def test_a_real_fixed_batch(shared: Path) -> None:
    data = shared / "data"
    try:
        cifar = load_dataset(data / "cifar10_test", limit=200)
    except BeaufortError as error:
        pytest.skip(str(error))
    model = load_model(
        str(data / "cifar10_models/resnet_2b.onnx"),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        threads=1,
    )
    assert (model.spec.input_size, model.spec.classes) == ((32, 32), 10)
    accuracy = float(
        (model(np.stack([cifar[i].image for i in range(len(cifar))])).argmax(axis=1) == cifar.labels).mean()
    )
    assert 0.6 < accuracy < 0.8, accuracy


def test_metadata_with_another_size_are_rejected(tmp_path: Path) -> None:
    import onnx

    path = onnx_linear(tmp_path / "net.onnx", shape=["n", 3, 32, 32])
    for message in ("[16, 16]", "nonsense", "{}", "[[32, 32]]", ""):
        model = onnx.load(path)
        onnx.helper.set_model_props(model, {"beaufort.resize": message})
        onnx.save(model, tmp_path / "said.onnx")
        with pytest.raises(ModelError, match=r"input size \(32, 32\), got"):
            load_model(str(tmp_path / "said.onnx"))


@pytest.mark.parametrize(
    "text",
    [
        "{0: 'cat', 1: 'dog'}",
        '{"0": "cat", "1": "dog"}',
        '["cat", "dog"]',
        "('cat', 'dog')",
        "cat, dog",
        "cat\ndog",
    ],
)
def test_names_in_the_forms_of_exporters(text: str) -> None:
    assert names_in({"names": text}, 2) == ("cat", "dog")
    assert names_in({"other": text}, 2) is None
    assert names_in({"classes": text}, 3) is None


@pytest.mark.parametrize(
    "text", ["", "3", "[1, 2]", "{1: 'cat', 2: 'dog'}", "{'a': 'cat'}", "[[]]", "(" * 5000]
)
def test_invalid_list_of_names(text: str) -> None:
    assert names_in({"names": text}, 2) is None


def test_classes_are_read_from_the_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(Path(models.__file__).parent / "data" / "digits.onnx"))
    entry = model.metadata_props.add()
    entry.key, entry.value = "names", str(dict(enumerate("abcdefghij")))
    onnx.save(model, str(tmp_path / "letters.onnx"))
    assert load_model(str(tmp_path / "letters.onnx")).spec.class_names == tuple("abcdefghij")
