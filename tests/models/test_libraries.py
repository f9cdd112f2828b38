"""timm, torchvision, transformers and open_clip: small random networks through the real libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.errors import BeaufortError
from beaufort.models import load_model, prepare_torchvision

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    prepare_torchvision()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.set_rng_state(state)


def library(name: str) -> Any:
    prepare_torchvision()
    return pytest.importorskip(name)


def through(net: Any, transform: Any, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The library's own way: its transform, image by image, and its module."""
    with torch.inference_mode():
        batch = torch.stack([transform(Image.fromarray(image)) for image in images])
        return np.asarray(net.eval()(batch), np.float32)


def test_timm(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    timm = library("timm")
    net = timm.create_model("test_resnet", pretrained=False, num_classes=7)
    torch.save(net.state_dict(), tmp_path / "net.pth")
    model = load_model(f"timm:test_resnet@{tmp_path}/net.pth", classes=7, device="cpu")
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(net), is_training=False)
    expected = through(net, transform, photos)
    np.testing.assert_allclose(model(photos), expected, rtol=1e-4, atol=1e-5)
    assert (model.spec.classes, model.spec.input_size, model.spec.name) == (7, (160, 160), "test_resnet.net")
    again = load_model(f"timm:test_resnet@{tmp_path}/net.pth", classes=7)
    assert again.spec.digest == model.spec.digest
    small = load_model("timm:test_resnet", pretrained=False, classes=3, channels=1, input_size=64)
    assert small(photos).shape == (6, 3)


def test_timm_names() -> None:
    library("timm")
    with pytest.raises(BeaufortError, match="mean 'test_resnet'"):
        load_model("timm:test_resnett")
    with pytest.raises(BeaufortError, match="unknown model of timm"):
        load_model("timm:qqqqqqqqqqqqqqqq")


def test_torchvision(tmp_path: Path, photos: NDArray[np.uint8]) -> None:
    vision = library("torchvision")
    net = vision.models.squeezenet1_1(weights=None, num_classes=6)
    torch.save(net.state_dict(), tmp_path / "net.pth")
    model = load_model(f"torchvision:squeezenet1_1@{tmp_path}/net.pth", classes=6, device="cpu")
    transform = vision.models.SqueezeNet1_1_Weights.IMAGENET1K_V1.transforms()
    np.testing.assert_allclose(model(photos), through(net, transform, photos), rtol=1e-4, atol=1e-5)
    assert model.spec.preprocessing.resize == 256
    assert model.spec.details == {"architecture": "torchvision:squeezenet1_1"}


def test_torchvision_names() -> None:
    library("torchvision")
    with pytest.raises(BeaufortError, match="did you mean 'resnet50'"):
        load_model("torchvision:resnet5O")
    with pytest.raises(BeaufortError, match="IMAGENET1K_V2"):
        load_model("torchvision:resnet50.V3", pretrained=False)


def vit(folder: Path, transformers: Any, processor: Any) -> Any:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=8,
        id2label={0: "cat", 1: "dog", 2: "fox"},
        label2id={"cat": 0, "dog": 1, "fox": 2},
    )
    net = transformers.ViTForImageClassification(config)
    net.save_pretrained(folder)
    processor.save_pretrained(folder)
    return net.eval()


@pytest.mark.parametrize("kind", ["exact", "crop", "crop_pct"])
def test_transformers(tmp_path: Path, photos: NDArray[np.uint8], kind: str) -> None:
    transformers = library("transformers")
    processor = {
        "exact": lambda: transformers.ViTImageProcessor(size={"height": 32, "width": 32}, resample=2),
        "crop": lambda: transformers.BitImageProcessor(
            size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}
        ),
        "crop_pct": lambda: transformers.ConvNextImageProcessor(size={"shortest_edge": 32}, crop_pct=0.875),
    }[kind]()
    net = vit(tmp_path / "vit", transformers, processor)
    model = load_model(f"transformers:{tmp_path}/vit", device="cpu")
    assert model.spec.class_names == ("cat", "dog", "fox")
    assert model.spec.name == "vit"
    prepared = model.spec.preprocessing.apply(photos)
    with torch.inference_mode():
        expected = net(torch.from_numpy(prepared)).logits.numpy()
        theirs = processor(images=[Image.fromarray(image) for image in photos], return_tensors="pt")
    np.testing.assert_allclose(model(photos), expected, rtol=1e-4, atol=1e-5)
    # its resize rounds to 8 bit in another place than Pillow's
    assert np.abs(prepared - theirs["pixel_values"].numpy()).max() < 3 / 255 / 0.26
    assert load_model(f"transformers:{tmp_path}/vit").spec.digest == model.spec.digest


def test_transformers_that_cannot_be_loaded(tmp_path: Path) -> None:
    library("transformers")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BeaufortError, match=r"cannot load.* classifier"):
        load_model(f"transformers:{tmp_path}/empty")


def test_open_clip(tmp_path: Path, photos: NDArray[np.uint8], tiny_clip: tuple[str, Any]) -> None:
    import open_clip

    names, templates = ["cat", "dog", "red fox"], ["a photo of a {}.", "a drawing of the {}."]
    text, net = tiny_clip
    model = load_model(text, classes=names, templates=templates, device="cpu")
    tokens = open_clip.get_tokenizer("tiny-clip")
    transform = open_clip.image_transform(32, is_train=False)
    with torch.inference_mode():
        sides = [
            net.encode_text(tokens([one.format(name) for one in templates]), normalize=True).mean(0)
            for name in names
        ]
        directions = torch.stack([side / side.norm() for side in sides])
        images = torch.stack([transform(Image.fromarray(image)) for image in photos])
        seen = net.encode_image(images, normalize=True)
        expected = (net.logit_scale.exp() * seen @ directions.T).numpy()
    np.testing.assert_allclose(model(photos), expected, rtol=1e-3, atol=1e-3)
    assert model.spec.class_names == tuple(names)
    other = load_model(text, classes=names, templates=templates[:1])
    assert other.spec.weights == model.spec.weights
    assert other.spec.digest != model.spec.digest
    lines = tmp_path / "classes.txt"
    lines.write_text("\n".join(names))
    assert load_model(text, classes=str(lines), templates=templates).spec.digest == model.spec.digest


def test_open_clip_errors(tmp_path: Path, tiny_clip: tuple[str, Any]) -> None:
    text, _ = tiny_clip
    for wrong, options, message in (
        (text, {}, "class names"),
        (text, {"classes": 3}, "class names"),
        (text, {"classes": ["a"], "templates": ["a photo"]}, "contain {} once"),
        ("open_clip:tiny-clap", {"classes": ["a"]}, "did you mean 'tiny-clip'"),
        ("open_clip:tiny-clip", {"classes": ["a"]}, "missing weights"),
        ("open_clip:tiny-clip/absent.pt", {"classes": ["a"]}, "not found: absent.pt"),
        ("open_clip:ViT-B-32/laion2b_s34b_b79", {"classes": ["a"]}, "did you mean 'laion2b_s34b_b79k'"),
    ):
        with pytest.raises(BeaufortError, match=message):
            load_model(wrong, **options)
    published = load_model("open_clip:tiny-clip", pretrained=False, classes=["a", "b"], templates="openai")
    assert published.spec.details is not None
    assert len(published.spec.details["templates"]) == 80
