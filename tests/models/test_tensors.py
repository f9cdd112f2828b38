"""Images on the model's device: prepared there like arrays, and predicted without waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from beaufort.models import Network, Preprocessing, as_model
from beaufort.testing._contracts import example_image

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "preprocessing",
    [
        Preprocessing(),
        Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        Preprocessing(order="BGR", value_range="0..255", mean=(104, 117, 123), layout="NHWC"),
        Preprocessing(channels=1, mean=(0.13,), std=(0.31,), dtype="float16"),
        Preprocessing(dtype="uint8", value_range="0..255"),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_prepared_as_arrays_are(preprocessing: Preprocessing, channels: int, device: str) -> None:
    from beaufort.models.tensors import preprocess_tensors

    images = np.stack([example_image(20, 24, channels, variant=i) for i in range(2)])
    wanted = preprocessing.apply(images)
    found = preprocess_tensors(torch.from_numpy(images).to(device), preprocessing)
    assert found.is_contiguous()
    assert found.cpu().numpy().dtype == wanted.dtype
    assert np.array_equal(found.cpu().numpy(), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_give_the_same_predictions_as_arrays(device: str) -> None:
    torch.manual_seed(0)
    layers = [torch.nn.AdaptiveAvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(27, 5)]
    images = np.stack([example_image(32, 32, variant=i) for i in range(7)])
    tensor = torch.from_numpy(images).to(device)
    ways: list[dict[str, Any]] = [{}, {"max_batch": 3}, {"input_size": 24, "resize": 24}]
    for options in ways:
        model = as_model(torch.nn.Sequential(*layers), device=device, **options)
        assert isinstance(model, Network)
        assert np.allclose(model(tensor), model(images), atol=1e-5)
        assert model.takes_tensors(tensor) == ("resize" not in options)
        assert not model.takes_tensors(images)
        if model.takes_tensors(tensor):
            assert np.array_equal(model.predict_tensors(tensor).cpu().numpy(), model(tensor))
        assert model(tensor[:0]).shape == (0, 5)
    arrays_only = as_model(lambda shown: shown.reshape(len(shown), -1)[:, :4].astype(np.float32), classes=4)
    assert np.array_equal(arrays_only(tensor), arrays_only(images))


def test_a_compiled_module_is_compiled_for_one_number_of_images() -> None:
    """Fewer images are filled up, and the classes are counted without it."""
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(27, 5))
    sizes: list[int] = []

    def backend(graph: Any, inputs: list[Any]) -> Any:
        sizes.extend(len(one) for one in inputs if one.ndim == 4)
        return graph.forward

    compiled = torch.compile(plain, backend=backend, dynamic=False)
    model = as_model(compiled, name="compiled", device="cpu")
    assert model.spec.classes == 5
    assert not sizes
    images = np.stack([example_image(32, 32, variant=i) for i in range(7)])
    for count in (7, 3, 7, 1):
        found = model(torch.from_numpy(images[:count]))
        assert np.allclose(found, as_model(plain, name="plain", device="cpu")(images[:count]), atol=1e-5)
    assert sizes == [7]
