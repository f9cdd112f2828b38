"""Stylized images: drawn styles, a network that learns them, AdaIN with a user's weights, and the shift."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; the extra training has it")
pytest.importorskip("safetensors", reason="safetensors is not installed; the extra training has it")

from PIL import Image  # noqa: E402

from beaufort._core.errors import BeaufortError, ImageValueError, OptionError  # noqa: E402
from beaufort.models import as_model  # noqa: E402
from beaufort.results import evaluate  # noqa: E402
from beaufort.suites.conditions import Condition  # noqa: E402
from beaufort.testing._contracts import example_image  # noqa: E402
from beaufort.training import Recipe, TrainingTensors, train  # noqa: E402
from beaufort.training.stylization import STYLES, Stylize, StylizerError, style_image  # noqa: E402
from beaufort.training.stylization.adain import decoder, encoder, moments, open_adain  # noqa: E402
from beaufort.training.stylization.network import _squeezenet_features, make, open_stylizer  # noqa: E402

SMALL: dict[str, Any] = {"styles": 2, "width": 4, "blocks": 1, "side": 64}


def photos(count: int = 4, side: int = 64) -> Any:
    return np.stack([example_image(side, side, 3, variant=i) for i in range(count)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network after a few training steps, with random SqueezeNet features."""
    folder = tmp_path_factory.mktemp("stylizer")
    torch.manual_seed(0)
    torch.save(_squeezenet_features().half().state_dict(), folder / "squeezenet.pth")
    images = torch.from_numpy(photos(8)).permute(0, 3, 1, 2)
    data = TrainingTensors("photos", ("photo",), images, torch.zeros(8, dtype=torch.long))
    recipe = Recipe(
        name="stylizer",
        architecture="stylizer",
        architecture_options={**SMALL, "features": str(folder / "squeezenet.pth")},
        epochs=6,
        batch=4,
        optimizer="adam",
        rate=0.01,
    )
    made = train(recipe, data, output=folder / "made", device="cpu")
    assert made.facts["losses"][-1] < made.facts["losses"][0]
    return made.folder


def test_style_images_are_drawn_and_differ() -> None:
    drawn = [style_image(number, 48) for number in range(STYLES)]
    assert len({one.tobytes() for one in drawn}) == STYLES
    np.testing.assert_array_equal(drawn[5], style_image(5, 48))
    assert all(one.std() > 10 for one in drawn)
    with pytest.raises(OptionError, match="0 to 15, got 16"):
        style_image(16)


@pytest.mark.slow
def test_a_trained_network_paints(trained: Path) -> None:
    stylizer = open_stylizer(trained, "cpu")
    images = photos(3, 30)
    for strength in (0.0, 1.0):
        made = stylizer.paint(images, [0, 1, 0], strength)
        assert made.shape == images.shape
        assert made.dtype == np.uint8
        np.testing.assert_array_equal(made[1:2], stylizer.paint(images[1:2], [1], strength))
    none = [stylizer.paint(images, [style] * 3, 0.0) for style in (0, 1)]
    np.testing.assert_array_equal(none[0], none[1])
    assert (stylizer.paint(images, [0] * 3, 1.0) != stylizer.paint(images, [1] * 3, 1.0)).any()


def test_colors_and_brightness_survive_without_a_style() -> None:
    """Instance normalization forgets both, so what is kept of the image goes around it."""
    network = make(**SMALL)
    torch.nn.init.zeros_(network.last.weight)
    torch.nn.init.zeros_(network.last.bias)
    images = torch.from_numpy(photos(2)).permute(0, 3, 1, 2).float() / 255
    none, style = torch.tensor([[1.0, 0, 0]] * 2), torch.tensor([[0, 1.0, 0]] * 2)
    with torch.no_grad():
        assert (network(images, none) - images).abs().max() < 1 / 255
        assert (network(images, style) - 0.5).abs().max() < 1e-6  # until it has learned to paint


def test_the_loss_does_not_depend_on_the_size_of_features(tmp_path: Path) -> None:
    """Otherwise content outweighs style a thousand times, and no style is visible."""
    torch.manual_seed(0)
    teacher = _squeezenet_features().half()
    values = torch.from_numpy(photos(2)).permute(0, 3, 1, 2).float() / 255
    found = []
    for factor in (1, 50):
        state = {key: value * ("bias" not in key) for key, value in teacher.state_dict().items()}
        state["features.0.weight"] = state["features.0.weight"] * factor  # without biases, all else follows
        torch.save(state, tmp_path / "squeezenet.pth")
        torch.manual_seed(1)
        network = make(**SMALL, features=str(tmp_path / "squeezenet.pth"))
        found.append(float(network.loss(values, values).detach()))
    assert found[0] == pytest.approx(found[1], rel=0.02)


@pytest.mark.parametrize("shape", [(3, 3, 3), (3, 16, 64), (3, 30, 32), (1, 32, 32)])
def test_training_images_of_a_wrong_shape_are_rejected(shape: tuple[int, int, int], tmp_path: Path) -> None:
    torch.save(_squeezenet_features().state_dict(), tmp_path / "squeezenet.pth")
    network = make(**SMALL, features=str(tmp_path / "squeezenet.pth"))
    output = "at least 20 pixels.* multiples of 4, got " + " × ".join(map(str, shape))
    with pytest.raises(ImageValueError, match=output):
        network.loss(torch.rand(2, *shape), torch.zeros(2))
    assert network.loss(torch.rand(2, 3, 20, 24), torch.zeros(2)).isfinite()


def test_the_shift_has_five_severities_and_none(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_STYLIZER", str(trained))
    images, ids = photos(), ["a", "b", "c", "d"]
    made = [Stylize(str(level)).apply(images, ids=ids, seed=0) for level in range(6)]
    assert len({one.tobytes() for one in made}) == 6
    np.testing.assert_array_equal(made[3][:2], Stylize("3").apply(images[:2], ids=ids[:2], seed=0))
    assert Stylize("3").apply(images[:0], ids=[], seed=0).shape == (0, *images.shape[1:])
    facts = Stylize("3").facts(seed=1)
    assert facts["strength"] == 0.5
    assert facts["weights"].startswith("sha256:")
    gray = Stylize("5").apply(images[..., :1], ids=ids, seed=0)
    assert gray.shape == (4, 64, 64, 1)
    assert str(Condition.parse("photos/stylize@3")) == "photos/stylize@3"


def test_a_network_comes_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a style an image is nearly unchanged; more style changes it more."""
    monkeypatch.delenv("BEAUFORT_STYLIZER", raising=False)
    images, ids = np.stack([example_image(96, 128), example_image(96, 128)[::-1]]), ["a", "b"]
    changes = [
        np.abs(Stylize(str(level)).apply(images, ids=ids, seed=0).astype(float) - images).mean()
        for level in range(6)
    ]
    assert changes == sorted(changes)
    assert changes[0] < 8
    assert changes[5] > 30
    assert Stylize("3").features == "squeezenet1_1"


def test_a_classifier_that_taught_it_is_marked(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_STYLIZER", str(trained))
    nets = [
        as_model(lambda x: x.mean(axis=(1, 2), dtype=np.float32), name=name, classes=3, version=name)
        for name in ("squeezenet1_1_227", "resnet50")
    ]
    found = evaluate(
        nets, [Condition.parse("data/stylize@2")], (photos(), np.zeros(4, int)), labels="identity"
    )
    marked = [note for note in found.notes if "features of squeezenet1_1" in note]
    assert len(marked) == 1
    assert marked[0].startswith("squeezenet1_1_227 ")


@pytest.fixture(scope="module")
def adain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AdaIN's files with random weights."""
    folder = tmp_path_factory.mktemp("adain")
    torch.manual_seed(0)
    for net, name in ((encoder(), "vgg_normalised.pth"), (decoder(), "decoder.pth")):
        for layer in net:
            if isinstance(layer, torch.nn.Conv2d):
                layer.weight.data *= 2.4  # what keeps values from vanishing on the way
        torch.save(net.state_dict(), folder / name)
    (folder / "styles").mkdir()
    for number in range(2):
        Image.fromarray(style_image(number, 64)).save(folder / "styles" / f"{number}.png")
    return folder


@pytest.mark.slow
def test_adain_moves_features_to_the_statistics_of_a_style(adain: Path) -> None:
    net = open_adain(adain, "cpu")
    assert net.styles == 2
    images = photos(2, 40)
    alone, half, whole = (net.paint(images, [0, 1], strength) for strength in (0.0, 0.5, 1.0))
    assert alone.shape == images.shape
    assert len({one.tobytes() for one in (alone, half, whole)}) == 3
    np.testing.assert_array_equal(alone, net.paint(images, [1, 0], 0.0))
    values = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        content = net.encode(values)
        mean, spread = moments(content)
        wanted = net.moments[[0, 1]]
        styled = (content - mean[..., None, None]) / spread[..., None, None]
        styled = styled * wanted[:, 1, :, None, None] + wanted[:, 0, :, None, None]
    again = moments(styled)
    torch.testing.assert_close(again[0], wanted[:, 0], rtol=1e-3, atol=1e-4)


def test_adain_reads_all_image_formats_of_folders(adain: Path, tmp_path: Path) -> None:
    shutil.copytree(adain, tmp_path / "adain")
    styles = tmp_path / "adain" / "styles"
    for name in ("a.tif", "b.GIF"):
        Image.fromarray(style_image(2, 64)).save(styles / name)
    (styles / "notes.txt").write_text("by me")
    (styles / "._0.png").write_bytes(b"what some systems leave beside a file")
    assert open_adain(tmp_path / "adain", "cpu").styles == 4


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (8, 8), (9, 17)])
def test_adain_stylizes_small_images(adain: Path, shape: tuple[int, int]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, *shape, 3), dtype=np.uint8)
    assert open_adain(adain, "cpu").paint(images, [0, 1], 0.5).shape == images.shape


def test_missing_and_wrong_files_are_reported(
    adain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEAUFORT_STYLIZER", str(tmp_path))
    with pytest.raises(StylizerError, match="BEAUFORT_STYLIZER"):
        Stylize("1").facts(seed=0)
    with pytest.raises(OptionError, match=r"severity of stylize.* 0 to 5.*'6'"):
        Stylize("6")
    (tmp_path / "styles").mkdir()
    for name in ("decoder.pth", "vgg_normalised.pth"):
        (tmp_path / name).write_bytes((adain / name).read_bytes())
    with pytest.raises(StylizerError, match="no style images"):
        open_adain(tmp_path, "cpu")
    (tmp_path / "styles" / "a.png").write_bytes(b"no image")
    with pytest.raises(StylizerError, match=r"style image .*a\.png"):
        open_adain(tmp_path, "cpu")
    torch.save(decoder().state_dict(), tmp_path / "vgg_normalised.pth")
    with pytest.raises(StylizerError, match=r"vgg_normalised\.pth.* 0\.weight"):
        open_adain(tmp_path, "cpu")
    with pytest.raises(StylizerError, match="SqueezeNet"):
        make(features=str(tmp_path / "none.pth"))
    with pytest.raises(StylizerError, match="features"):
        make(**SMALL).loss(torch.zeros(1, 3, 32, 32), torch.zeros(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"styles": 0}, r"styles .*integer.* 1 to 16.* 0"),
        ({"styles": 17}, r"styles .*integer.* 1 to 16.* 17"),
        ({"styles": "two"}, r"styles .*integer.* 1 to 16.* 'two'"),
        ({"width": 0}, r"width .*integer.* 1 to 1024.* 0"),
        ({"blocks": -1}, r"blocks .*integer.* 0 to 64.* -1"),
        ({"side": 8}, r"side .*integer.* 32 to 4096.* 8"),
        ({"style_weight": -1}, r"style_weight .*number.* 0 to 1e\+06.* -1"),
    ],
)
def test_invalid_options_of_a_stylizer_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make(**options)


def test_a_folder_of_another_network_is_no_stylizer(trained: Path, tmp_path: Path) -> None:
    facts = json.loads((trained / "training.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes((trained / "model.safetensors").read_bytes())
    for change, message in (
        ({"architecture": "resnet"}, "got 'resnet'"),
        ({"architecture_options": {"depth": 20}}, r"make\(\) got an"),
        ({"architecture_options": {"styles": "x"}}, "styles must be"),
    ):
        changed = {**facts, "recipe": {**facts["recipe"], **change}}
        (tmp_path / "training.json").write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(StylizerError, match=message):
            open_stylizer(tmp_path, "cpu")


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (np.zeros((2, 32, 32, 3)), "images must be a uint8 array .*, got dtype float64; images are stylized"),
        (np.zeros((2, 32, 32, 4), np.uint8), r"got shape \(2, 32, 32, 4\)"),
        (np.zeros((3, 32, 32, 3), np.uint8), r"ids .*list.* 3 images"),
    ],
)
def test_images_that_cannot_be_stylized(images: np.ndarray, says: str) -> None:
    """Floats, images without an id and images with alpha are rejected."""
    with pytest.raises(BeaufortError, match=says):
        Stylize("3").apply(images, ids=["a", "b"], seed=0)
