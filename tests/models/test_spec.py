"""The spec: what the digest depends on, and what results keep."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.models import UNKNOWN, ModelSpec, Preprocessing, as_model, load_model
from tests.models.models_nets import onnx_linear, tiny_net

SPEC = ModelSpec(
    name="net",
    source="onnx:net.onnx",
    preprocessing=Preprocessing(size=(32, 32)),
    classes=2,
    class_names=("cat", "dog"),
    weights="sha256:00",
    details={"templates": ["a {}"]},
)


def test_digest_depends_on_what_changes_predictions() -> None:
    for same in (
        replace(SPEC, name="other"),
        replace(SPEC, source="onnx:moved.onnx"),
        replace(SPEC, label_space="x"),
    ):
        assert same.digest == SPEC.digest
    for other in (
        replace(SPEC, weights="sha256:01"),
        replace(SPEC, preprocessing=Preprocessing(size=(32, 32), order="BGR")),
        replace(SPEC, details={"templates": ["the {}"]}),
    ):
        assert other.digest != SPEC.digest


def test_unknown_stays_unknown() -> None:
    unknown = replace(SPEC, weights=UNKNOWN)
    assert (unknown.digest, unknown.reusable) == (UNKNOWN, False)


def test_as_data_and_back() -> None:
    assert ModelSpec.from_dict(json.loads(json.dumps(SPEC.to_dict()))) == SPEC
    assert SPEC.input_size == (32, 32)
    hash(SPEC)


def test_names_and_count_agree() -> None:
    with pytest.raises(OptionError, match=r"class_names.*3.*2"):
        replace(SPEC, classes=3)


CHILD = """
import sys
from beaufort.models import load_model
print(load_model(sys.argv[1]).spec.digest)
"""


def test_file_digest_is_the_same_in_another_process_and_place(tmp_path: Path) -> None:
    here = onnx_linear(tmp_path / "a.onnx", shape=["n", 3, 8, 8])
    (tmp_path / "far").mkdir()
    there = tmp_path / "far" / "b.onnx"
    there.write_bytes(here.read_bytes())
    child = subprocess.run([sys.executable, "-c", CHILD, there], capture_output=True, text=True, check=True)
    digest = load_model(str(here)).spec.digest
    assert child.stdout.strip() == digest
    assert load_model(str(here), order="BGR").spec.digest != digest
    other = onnx_linear(tmp_path / "c.onnx", shape=["n", 3, 8, 8], seed=1)
    assert load_model(str(other)).spec.digest != digest


def test_module_digest_changes_with_one_weight() -> None:
    torch = pytest.importorskip("torch")
    digest = as_model(tiny_net(), input_size=32).spec.digest
    assert as_model(tiny_net(), input_size=32).spec.digest == digest
    assert as_model(tiny_net(), input_size=32, range="-1..1").spec.digest != digest
    net = tiny_net()
    with torch.no_grad():
        net[6].bias[0] += 1e-6
    assert as_model(net, input_size=32).spec.digest != digest
    net = tiny_net()
    net[1].running_mean[0] = 1  # a buffer counts too
    assert as_model(net, input_size=32).spec.digest != digest
    assert as_model(tiny_net().to(memory_format=torch.channels_last), input_size=32).spec.digest == digest
    assert as_model(tiny_net().bfloat16().float(), input_size=32, classes=5).spec.digest != digest


def test_module_digest_changes_with_layers_that_have_no_weights() -> None:
    torch = pytest.importorskip("torch")
    digest = as_model(tiny_net(), input_size=32).spec.digest
    for place, layer in ((0, torch.nn.Conv2d(3, 6, 3, stride=1)), (2, torch.nn.GELU())):
        net = tiny_net()
        layer.load_state_dict(net[place].state_dict())
        net[place] = layer
        assert as_model(net, input_size=32).spec.digest != digest


def test_module_digest_has_no_address_in_it() -> None:
    torch = pytest.importorskip("torch")

    class Described(torch.nn.Identity):  # type: ignore[misc, name-defined]
        def extra_repr(self) -> str:
            return repr(object())

    digests = {
        as_model(torch.nn.Sequential(tiny_net(), Described()), input_size=32).spec.digest for _ in "ab"
    }
    assert len(digests) == 1


def test_module_digest_changes_with_the_version() -> None:
    digest = as_model(tiny_net(), input_size=32).spec.digest
    versions = {as_model(tiny_net(), input_size=32, version=word).spec.digest for word in "12"}
    assert len(versions | {digest}) == 3
    with pytest.raises(OptionError, match=r"version.* empty"):
        as_model(tiny_net(), input_size=32, version="")


def test_callables_need_a_version() -> None:
    def net(images: np.ndarray) -> np.ndarray:
        return np.asarray(images.mean(axis=(1, 2)))

    assert as_model(net).spec.digest == UNKNOWN
    assert as_model(net, version="1").spec.reusable
    assert as_model(net, version="1").spec.digest != as_model(net, version="2").spec.digest
    with pytest.raises(OptionError, match=r"version.* empty"):
        as_model(net, version=" ")
