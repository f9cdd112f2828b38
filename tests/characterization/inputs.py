"""Inputs that the scenarios share: images, digits, datasets, models and suites, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.characterization import renames

SUITE = """
name: mine
version: 1
dataset: toys
scale: cifar
corruptions: [fog, contrast, gaussian_noise]
severities: [2, 5]
"""

MODELS = """
import os

import numpy as np
from beaufort.models import as_model

def toy(seed=3, name="toy"):
    tints = np.array([[60, 0, 0], [0, 60, 0], [0, 0, 60], [-40, -40, -40], [35, -10, 35]])
    weights = tints[:, None] / 900 + np.random.default_rng(seed).normal(0, 0.04, (5, 64, 3))
    def logits(images):
        if "SHOWN" in os.environ:
            with open(os.environ["SHOWN"], "a") as file:
                file.write(f"{len(images)}\\n")
        small = images.reshape(len(images), 8, 4, 8, 4, 3).mean(axis=(2, 4), dtype=np.float32) - 110
        return (small.reshape(len(images), -1) @ weights.reshape(5, -1).T / 9).astype(np.float32)
    return as_model(logits, name=name, classes=5, version=str(seed))

def ten():
    five = toy()
    def logits(images):
        return np.concatenate([five(images), five(images[:, ::-1])[:, ::-1] * 0.7 + 0.1], axis=1)
    return as_model(logits, name="ten", classes=10, version="1")

def toy2():
    return toy(4, "toy2")

def color(images):
    red, green, blue = images.mean(axis=(1, 2), dtype=np.float32).T
    dark = 200 - (red + green + blue) / 3
    return np.stack([red, green, blue, dark, 0.5 * (red + blue)], 1) / 20

def hue():
    return as_model(color, name="hue", classes=["red", "green", "blue", "dark", "pink"], version="1")

def left():
    return as_model(lambda images: color(images[:, :, :16]), name="left",
                    classes=["red", "green", "blue", "dark", "pink"], version="2")

def plain():
    return color

def zoo():
    return as_model(lambda images: images.mean(axis=(1, 2), dtype=np.float32) / 9,
                    name="zoo", classes=["ant", "bee", "cat"], version="1")

def random_net():
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5))
    return net
"""


def photo(height: int, width: int, channels: int = 3, variant: int = 0) -> NDArray[np.uint8]:
    """Return an image with flat parts, slopes, edges and fine texture."""
    y, x = np.mgrid[:height, :width]
    u, v = x / width, y / height
    waves = 45 * np.sin((6 + variant) * u + 2 * v) * np.cos(4 * v - (3 + variant) * u)
    disk = 80 * (np.hypot(u - 0.4, v - 0.6) < 0.25)
    checks = 30 * ((x // 4 + y // 4) % 2) * (u > 0.55) * (v < 0.45)
    layers = [120 + waves + 50 * u + disk * weight - checks * (1 - weight) for weight in (0.9, 0.1, -0.6)]
    grain = np.random.default_rng(variant).integers(-6, 7, (height, width, channels))
    made: NDArray[np.uint8] = (np.stack(layers[:channels], axis=-1) + grain).clip(0, 255).astype(np.uint8)
    return made


def digit(variant: int = 0) -> NDArray[np.uint8]:
    """Return a soft white ring and a stroke on black, 28 by 28 by 1."""
    y, x = np.mgrid[:28, :28]
    ring = np.abs(np.hypot(x - 12 - variant % 2, y - 10 - variant % 3) - 5 - variant % 2)
    stroke = np.where((y > 13) & (y < 24), np.abs(x - 17 + (y - 13) * 0.25), 9)
    made: NDArray[np.uint8] = (255 * (2.1 - np.minimum(ring, stroke))).clip(0, 255).astype(np.uint8)
    return made[..., None]


def colored(count: int, side: int = 32, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images of five classes that a model can tell by their color, with much noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 5
    tints = np.array([[60, 0, 0], [0, 60, 0], [0, 0, 60], [-40, -40, -40], [35, -10, 35]])
    images = rng.integers(60, 160, (count, side, side, 3)) + tints[labels][:, None, None]
    images = images + rng.normal(0, 25, (count, 1, 1, 3)).astype(np.int64)
    return images.clip(0, 255).astype(np.uint8), labels.astype(np.int64)


def write_toys(folder: Path, count: int = 40) -> None:
    """Write a dataset of arrays, `toys`."""
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = colored(count)
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)


def write_photos(folder: Path, each: int = 2, size: tuple[int, int] = (48, 64)) -> None:
    """Write a folder of PNG images in folders by class."""
    from PIL import Image

    for number, name in enumerate(("ant", "bee", "cat")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(each):
            pixels = photo(*size, variant=3 * index + number)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")


def write_digits(folder: Path, count: int = 20) -> None:
    """Write digits as a dataset of arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "images.npy", np.stack([digit(i) for i in range(count)]))
    np.save(folder / "labels.npy", np.arange(count) % 10)


def write_idx(folder: Path, count: int = 12) -> None:
    """Write digits in MNIST's own format."""
    folder.mkdir(parents=True, exist_ok=True)
    images = np.stack([digit(i)[..., 0] for i in range(count)])
    head = np.array([2051, count, 28, 28], ">i4").tobytes()
    (folder / "t10k-images-idx3-ubyte").write_bytes(head + images.tobytes())
    labels = (np.arange(count) % 10).astype(np.uint8)
    head = np.array([2049, count], ">i4").tobytes()
    (folder / "t10k-labels-idx1-ubyte").write_bytes(head + labels.tobytes())


def write_onnx(path: Path, shape: list[Any], classes: int = 5, seed: int = 0) -> None:
    """Write a network for ONNX: the mean over pixels, times a matrix."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    matrix = np.random.default_rng(seed).normal(size=(shape[1], classes)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["image", "axes"], ["pooled"], keepdims=0),
            helper.make_node("MatMul", ["pooled", "matrix"], ["logits"]),
        ],
        "linear",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], classes])],
        [
            numpy_helper.from_array(matrix, "matrix"),
            numpy_helper.from_array(np.array([2, 3], np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))


def write_listed(folder: Path, count: int = 60) -> None:
    """Write images with a list that has a label, a camera and a patient for each."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    images, labels = colored(count, 24, seed=2)
    names = ("red", "green", "blue", "dark", "pink")
    lines = ["file,label,camera,patient"]
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        Image.fromarray(image).save(folder / f"{number:02}.png")
        camera = ("nikon", "phone", "scanner")[number % 3]
        lines.append(f"{number:02}.png,{names[label]},{camera},p{number // 4}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def write_common(folder: Path, which: str) -> None:
    """Write the models, in one of the two spellings, the suite and the datasets that most groups use."""
    (folder / "our_models.py").write_text(renames.code(MODELS) if which == "now" else MODELS)
    (folder / "mine.yaml").write_text(SUITE)
    write_toys(folder / "toys")
    write_photos(folder / "photos")
