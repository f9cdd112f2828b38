"""Torch: modules, state dicts, exported programs, and rejected files."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort import evaluate
from beaufort._core.errors import BeaufortError, ImageTypeError, ImageValueError, OptionError
from beaufort.models import ModelError, ModelFileError, Network, as_model, load_model, with_filter
from beaufort.models.network import spec_with_class_count
from beaufort.testing import check_model
from tests.models.models_nets import tiny_net

torch = pytest.importorskip("torch")

ARCH = """
import sys
sys.path.insert(0, {folder!r})
from beaufort.testing import check_model
from tests.models.models_nets import tiny_net
def net():
    return tiny_net(seed=3)
def text():
    return "no module"
"""


@pytest.fixture
def arch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "torch_arch.py").write_text(ARCH.format(folder=str(Path(__file__).parents[2])))
    monkeypatch.syspath_prepend(tmp_path)
    yield "python:torch_arch:net"
    sys.modules.pop("torch_arch", None)


def own_logits(net: Any, batch: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.inference_mode():
        return np.asarray(net.eval()(torch.from_numpy(batch)), np.float32)


@pytest.mark.parametrize("channels_last", [False, True])
def test_module_equals_itself(photos: NDArray[np.uint8], channels_last: bool) -> None:
    net = tiny_net().train()
    model = as_model(net, input_size=32, mean=0.5, std=0.25, channels_last=channels_last, device="cpu")
    assert isinstance(model, Network)
    assert (model.spec.classes, model.device) == (5, "cpu")
    expected = own_logits(net, model.spec.preprocessing.apply(photos))
    np.testing.assert_allclose(model(photos), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model(photos), model(photos))


def test_a_module_with_an_unstated_fixed_input_size() -> None:
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 10))
    model = as_model(flat, channels=1, device="cpu")
    assert model.spec.classes is None
    assert spec_with_class_count(model, np.zeros((28, 28, 1), np.uint8)).classes == 10
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        as_model(flat, channels=1, input_size=32, device="cpu")


def test_only_uint8_tensors_are_accepted(photos: NDArray[np.uint8]) -> None:
    """Floats from 0 to 1 are not truncated to black images."""
    model = as_model(tiny_net(seed=8), input_size=32, device="cpu")
    shown = torch.from_numpy(model.spec.preprocessing.fit(photos))
    np.testing.assert_array_equal(model(shown), model(shown.numpy()))
    for wrong, message in (
        (shown / 255, r"got dtype torch\.float32; a model scales the values itself"),
        ((shown / 255).requires_grad_(), r"got dtype torch\.float32"),
        ((shown / 255).bfloat16(), r"got dtype torch\.bfloat16"),
        (shown.tolist(), "got list"),
    ):
        with pytest.raises(ImageTypeError, match=rf"images.*uint8 array.* {message}"):
            model(wrong)
    with pytest.raises(ImageValueError, match=r"shape \(\d+.*3.*32.*32\)"):
        model(shown.permute(0, 3, 1, 2))


def test_state_dict(tmp_path: Path, photos: NDArray[np.uint8], arch: str) -> None:
    net = tiny_net(seed=8)
    plain, wrapped, half = tmp_path / "a.pth", tmp_path / "b.th", tmp_path / "c.pt"
    torch.save(net.state_dict(), plain)
    prefixed = {f"module.{key}": value for key, value in net.state_dict().items()}
    torch.save({"state_dict": prefixed, "best_prec1": 90.0}, wrapped)
    torch.save(
        {
            key: value.half() if value.is_floating_point() else value
            for key, value in net.state_dict().items()
        },
        half,
    )
    model = load_model(f"torch:{plain}", arch=arch, input_size=32)
    expected = own_logits(net, model.spec.preprocessing.apply(photos))
    np.testing.assert_allclose(model(photos), expected, rtol=1e-6, atol=1e-6)
    other = load_model(f"torch:{wrapped}", arch=arch, input_size=32)
    assert other.spec.digest == model.spec.digest
    near = load_model(f"torch:{half}", arch=arch, input_size=32)
    np.testing.assert_allclose(near(photos), expected, rtol=0.05, atol=0.05)


def test_safetensors(tmp_path: Path, photos: NDArray[np.uint8], arch: str) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    net = tiny_net(seed=8)
    safetensors.save_file(net.state_dict(), tmp_path / "net.safetensors")
    model = load_model(f"torch:{tmp_path}/net.safetensors", arch=arch, input_size=32)
    np.testing.assert_allclose(
        model(photos), own_logits(net, model.spec.preprocessing.apply(photos)), rtol=1e-6, atol=1e-6
    )
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelFileError):
        load_model(f"torch:{tmp_path}/bad.safetensors", arch=arch)


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_pickles_are_rejected(tmp_path: Path, arch: str) -> None:
    torch.save(tiny_net(), tmp_path / "module.pt")
    torch.save({"state_dict": Evil(tmp_path / "ran")}, tmp_path / "evil.pt")
    for name in ("module.pt", "evil.pt"):
        with pytest.raises(ModelFileError, match=r"arbitrary code.*state_dict\(\)"):
            load_model(f"torch:{tmp_path}/{name}", arch=arch)
    assert not (tmp_path / "ran").exists()


def test_files_that_do_not_fit(tmp_path: Path, arch: str) -> None:
    torch.save(tiny_net(classes=7).state_dict(), tmp_path / "seven.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "text.pt").write_text("hello")
    for name, message in (
        ("seven.pt", "seven.pt does not fit Sequential"),
        ("list.pt", "must contain a state dict"),
        ("text.pt", "text.pt"),
    ):
        with pytest.raises(ModelFileError, match=message):
            load_model(f"torch:{tmp_path}/{name}", arch=arch)
    with pytest.raises(OptionError, match=r"arch=python:package\.module:factory"):
        load_model(f"torch:{tmp_path}/seven.pt")
    with pytest.raises(OptionError, match=r"arch=python:.*got 'resnet50'"):
        load_model(f"torch:{tmp_path}/seven.pt", arch="resnet50")
    with pytest.raises(ModelError, match=r"torch module.*\bstr\b"):
        load_model(f"torch:{tmp_path}/seven.pt", arch="python:torch_arch:text")


def export(path: Path, *, batch: int | None = None) -> Any:
    net = tiny_net(seed=4).eval()
    shapes = ({0: torch.export.Dim("n")},) if batch is None else None
    program = torch.export.export(net, (torch.zeros(batch or 2, 3, 32, 32),), dynamic_shapes=shapes)
    torch.export.save(program, path)
    return net


@pytest.mark.parametrize("batch", [None, 4])
def test_exported_program(tmp_path: Path, photos: NDArray[np.uint8], batch: int | None) -> None:
    net = export(tmp_path / "net.pt2", batch=batch)
    model = load_model(str(tmp_path / "net.pt2"), mean=0.5)
    assert (model.spec.input_size, model.spec.classes) == ((32, 32), 5)
    expected = own_logits(net, model.spec.preprocessing.apply(photos))
    np.testing.assert_allclose(model(photos), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(OptionError, match="arch cannot be used"):
        load_model(str(tmp_path / "net.pt2"), arch="python:a:b")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("batch", [None, 4])
def test_a_package_of_compiled_code(tmp_path: Path, photos: NDArray[np.uint8], batch: int | None) -> None:
    net = export(tmp_path / "net.pt2", batch=batch)
    program = torch.export.load(tmp_path / "net.pt2")
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "compiled.pt2"))
    model = load_model(path, trusted=True, input_size=32, batch=batch, max_batch=5)
    assert check_model(model) == []
    expected = own_logits(net, model.spec.preprocessing.apply(photos))
    np.testing.assert_allclose(model(photos), expected, rtol=1e-4, atol=1e-5)


def test_compile(photos: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: compile_(function, backend="eager"))
    plain, compiled = (as_model(tiny_net(seed=1), input_size=32, compile=on) for on in (False, True))
    np.testing.assert_allclose(compiled(photos), plain(photos), rtol=1e-5, atol=1e-5)
    assert compiled.spec.weights == plain.spec.weights
    assert compiled.spec.digest != plain.spec.digest
    assert check_model(compiled) == []


def rewritten(path: Path, change: Any) -> Path:
    """The archive with parts that `change(name, content)` made."""
    target = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


def pickled(tmp_path: Path) -> bytes:
    file = tmp_path / "evil.pt"
    torch.save((Evil(tmp_path / "ran"),), file)
    return file.read_bytes()


def test_exported_programs_are_looked_into(tmp_path: Path) -> None:
    export(tmp_path / "net.pt2")
    evil = pickled(tmp_path)

    def in_inputs(name: str, content: bytes) -> bytes:
        return evil if name.endswith("sample_inputs/model.pt") else content

    def in_weights(name: str, content: bytes) -> bytes:
        if name.endswith("weights_config.json"):
            config = json.loads(content)
            config["config"]["0.weight"]["use_pickle"] = True
            return json.dumps(config).encode()
        return evil if name.endswith("/weight_0") else content

    def in_sizes(name: str, content: bytes) -> bytes:
        text = b"Symbol('s"
        if not name.endswith("models/model.json"):
            return content
        program = content.replace(text, b"__import__('os').mkdir('ran') or " + text)
        assert program != content
        return program

    def in_calls(name: str, content: bytes) -> bytes:
        return (
            content.replace(b"torch.ops.aten.relu.default", b"os.abort")
            if name.endswith(".json")
            else content
        )

    def compiled(name: str, content: bytes) -> bytes:
        return content

    for change, message in (
        (in_inputs, "run arbitrary code"),
        (in_weights, "run arbitrary code"),
        (in_sizes, "not arithmetic"),
        (in_calls, "only operations of torch"),
    ):
        with pytest.raises(ModelFileError, match=message):
            load_model(str(rewritten(tmp_path / "net.pt2", change)))
    assert not (tmp_path / "ran").exists()
    same = rewritten(tmp_path / "net.pt2", compiled)
    with zipfile.ZipFile(same, "a") as archive:
        archive.writestr("net/data/aotinductor/model/code.so", b"")
    with pytest.raises(OptionError, match=r"compiled code.*trusted=true"):
        load_model(str(same))
    with pytest.raises(OptionError, match="input_size"):
        load_model(str(same), trusted=True)
    with pytest.raises(ModelFileError, match="package of AOTInductor"):
        load_model(str(same), trusted=True, input_size=32)
    objects = rewritten(tmp_path / "net.pt2", compiled)
    with zipfile.ZipFile(objects, "a") as archive:
        archive.writestr("net/data/executorch/code.pte", b"")
    with pytest.raises(ModelFileError, match="compiled code"):
        load_model(str(objects), trusted=True, input_size=32)
    (tmp_path / "text.pt2").write_text("hello")
    with pytest.raises(ModelFileError, match="not an exported program"):
        load_model(str(tmp_path / "text.pt2"))


def test_devices_and_threads() -> None:
    for options in ({"device": "warp"}, {"threads": 0}):
        with pytest.raises(OptionError, match="must be"):
            as_model(tiny_net(), input_size=32, **options)
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="'cuda' is not available"):
            as_model(tiny_net(), input_size=32, device="cuda")
    before = torch.get_num_threads()
    try:
        as_model(tiny_net(), input_size=32, threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.gpu
def test_on_a_gpu(photos: NDArray[np.uint8]) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    here = as_model(tiny_net(), input_size=32, device="cpu")
    there = as_model(tiny_net(), input_size=32, device="cuda")
    assert there.spec.digest == here.spec.digest
    np.testing.assert_allclose(there(photos), here(photos), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(there(photos), there(photos))


def test_modules_with_invalid_outputs(photos: NDArray[np.uint8]) -> None:
    class Odd(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, wrap: Any) -> None:
            super().__init__()
            self.net, self.wrap = tiny_net(), wrap

        def forward(self, images: Any) -> Any:
            return self.wrap(self.net(images))

    plain = as_model(tiny_net(), input_size=32)(photos)
    np.testing.assert_array_equal(as_model(Odd(lambda x: (x, x + 1)), input_size=32)(photos), plain)
    with pytest.raises(BeaufortError, match=r"tensor.*\bdict\b"):
        as_model(Odd(lambda x: {"out": x}), input_size=32)


def layers() -> Any:
    """A network whose outputs in training mode depend on the batch."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def test_a_module_predicts_in_evaluation_mode_and_its_mode_is_restored(photos: NDArray[np.uint8]) -> None:
    net = layers().train()
    net[1].eval()  # frozen, say
    model = as_model(net, device="cpu")
    assert (net.training, net[0].training, net[1].training) == (True, True, False)
    net[1].train()
    statistics = net[1].running_mean.clone()
    np.testing.assert_allclose(model(photos)[:2], model(photos[:2]), atol=1e-6)
    assert net[1].training
    assert torch.equal(net[1].running_mean, statistics)
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(model.spec.preprocessing.apply(photos)))
    np.testing.assert_allclose(model(photos), expected, atol=1e-6)
    assert not net.training


def test_a_module_that_has_learned_since_is_not_evaluated_as_before(
    photos: NDArray[np.uint8], tmp_path: Path
) -> None:
    net, data = layers(), (photos, np.arange(len(photos)) % 2)
    model = as_model(net, name="net", device="cpu")
    filtered = with_filter(model, "stretch")
    evaluate([model, filtered], ["brightness"], data, tmp_path, labels="identity")
    net.load_state_dict(net.state_dict())  # the same values
    net.train()(torch.rand(4, 3, 32, 32))
    for changed in (model, filtered):
        with pytest.raises(ModelError, match=r"weights of .* changed"):
            evaluate(changed, ["brightness"], data, tmp_path, labels="identity")
    again = as_model(net, name="net", device="cpu")
    assert again.spec.digest != model.spec.digest
    evaluate(again, ["brightness"], data, tmp_path / "new", labels="identity")
    with torch.no_grad():
        net[4].bias += 1
    with pytest.raises(ModelError, match=r"weights of .* changed"):
        evaluate(again, ["brightness"], data, tmp_path / "new", labels="identity")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more"])
def test_a_truncated_weights_file_is_reported_with_the_cause(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cut.pth").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"cut\.pth: .+"):
        load_model(f"torch:{tmp_path / 'cut.pth'}", arch="python:tests.models.models_nets:tiny_net")
