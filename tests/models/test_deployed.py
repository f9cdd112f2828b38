"""Files of OpenVINO and LiteRT, quantized ONNX files, and execution providers by name.

The native libraries of these runtimes bring thread pools of their own. The tests run in a process without the
other libraries of the test suite, which `test_runtimes_in_a_process_of_their_own` starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.models import ModelError, ModelFileError, load_model
from beaufort.testing import check_model
from tests.models.models_nets import litert_linear, onnx_convolution, onnx_linear

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
INPUT = ["n", 3, 32, 32]
ALONE = "BEAUFORT_TEST_RUNTIMES"
in_own_process = pytest.mark.skipif(ALONE not in os.environ, reason="runs in a process of its own")


@pytest.mark.skipif(ALONE in os.environ, reason="this is that process")
def test_runtimes_in_a_process_of_their_own(tmp_path: Path) -> None:
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    environment = {**os.environ, ALONE: "1", "PYTEST_ADDOPTS": f"--basetemp={tmp_path / 'own'}"}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_XDIST")}
    child = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stdout + child.stderr
    assert " passed" in child.stdout


def saved(path: Path, **how: Any) -> Path:
    """An OpenVINO model of the linear network."""
    openvino = pytest.importorskip("openvino")
    source = onnx_linear(path.with_suffix(".onnx"), **{"shape": INPUT, **how})
    openvino.save_model(openvino.Core().read_model(str(source)), str(path), compress_to_fp16=False)
    return path


@in_own_process
@pytest.mark.parametrize("batch", ["n", 4])
def test_openvino(tmp_path: Path, photos: NDArray[np.uint8], batch: Any) -> None:
    path = saved(tmp_path / "net.xml", shape=[batch, 3, 32, 32])
    model = load_model(str(path), threads=1)
    assert (model.spec.input_size, model.spec.classes, model.spec.name) == ((32, 32), 4, "net")
    expected = load_model(str(tmp_path / "net.onnx"))(photos)
    np.testing.assert_allclose(model(photos), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(load_model(f"openvino:{tmp_path}/net.onnx")(photos), model(photos))
    assert check_model(model) == []
    half = load_model(str(path), precision="bf16", output="logits")
    assert half.spec.digest != model.spec.digest
    np.testing.assert_allclose(half(photos), expected, rtol=0.05, atol=0.05)


@in_own_process
def test_openvino_files_that_do_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.xml")
    digest = load_model(str(path)).spec.digest
    for options in ({"device": "gpux"}, {"precision": "int4"}, {"output": "x"}, {"threads": 0}):
        with pytest.raises(BeaufortError, match=next(iter(options))):
            load_model(str(path), **options)
    weights = path.with_suffix(".bin")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    assert load_model(str(path)).spec.digest != digest
    weights.unlink()
    with pytest.raises(ModelFileError, match=r"OpenVINO.*net\.xml"):
        load_model(str(path))
    (tmp_path / "text.xml").write_text("hello")
    with pytest.raises(ModelFileError, match=r"OpenVINO.*text\.xml"):
        load_model(str(tmp_path / "text.xml"))


@in_own_process
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", ["float32", "uint8", "int8"])
def test_litert(tmp_path: Path, photos: NDArray[np.uint8], kind: str, batch: int) -> None:
    path, matrix = litert_linear(tmp_path / "net.tflite", kind=kind, batch=batch)
    model = load_model(str(path), threads=1)
    assert (model.spec.input_size, model.spec.classes, model.spec.name) == ((32, 32), 4, "net")
    images = model.spec.preprocessing.fit(photos)
    expected = images.mean(axis=(1, 2)) / 255 @ matrix
    atol = 1e-4 if kind == "float32" else 0.05
    np.testing.assert_allclose(model(photos), expected, atol=atol)
    assert check_model(model) == []
    scaled = load_model(f"litert:{path}", range="0..1", output="logits")
    np.testing.assert_allclose(scaled(photos), model(photos), atol=1e-6)
    darker = load_model(str(path), mean=0.25)
    np.testing.assert_allclose(
        darker(photos),
        np.maximum(images / 255 - 0.25, 0 if kind != "float32" else -9).mean(axis=(1, 2)) @ matrix,
        atol=atol,
    )


@in_own_process
def test_litert_files_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = litert_linear(tmp_path / "net.tflite")
    for options in ({"device": "cuda"}, {"output": "x"}, {"threads": 0}, {"input_size": 64}):
        with pytest.raises(BeaufortError, match=next(iter(options))):
            load_model(str(path), **options)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ModelFileError, match="LiteRT cannot open"):
        load_model(str(path))
    with pytest.raises(ModelFileError, match="not found"):
        load_model(str(tmp_path / "missing.tflite"))


@in_own_process
def test_quantized_onnx_files(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    path = onnx_convolution(tmp_path / "net.onnx")
    model = load_model(str(path))

    class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.batches = iter([{"image": model.spec.preprocessing.apply(photos)}])

        def get_next(self) -> Any:
            return next(self.batches, None)

    static, dynamic = (str(tmp_path / f"{name}.onnx") for name in ("static", "dynamic"))
    quantization.quantize_static(str(path), static, Calibration(), per_channel=True)
    quantization.quantize_dynamic(str(path), dynamic, weight_type=quantization.QuantType.QUInt8)
    close = 0.05 * float(np.ptp(model(photos)))
    for name in (static, dynamic):
        np.testing.assert_allclose(load_model(name)(photos), model(photos), atol=close)
    assert check_model(load_model(static)) == []
    assert "batch" in {one.check for one in check_model(load_model(dynamic))}


@in_own_process
def test_providers_by_name(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    path = str(onnx_linear(tmp_path / "net.onnx", shape=INPUT))
    model = load_model(path)
    for name in ("cpu", "CPUExecutionProvider", "CPU,use_arena=1"):
        named = load_model(path, provider=name)
        np.testing.assert_array_equal(named(photos), model(photos))
        assert named.spec.digest != model.spec.digest
    with pytest.raises(OptionError, match=r"'TensorRT'.*CPU"):
        load_model(path, provider="TensorRT")
    with pytest.raises(OptionError, match="NAME,OPTION=VALUE"):
        load_model(path, provider="cpu,fast")
    with pytest.raises(OptionError, match="provider and device"):
        load_model(path, provider="cpu", device="cpu")


@in_own_process
def test_a_provider_that_is_installed_but_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime silently runs on the CPU then."""
    onnxruntime = pytest.importorskip("onnxruntime")
    path = str(onnx_linear(tmp_path / "net.onnx", shape=INPUT))
    session = onnxruntime.InferenceSession

    def on_cpu(file: str, options: Any, providers: list[Any], **more: Any) -> Any:
        assert providers == [("TensorrtExecutionProvider", {"trt_fp16_enable": "1"}), "CPUExecutionProvider"]
        return session(file, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["TensorrtExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", on_cpu)
    with pytest.raises(ModelError, match="execution provider"):
        load_model(path, provider="tensorrt,trt_fp16_enable=1")
