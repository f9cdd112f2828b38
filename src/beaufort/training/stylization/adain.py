"""AdaIN with weights provided by the user: Huang & Belongie (2017), arXiv:1703.06868.

The directory contains `vgg_normalised.pth` and `decoder.pth` of public implementations (tensors by layer
number; RGB in 0..1 without normalization), and a directory `styles` of images. The strength interpolates
between the features of an image and those with the statistics of the style.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data.images import (
    center_box,
    flatten,
    is_image_name,
    read_image,
    resize_crop,
    short_side_size,
)
from beaufort.models.torch import choose_device, read_tensors
from beaufort.training.stylization.network import as_pixels, as_values
from beaufort.training.stylization.shift import StylizerError

_STYLE_SIDE = 256
_LEAST = 16
"""Minimum side: after three halvings, reflection padding needs two pixels."""


def encoder() -> nn.Sequential:
    """Return VGG-19 up to its layer relu4_1, after a 1×1 convolution that scales the colors."""
    layers: list[nn.Module] = [nn.Conv2d(3, 3, 1)]
    inside = 3
    for outside, pooled in (
        *((64, False), (64, True), (128, False), (128, True)),
        *((256, False), (256, False), (256, False), (256, True), (512, False)),
    ):
        layers += [nn.ReflectionPad2d(1), nn.Conv2d(inside, outside, 3), nn.ReLU()]
        layers += [nn.MaxPool2d(2, ceil_mode=True)] if pooled else []
        inside = outside
    return nn.Sequential(*layers)


def decoder() -> nn.Sequential:
    """Return the mirrored encoder, with nearest-neighbor upsampling instead of pooling."""
    layers: list[nn.Module] = []
    inside = 512
    for outside, enlarged in (
        *((256, True), (256, False), (256, False), (256, False), (128, True)),
        *((128, False), (64, True), (64, False), (3, False)),
    ):
        layers += [nn.ReflectionPad2d(1), nn.Conv2d(inside, outside, 3)]
        layers += [nn.ReLU()] if outside != 3 else []
        layers += [nn.Upsample(scale_factor=2, mode="nearest")] if enlarged else []
        inside = outside
    return nn.Sequential(*layers)


@dataclass(frozen=True, eq=False)
class AdaIN:
    """The two networks and the statistics of the styles."""

    encode: nn.Module
    decode: nn.Module
    moments: Tensor
    """Mean and standard deviation of the features of each style, `(styles, 2, channels)`."""
    facts: dict[str, Any]
    device: str

    @property
    def styles(self) -> int:
        return len(self.moments)

    @property
    def strengths(self) -> tuple[float, ...]:
        return (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    @property
    def batch(self) -> int:
        return 8

    def paint(self, images: Bytes, styles: Sequence[int], strength: float) -> Bytes:
        """Return stylized images."""
        height, width = images.shape[1:3]
        down, right = (max(-side % 8, _LEAST - side) for side in (height, width))
        wide = np.pad(images, ((0, 0), (0, down), (0, right), (0, 0)), mode="symmetric")
        with torch.no_grad():
            content = self.encode(as_values(wide, self.device))
            mean, spread = moments(content)
            wanted = self.moments[list(styles)]
            styled = (content - mean[..., None, None]) / spread[..., None, None]
            styled = styled * wanted[:, 1, :, None, None] + wanted[:, 0, :, None, None]
            made = self.decode((1 - strength) * content + strength * styled)
        return as_pixels(made[:, :, :height, :width].clamp(0, 1))


def moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over space, `(n, channels)`."""
    flat = features.flatten(2)
    return flat.mean(2), (flat.var(2) + 1e-5).sqrt()


def open_adain(folder: Path, device: str = "auto") -> AdaIN:
    """Load AdaIN from a directory."""
    where = choose_device(device)
    files = {"encoder": folder / "vgg_normalised.pth", "decoder": folder / "decoder.pth"}
    nets = {"encoder": encoder(), "decoder": decoder()}
    for name, file in files.items():
        if not file.is_file():
            raise StylizerError(f"AdaIN weights not found: {file}")
        _fill(nets[name], file)
        nets[name].to(where).eval()
    images = sorted(path for path in (folder / "styles").glob("*") if is_image_name(path.name))
    if not images:
        raise StylizerError(f"no style images (PNG, JPEG) found in {folder / 'styles'}")
    with torch.no_grad():
        rows = [
            torch.stack(moments(nets["encoder"](as_values(_style(path)[None], where))), 1) for path in images
        ]
    digests = {name: f"sha256:{_sha256(file)}" for name, file in files.items()}
    digests["styles"] = f"sha256:{hashlib.sha256(''.join(map(_sha256, images)).encode()).hexdigest()}"
    facts = {"network": "adain", **digests, "features": "vgg19"}
    return AdaIN(nets["encoder"], nets["decoder"], torch.cat(rows), facts, where)


def _fill(net: nn.Module, file: Path) -> None:
    """Load weights by layer number; a file of the whole VGG-19 has more than needed."""
    tensors = read_tensors(file)
    wanted = net.state_dict()
    missing = [
        key for key, value in wanted.items() if key not in tensors or tensors[key].shape != value.shape
    ]
    if missing:
        shape = tuple(wanted[missing[0]].shape)
        raise StylizerError(f"{file} does not fit AdaIN: missing tensor {missing[0]} of shape {shape}")
    net.load_state_dict({key: tensors[key].float() for key in wanted})


def _style(path: Path) -> Bytes:
    try:
        image: Image.Image = flatten(read_image(path))
    except ImageFileError as error:
        raise StylizerError(f"cannot read the style image {path}: {error}") from None
    size = short_side_size(*image.size, _STYLE_SIDE)
    return resize_crop(np.asarray(image.convert("RGB")), size, center_box(*size, _STYLE_SIDE))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
