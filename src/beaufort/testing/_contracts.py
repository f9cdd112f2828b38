"""The contract of corruptions: one function per requirement."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import MIN_SIDE
from beaufort._core.errors import AssetError, BeaufortError
from beaufort.corruptions import SCALES, SEVERITIES, Corruption, corruptions, snapped


class ContractError(BeaufortError, AssertionError):
    """A plug-in that violates its contract."""


def example_image(height: int, width: int, channels: int = 3, *, variant: int = 0) -> NDArray[np.uint8]:
    """Return a color image with flat areas, gradients, edges and fine texture."""
    y, x = np.mgrid[:height, :width]
    u, v = x / width, y / height
    waves = 40 * np.sin((7 + variant) * u + 3 * v) * np.cos(5 * v - (2 + variant) * u)
    disk = 90 * (np.hypot(u - 0.35, v - 0.55) < 0.22)
    checks = 30 * ((x // 3 + y // 3) % 2) * (u > 0.6) * (v < 0.5)
    layers = [
        110 + waves + 60 * u + disk * weight - checks * (1 - weight) for weight in (1.0, 0.2, -0.5, 0.6)
    ]
    drawn: NDArray[np.uint8] = np.clip(np.stack(layers[:channels], axis=-1), 0, 255).astype(np.uint8)
    return drawn


def digit(*, variant: int = 0) -> NDArray[np.uint8]:
    """Return an image like a handwritten digit: a soft white ring and a stroke on black, 28×28×1."""
    y, x = np.mgrid[:28, :28]
    ring = np.abs(np.hypot(x - 13, y - 10 - variant % 3) - 5 - variant % 2)
    stroke = np.where((y > 14) & (y < 24), np.abs(x - 18 + (y - 14) * 0.3), 9)
    drawn: NDArray[np.uint8] = np.clip(255 * (2.2 - np.minimum(ring, stroke)), 0, 255).astype(np.uint8)
    return drawn[..., None]


def _sample(scale: str, count: int) -> NDArray[np.uint8]:
    """Return images for a scale: digits for `mnist`, color images for the others."""
    if scale == "mnist":
        return np.stack([digit(variant=i % 6) for i in range(count)])
    return np.stack([example_image(64, 64, variant=i % 4) for i in range(count)])


def _expect(met: bool, requirement: str, *, but: str = "") -> None:
    """Raise an error if a requirement is not met; `but` describes the actual result and the fix."""
    if not met:
        raise ContractError(f"{requirement}. {but}" if but else requirement)


def _named(contract: Callable[[Corruption], None]) -> Callable[[Corruption], None]:
    """Return the contract with errors that name the corruption; other errors become such errors."""

    @wraps(contract)
    def checked(corruption: Corruption) -> None:
        cause: Exception | None = None
        try:
            contract(corruption)
            return
        except AssetError:
            raise
        except ContractError as error:
            problem = str(error)
        except Exception as error:
            but = str(error) if isinstance(error, BeaufortError) else f"{type(error).__name__}: {error}"
            if isinstance(error, ValueError) and "read-only" in str(error):
                but = f"The render modifies its input; copy it first ({error})"
            requirement = (contract.__doc__ or "").partition("\n")[0].rstrip(".")
            problem, cause = f"{requirement}. {but}", error
        raise ContractError(f"{corruption.name} violates the contract: {problem}") from cause

    return checked


def is_well_declared(corruption: Corruption) -> None:
    """It has a unique name, a description, and one or five `NamedTuple`s of constants at each scale."""
    known = corruptions.get(corruption.name)
    _expect(
        known is None or known is corruption,
        "the name must be unique",
        but="Another corruption is registered under it",
    )
    _expect(
        bool(corruption.summary),
        "the render must have a docstring",
        but="`beaufort ls corruptions` shows its first line",
    )
    for scale, recipe in corruption.recipes.items():
        count, kinds = len(recipe.levels), {type(level) for level in recipe.levels}
        _expect(
            count in (1, len(SEVERITIES)),
            f"scale {scale} must have constants for five severities, or one entry for all",
            but=f"It has {count} entries",
        )
        _expect(
            len(kinds) == 1 and all(hasattr(level, "_asdict") for level in recipe.levels),
            f"the constants of scale {scale} must be of one NamedTuple, whose field names are stored",
            but=f"They are of type {', '.join(sorted(kind.__name__ for kind in kinds))}",
        )
        json.dumps([level._asdict() for level in recipe.levels])


def returns_images(corruption: Corruption) -> None:
    """The render returns uint8 images of the input shape."""
    for channels in (3, 1):
        corruption(example_image(40, 48, channels), 2)


def keeps_kind_and_shape(corruption: Corruption) -> None:
    """The result has the type, shape and dtype of the input, for every supported type of image."""
    from PIL import Image

    color = example_image(40, 48)
    kinds: list[Any] = [
        color[..., 0],
        color[..., :1],
        color,
        example_image(40, 48, 4),
        np.stack([color, color[::-1]]),
        np.stack([color[..., :1]] * 3),
    ]
    for image in kinds:
        out = corruption(image, 2)
        same = isinstance(out, np.ndarray) and out.shape == image.shape and out.dtype == np.uint8
        _expect(same, f"the result for a uint8 array {image.shape} must be a uint8 array of this shape")
    for mode, pixels in (("L", color[..., 0]), ("RGB", color), ("RGBA", example_image(40, 48, 4))):
        out = corruption(Image.fromarray(pixels), 2)
        same = isinstance(out, Image.Image) and out.mode == mode and out.size == (48, 40)
        _expect(same, f"the result for a PIL image of mode {mode} must be such an image")
        array = corruption(pixels, 2)
        _expect(
            np.array_equal(np.asarray(out), array),
            f"PIL images of mode {mode} and arrays must give the same pixels",
        )


def leaves_input_alone(corruption: Corruption) -> None:
    """The input is not modified, and the result does not share its memory."""
    image = example_image(40, 48)
    before = image.copy()
    image.flags.writeable = False
    out = corruption(image, 3)
    _expect(np.array_equal(image, before), "the input must not be modified")
    _expect(not np.shares_memory(out, image), "the result must be a new array", but="It is the input")
    _expect(
        not np.shares_memory(out, corruption(image, 3)),
        "the result must be a new array in each call",
        but="The render returns an array that it keeps; return a copy",
    )


def carries_alpha(corruption: Corruption) -> None:
    """The alpha channel is returned unchanged and does not affect the colors."""
    image = example_image(40, 48, 4)
    out = corruption(image, 3, ids=["a"])
    _expect(np.array_equal(out[..., 3], image[..., 3]), "the alpha channel must be returned unchanged")
    plain = corruption(image[..., :3], 3, ids=["a"])
    _expect(np.array_equal(out[..., :3], plain), "colors must not depend on the alpha channel")


def same_alone_as_in_a_batch(corruption: Corruption) -> None:
    """The pixels of an image depend on the image, its id and the seed, not on the rest of the batch."""
    images = np.stack(
        [example_image(40, 48, variant=i) // (1 + i % 3) for i in range(5)]
    )  # bright and dark ones
    ids: list[int | str] = [0, 1, "two", "three", 2**40]
    for identity in (ids, None):
        batch = corruption(images, 3, ids=identity)
        for i, image in enumerate(images):
            alone = corruption(image, 3, ids=identity and [identity[i]])
            _expect(
                np.array_equal(batch[i], alone),
                "an image must get the same pixels alone and in a batch",
                but="Draw one entry per image, and compute each image on its own",
            )
        order = [3, 0, 4, 2, 1]
        shuffled = corruption(images[order], 3, ids=identity and [identity[i] for i in order])
        _expect(np.array_equal(shuffled, batch[order]), "the order of a batch must not matter")
        many = corruption(np.concatenate([images] * 40), 3, ids=identity and identity * 40, jobs=2)
        _expect(np.array_equal(many, np.concatenate([batch] * 40)), "the number of threads must not matter")


def _global_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002  (it is only compared)


def same_every_time(corruption: Corruption) -> None:
    """Two calls give the same pixels, and global generators are not used."""
    image = example_image(40, 48)
    before = _global_state()
    first, second = corruption(image, 3), corruption(image, 3)
    own = "It uses another generator; draw all random numbers from `random`, in the draw"
    _expect(np.array_equal(first, second), "two calls must give the same pixels", but=own)
    _expect(_global_state() == before, "NumPy's global generator must not be used", but=own)


def differs_by_seed_and_id(corruption: Corruption) -> None:
    """Another seed or id gives other pixels if there is a draw, and the same pixels otherwise."""
    image = example_image(40, 48)
    base = corruption(image, 3, ids=["a"], seed=0)
    for what, others in (
        ("seed", [corruption(image, 3, ids=["a"], seed=seed) for seed in range(1, 9)]),
        ("id", [corruption(image, 3, ids=[name], seed=0) for name in "bcdefghi"]),
    ):
        differs = any(not np.array_equal(base, other) for other in others)
        if corruption.random:
            ignored = "The render ignores the drawn numbers; use them, or remove the draw"
            _expect(differs, f"another {what} must give other pixels", but=ignored)
        else:
            _expect(not differs, f"the {what} must not matter without a draw")


def does_something(corruption: Corruption) -> None:
    """At every scale and severity, images change and do not become a flat color.

    With a draw, one of eight images may stay unchanged below the last severity: randomly placed patches can
    all miss an image (`checkerboard_cutout` leaves one of sixteen at its weakest). One of eight may become
    flat, because these images are smaller than most scales assume.
    """
    for scale in corruption.recipes:
        images = _sample(scale, 32 if corruption.random else 4)
        some = len(images) // 8 if corruption.random else 0
        for severity in SEVERITIES:
            out = corruption(images, severity, scale=scale, ids=range(len(images)))
            each = out.reshape(len(images), -1)
            unchanged = int((each == images.reshape(len(images), -1)).all(axis=1).sum())
            flat = int((each.std(axis=1) == 0).sum())
            where, most = f"at scale {scale}, severity {severity}", 0 if severity == SEVERITIES[-1] else some
            result = f"{unchanged} of {len(images)} stay unchanged; strengthen the constants"
            _expect(unchanged <= most, f"{where} must change the images", but=result)
            result = f"{flat} of {len(images)} become a flat color; weaken the constants"
            _expect(flat <= some, f"{where} must leave a recognizable image", but=result)


def grows_with_severity(corruption: Corruption) -> None:
    """Severity 5 changes the pixels more than severity 1."""
    for scale, recipe in corruption.recipes.items():
        if len(recipe.levels) == 1 or not corruption.graded:
            continue
        images = _sample(scale, 64)
        damage = [
            float(
                np.abs(corruption(images, severity, scale=scale, ids=range(64)).astype(int) - images).mean()
            )
            for severity in (1, 5)
        ]
        _expect(
            damage[1] > damage[0],
            f"at scale {scale}, severity 5 must change the pixels more than severity 1",
            but=f"The mean changes are {damage[1]:.2f} and {damage[0]:.2f} levels; order the constants from "
            "weak to strong, or declare graded=False",
        )


def takes_severities_between(corruption: Corruption) -> None:
    """Severity 2.5 works and has constants between those of 2 and 3."""
    image = example_image(40, 48)
    for scale, recipe in corruption.recipes.items():
        out = corruption(image, 2.5, scale=scale)
        _expect(out.shape == image.shape, f"severity 2.5 must work at scale {scale}")
        if len(recipe.levels) == 1 or corruption.mixes:
            continue
        middle, ends = corruption.params(2.5, scale), [recipe.level(2), recipe.level(3)]
        ends += [snapped(one, SCALES[scale]) for one in ends]  # rounded as they take effect
        for name, value, *around in zip(middle._fields, middle, *ends, strict=True):
            if isinstance(value, int | float):
                between = min(around) - 1e-9 <= value <= max(around) + 1e-9
                _expect(between, f"{name} at severity 2.5 must lie between the values at 2 and 3")


def takes_any_size(corruption: Corruption) -> None:
    """Small, large, wide and tall images work, grayscale and color, at scales `auto` and `relative`."""
    for height, width in ((MIN_SIDE, MIN_SIDE), (MIN_SIDE, 97), (131, 17), (200, 333), (301, 299)):
        for channels in (1, 3):
            image = example_image(height, width, channels)
            for scale in ("auto", "relative"):
                out = corruption(image, 3, scale=scale)
                _expect(
                    out.shape == image.shape,
                    f"an image of {height}×{width}×{channels} must keep its shape at scale {scale}",
                )


def takes_tensors_if_declared(corruption: Corruption) -> None:
    """Torch tensors work unless tensors=False is declared; skipped if torch is not installed."""
    if find_spec("torch") is None:
        return
    import torch

    image = torch.from_numpy(example_image(40, 48).transpose(2, 0, 1).copy())
    for scale in [scale for scale, recipe in corruption.recipes.items() if recipe.tensors]:
        try:
            out = corruption(image, 2, scale=scale, backend="torch")
            result = f"It returns {type(out).__name__} {tuple(out.shape)}"
            met = torch.is_tensor(out) and out.dtype == torch.uint8 and out.shape == image.shape
        except AssetError:
            raise
        except Exception as error:
            met, result = False, f"{type(error).__name__}: {error}"
        fix = "declare tensors=False to compute images for models on a GPU on the CPU"
        _expect(met, f"a torch tensor must be returned as one at scale {scale}", but=f"{result}; {fix}")


CORRUPTION_CONTRACTS: dict[str, Callable[[Corruption], None]] = {
    contract.__name__: _named(contract)
    for contract in (
        is_well_declared,
        returns_images,
        leaves_input_alone,
        same_every_time,
        keeps_kind_and_shape,
        carries_alpha,
        same_alone_as_in_a_batch,
        differs_by_seed_and_id,
        does_something,
        grows_with_severity,
        takes_severities_between,
        takes_any_size,
        takes_tensors_if_declared,
    )
}
"""The requirements by name."""


def check_corruption(corruption: Corruption) -> None:
    """Run every check of the contract; a `ContractError` describes the first violation."""
    for contract in CORRUPTION_CONTRACTS.values():
        contract(corruption)
