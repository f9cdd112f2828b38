"""From a text to a model: kinds, names, options, and the sentences for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core import optional as lazy
from beaufort._core.errors import BeaufortError, MissingExtraError, OptionError, UnknownNameError
from beaufort.models import Model, ModelError, adapters, as_model, load_model, model_names, models

MODULE = """
import numpy as np
def means():
    return lambda images: images.astype(np.float32).mean(axis=(1, 2))
def finished():
    from beaufort.models import as_model
    return as_model(means(), name="three", classes=3, version="1")
def text():
    return "not a model"
number = 3
"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "house_nets.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("house_nets", None)


@pytest.mark.usefixtures("house")
def test_python_factory(photos: NDArray[np.uint8]) -> None:
    model = load_model("python:house_nets:means", classes=3, version="1", max_batch=4)
    assert isinstance(model, Model)
    assert (model.spec.name, model.spec.source) == ("means", "python:house_nets:means")
    logits = model(photos)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, photos.mean(axis=(1, 2)), rtol=1e-5)
    assert model(photos[:0]).shape == (0, 3)


@pytest.mark.usefixtures("house")
def test_python_factory_with_preprocessing(photos: NDArray[np.uint8]) -> None:
    model = as_model(lambda x: x.mean(axis=(2, 3)), range="0..1", input_size=32, classes=["r", "g", "b"])
    assert model.spec.class_names == ("r", "g", "b")
    assert float(model(photos).max()) <= 1


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("python:house_nets:mean", "did you mean 'means'"),
        ("python:house_net:means", "no module named 'house_net'"),
        ("python:house_nets", "python:package.module:factory"),
        ("python:house_nets:number", "got int"),
        ("python:house_nets:text", "got str"),
        ("onxx:a.onnx", "did you mean 'onnx'"),
        ("resnet50", "unknown model 'resnet50'.*onnx:"),
        ("timm:", "missing name.*timm:"),
        ("", "missing name"),
        ("absent.onnx", "not found: absent.onnx"),
        ("torch:absent.pt2", "not found: absent.pt2"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(BeaufortError, match=message):
        load_model(text)


def test_unknown_options_are_named() -> None:
    with pytest.raises(OptionError, match=r"'rang'.*'range'"):
        load_model("a.onnx", rang="0..1")
    with pytest.raises(OptionError, match="'source'"):
        load_model("python:a:b", source="x")


@pytest.mark.usefixtures("house")
def test_a_finished_model_of_a_factory_takes_no_options() -> None:
    assert load_model("python:house_nets:finished").spec.name == "three"
    for given in ({"name": "other"}, {"label_space": "mnist"}, {"max_batch": 1}):
        with pytest.raises(OptionError, match=next(iter(given))):
            load_model("python:house_nets:finished", **given)


@pytest.mark.usefixtures("house")
def test_registered_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_things", dict(models))
    models.register("house-net", "python:house_nets:means")
    assert model_names()["house-net"] == "python:house_nets:means"
    assert load_model("house-net").spec.source == "python:house_nets:means"
    with pytest.raises(UnknownNameError, match="mean 'house-net'"):
        load_model("house-nett")


def test_a_model_is_itself() -> None:
    model = as_model(lambda x: x.mean(axis=(1, 2)))
    assert as_model(model) is model
    for given in ({"range": "0..1"}, {"name": "other"}, {"label_space": "mnist"}, {"max_batch": 1}):
        with pytest.raises(OptionError, match=next(iter(given))):
            as_model(model, **given)
    with pytest.raises(ModelError, match="got int"):
        as_model(3)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros((1, 3)), r"must return logits of shape \(2, classes\), got float64 of shape \(1, 3\)"),
        (np.zeros(2), r"float64 of shape \(2,\)"),
        (np.zeros((2, 0)), r"float64 of shape \(2, 0\)"),
        (np.zeros((2, 3), complex), "complex128"),
        (
            np.zeros((2, 4)),
            "must return 3 logits per image, its number of classes, got 4; load it with classes=4",
        ),
    ],
)
def test_invalid_logits(output: NDArray[np.float64], message: str) -> None:
    model = as_model(lambda _: output, classes=3)
    with pytest.raises(ModelError, match=message):
        model(np.zeros((2, 8, 8, 3), np.uint8))


@pytest.mark.parametrize("kind", [kind for kind, one in adapters.items() if one.extra])
def test_missing_library_names_its_extra(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "installed", lambda _: False)
    with pytest.raises(MissingExtraError, match=rf"pip install 'beaufort\[{adapters[kind].extra}\]'"):
        load_model(f"{kind}:anything")


PROBE = """
import json, sys
import beaufort.models, beaufort.testing
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_importing_and_listing_import_no_framework() -> None:
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    heavy = {"onnxruntime", "torch", "torchvision", "timm", "transformers", "open_clip", "pydantic"}
    assert not heavy & set(json.loads(child.stdout))


VISION = """
from beaufort.models import prepare_torchvision
prepare_torchvision(); prepare_torchvision()
import torchvision
print(torchvision.models.resnet18(num_classes=2).fc.out_features)
"""


def test_torchvision_can_be_imported_in_a_fresh_process() -> None:
    if not (lazy.installed("torchvision") and lazy.installed("torch")):
        pytest.skip("torchvision is not installed")
    child = subprocess.run([sys.executable, "-c", VISION], capture_output=True, text=True, check=False)
    assert child.stdout == "2\n", child.stderr


@pytest.mark.parametrize("kind", ["onnx", "torch", "transformers", "demo"])
@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\ud800"], ids=["long", "nul", "surrogate"])
def test_names_that_no_file_has(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BeaufortError):
        load_model(f"{kind}:{name}")
