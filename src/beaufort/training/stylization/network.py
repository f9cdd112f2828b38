"""A small network that paints in several styles, and its loss.

Johnson, Alahi & Fei-Fei (2016), arXiv:1603.08155: a feed-forward network and a loss on the features of a
classifier. Dumoulin, Shlens & Kudlur (2017), arXiv:1610.07629: one network for many styles, which differ only
in the scales and offsets of normalization and can be mixed. Style 0 is the image itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageValueError, OptionError
from beaufort._core.validation import validate_integer, validate_number
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD
from beaufort.models.torch import choose_device, load_weights
from beaufort.training.stylization.patterns import STYLES, style_image
from beaufort.training.stylization.shift import StylizerError

_PAD = 16
"""Width of the mirrored border that is added and cropped, to avoid painted frames."""
_STEP, _LEAST = 4, 20
"""Sides of training images are halved twice, and the features need at least one pixel."""


class StyledNorm(nn.Module):
    """Instance normalization with the weighted scales and offsets of the styles."""

    def __init__(self, channels: int, styles: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(styles, channels))
        self.offset = nn.Parameter(torch.zeros(styles, channels))

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return normalized features; `weights` are `(n, styles)`."""
        scale, offset = (weights @ one for one in (self.scale, self.offset))
        return functional.instance_norm(x) * scale[..., None, None] + offset[..., None, None]


class StyledConv(nn.Module):
    """A convolution with mirrored borders, then a styled normalization."""

    def __init__(self, inside: int, outside: int, size: int, styles: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, size, stride, bias=False)
        self.norm = StyledNorm(outside, styles)
        self.border = size // 2

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return features before the nonlinearity."""
        wide = functional.pad(x, (self.border,) * 4, mode="reflect")
        found: Tensor = self.norm(self.conv(wide), weights)
        return found


class StyleNetwork(nn.Module):
    """Paints images in 0..1; its loss uses the features of a SqueezeNet 1.1."""

    def __init__(
        self, styles: int, width: int, blocks: int, features: str, style_weight: float, side: int
    ) -> None:
        super().__init__()
        count = styles + 1
        self.styles, self.style_weight, self.side = styles, style_weight, side
        self.first = StyledConv(3, width, 9, count)
        self.down = nn.ModuleList(
            [StyledConv(width, 2 * width, 3, count, 2), StyledConv(2 * width, 4 * width, 3, count, 2)]
        )
        self.blocks = nn.ModuleList([StyledConv(4 * width, 4 * width, 3, count) for _ in range(2 * blocks)])
        self.up = nn.ModuleList(
            [StyledConv(4 * width, 2 * width, 3, count), StyledConv(2 * width, width, 3, count)]
        )
        self.last = nn.Conv2d(width, 3, 9)
        self.kept = nn.Parameter(functional.one_hot(torch.tensor(0), count).float())
        self._teacher = _Teacher(Path(features), styles, side) if features else None

    def forward(self, images: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return painted images; `weights` are those of no style and each style, by default of no style."""
        if weights is None:
            weights = functional.one_hot(torch.zeros(len(images), dtype=torch.long), self.styles + 1)
        weights = weights.to(images.device, images.dtype)
        x = functional.relu(self.first(images * 2 - 1, weights))
        for layer in self.down:
            x = functional.relu(layer(x, weights))
        for one, two in zip(self.blocks[::2], self.blocks[1::2], strict=True):
            x = x + two(functional.relu(one(x, weights)), weights)
        for layer in self.up:
            x = functional.relu(layer(functional.interpolate(x, scale_factor=2), weights))
        change = self.last(functional.pad(x, (4,) * 4, mode="reflect"))
        # normalization loses brightness and colors, so each style keeps a fraction of them
        kept = (weights @ self.kept)[:, None, None, None]
        return torch.sigmoid(change + kept * torch.logit(images, eps=1 / 512))

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:  # noqa: ARG002  photos have none
        """Return the loss of the images painted in random styles, including no style."""
        if self._teacher is None:
            raise StylizerError(
                "training a stylizer requires features; pass --set architecture_options.features=FILE"
            )
        _check_shape(images)
        self._teacher.to(images.device)
        chosen = torch.randint(0, self.styles + 1, (len(images),), device=images.device)
        painted = self(images, functional.one_hot(chosen, self.styles + 1))
        return self._teacher(images, painted.float(), chosen, self.style_weight)


def _check_shape(images: Tensor) -> None:
    channels, height, width = images.shape[1:]
    if channels != 3 or height % _STEP or width % _STEP or min(height, width) < _LEAST:
        raise ImageValueError(
            f"a stylizer requires color images with sides of at least {_LEAST} pixels that are multiples of "
            f"{_STEP}, got {channels} × {height} × {width} (channels, height, width); resize them with --side"
        )


class _Teacher:
    """Features of a frozen SqueezeNet 1.1, and the Gram matrices of the style images."""

    def __init__(self, file: Path, styles: int, side: int) -> None:
        if not file.is_file():
            raise StylizerError(f"features (state dict of a SqueezeNet 1.1) not found: {file}")
        self.features: Any = _squeezenet_features()
        load_weights(self.features, file)
        self.features.float().eval().requires_grad_(False)
        self.digest = hashlib.sha256(file.read_bytes()).hexdigest()
        drawn = np.stack([style_image(number, side) for number in range(styles)])
        with torch.no_grad():
            self.known = _grams(self.maps(torch.from_numpy(drawn).permute(0, 3, 1, 2).float() / 255))

    def to(self, device: torch.device) -> None:
        """Move all tensors to a device."""
        self.features.to(device)
        self.known = [one.to(device) for one in self.known]

    def maps(self, images: Tensor) -> list[Tensor]:
        """Return feature maps of four depths."""
        mean, std = (
            torch.tensor(values, device=images.device).view(1, 3, 1, 1)
            for values in (IMAGENET_MEAN, IMAGENET_STD)
        )
        found, x = [], (images - mean) / std
        for number, layer in enumerate(self.features.features):
            x = layer(x)
            if number in (1, 4, 7, 10):
                found.append(x)
        return found

    def __call__(self, images: Tensor, painted: Tensor, chosen: Tensor, weight: float) -> Tensor:
        """Return the loss: content of all images, style of those with one, pixels of those without.

        Content and style are relative to their targets, because the scale of features varies.
        """
        with torch.no_grad():
            clean = self.maps(images)
        made = self.maps(painted)
        content = functional.mse_loss(made[2], clean[2]) / clean[2].square().mean()
        none = chosen == 0
        style = painted.new_zeros(())
        for place, one in enumerate(_grams(made)):
            wanted = self.known[place][(chosen - 1).clamp_min(0)]
            each = (one - wanted).square().mean((1, 2)) / wanted.square().mean((1, 2))
            style = style + (each * ~none).mean()
        pixels = ((painted - images).square().mean((1, 2, 3)) * none).mean()
        return content + weight * style + 30 * pixels


def _grams(maps: list[Tensor]) -> list[Tensor]:
    """Return the Gram matrices of the features, `(n, c, c)` of each depth."""
    flat = [one.flatten(2) for one in maps]
    return [one @ one.transpose(1, 2) / one.shape[2] / one.shape[1] for one in flat]


def _squeezenet_features() -> nn.Module:
    """Return SqueezeNet 1.1 with torchvision's layer names; the classifier is needed to load its file."""

    class Fire(nn.Module):
        def __init__(self, inside: int, small: int, large: int) -> None:
            super().__init__()
            self.squeeze = nn.Conv2d(inside, small, 1)
            self.expand1x1 = nn.Conv2d(small, large, 1)
            self.expand3x3 = nn.Conv2d(small, large, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            x = functional.relu(self.squeeze(x))
            return torch.cat([functional.relu(self.expand1x1(x)), functional.relu(self.expand3x3(x))], 1)

    class SqueezeNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(
                *(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), _pool(), Fire(64, 16, 64), Fire(128, 16, 64), _pool()),
                *(Fire(128, 32, 128), Fire(256, 32, 128), _pool()),
                *(Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256)),
            )
            self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(512, 1000, 1))

    return SqueezeNet()


def _pool() -> nn.MaxPool2d:
    return nn.MaxPool2d(3, 2, ceil_mode=True)


def make(
    styles: int = STYLES,
    width: int = 16,
    blocks: int = 3,
    features: str = "",
    style_weight: float = 1.0,
    side: int = 256,
) -> StyleNetwork:
    """Return a network for the style images of `beaufort.training.stylization`.

    Args:
        styles: number of style images to learn, at most 16.
        width: filters of the first layer.
        blocks: number of residual blocks.
        features: state dict of a SqueezeNet 1.1, needed for training only.
        style_weight: weight of the style relative to the content.
        side: side of the style images in pixels.
    """
    validate_integer("styles", styles, 1, STYLES)
    validate_integer("width", width, 1, 1024)
    validate_integer("blocks", blocks, 0, 64)
    validate_number("style_weight", style_weight, 0, 1e6)
    validate_integer("side", side, 32, 4096)
    return StyleNetwork(styles, width, blocks, features, style_weight, side)


@dataclass(frozen=True, eq=False)
class Stylizer:
    """A trained network, as used by the shift `stylize`."""

    network: StyleNetwork
    facts: dict[str, Any]
    device: str

    @property
    def styles(self) -> int:
        return self.network.styles

    @property
    def strengths(self) -> tuple[float, ...]:
        return (0.0, 0.3, 0.4, 0.5, 0.6, 0.7)  # less has little effect, more destroys the image

    @property
    def batch(self) -> int:
        return 16

    def paint(self, images: Bytes, styles: Sequence[int], strength: float) -> Bytes:
        """Return painted images; they are padded to multiples of 4 and cropped."""
        height, width = images.shape[1:3]
        down, right = _PAD + -height % 4, _PAD + -width % 4
        wide = np.pad(images, ((0, 0), (_PAD, down), (_PAD, right), (0, 0)), mode="symmetric")
        values = as_values(wide, self.device)
        weights = torch.zeros(len(images), self.styles + 1)
        weights[:, 0] = 1 - strength
        weights[torch.arange(len(images)), torch.tensor(list(styles)) + 1] += strength
        with torch.no_grad():
            made = self.network(values, weights)
        return as_pixels(made[:, :, _PAD : _PAD + height, _PAD : _PAD + width])


def as_values(images: Bytes, device: str) -> Tensor:
    """Return images `(n, h, w, 3)` as a tensor `(n, 3, h, w)` of values in 0..1."""
    return torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).to(device).float() / 255


def as_pixels(values: Tensor) -> Bytes:
    """Return a tensor of values in 0..1 as images."""
    found: Bytes = (values * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return found


def open_stylizer(folder: Path, device: str = "auto") -> Stylizer:
    """Load a network trained with the recipe `stylizer`."""
    weights = folder / "model.safetensors"
    try:
        recipe = json.loads((folder / "training.json").read_bytes())["recipe"]
        architecture, options = recipe["architecture"], dict(recipe["architecture_options"])
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StylizerError(f"cannot read a trained stylizer from {folder}: {error}") from None
    if architecture != "stylizer":
        raise StylizerError(
            f"{folder} must contain a network of `beaufort train stylizer`, got {architecture!r:.60}"
        )
    try:
        network = make(**{**options, "features": ""})
    except (OptionError, TypeError) as error:
        raise StylizerError(f"cannot read a trained stylizer from {folder}: {error}") from None
    load_weights(network, weights)
    where = choose_device(device)
    facts = {"network": "beaufort stylizer", "weights": f"sha256:{digest}", "features": "squeezenet1_1"}
    return Stylizer(network.to(where).eval(), facts, where)
