"""What a corruption promises, one function a promise."""

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
    """A promise that is not kept."""


def picture(height: int, width: int, channels: int = 3, *, variant: int = 0) -> NDArray[np.uint8]:
    """A picture with flat parts, slopes, edges and fine texture, in full color."""
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
    """Something like a handwritten digit: a soft white ring and a stroke on black, 28×28×1."""
    y, x = np.mgrid[:28, :28]
    ring = np.abs(np.hypot(x - 13, y - 10 - variant % 3) - 5 - variant % 2)
    stroke = np.where((y > 14) & (y < 24), np.abs(x - 18 + (y - 14) * 0.3), 9)
    drawn: NDArray[np.uint8] = np.clip(255 * (2.2 - np.minimum(ring, stroke)), 0, 255).astype(np.uint8)
    return drawn[..., None]


def _sample(scale: str, count: int) -> NDArray[np.uint8]:
    """Pictures that suit a scale: digits for `mnist`, colors for the others."""
    if scale == "mnist":
        return np.stack([digit(variant=i % 6) for i in range(count)])
    return np.stack([picture(64, 64, variant=i % 4) for i in range(count)])


def _expect(kept: bool, promise: str, *, but: str = "") -> None:
    """Raise if a promise is not kept; `but` says what happens instead, and what to do."""
    if not kept:
        raise ContractError(f"{promise}. {but}" if but else promise)


def _named(contract: Callable[[Corruption], None]) -> Callable[[Corruption], None]:
    """The contract whose errors name the corruption; what a corruption raises becomes such an error, too."""

    @wraps(contract)
    def checked(corruption: Corruption) -> None:
        cause: Exception | None = None
        try:
            contract(corruption)
            return
        except AssetError:
            raise
        except ContractError as error:
            broken = str(error)
        except Exception as error:
            but = str(error) if isinstance(error, BeaufortError) else f"{type(error).__name__}: {error}"
            if isinstance(error, ValueError) and "read-only" in str(error):
                but = f"The render writes into its input, which is the caller's; begin with a copy ({error})"
            promise = (contract.__doc__ or "").partition("\n")[0].rstrip(".")
            broken, cause = f"{promise}. {but}", error
        raise ContractError(f"{corruption.name} does not keep this promise: {broken}") from cause

    return checked


def is_well_declared(corruption: Corruption) -> None:
    """It is registered with a description, and has one or five `NamedTuple`s of constants at each scale."""
    known = corruptions.get(corruption.name)
    _expect(known is None or known is corruption, "its name is its own", but="Another has it")
    _expect(
        bool(corruption.summary),
        "its render has a docstring",
        but="Its first line is what `beaufort ls corruptions` shows",
    )
    for scale, recipe in corruption.recipes.items():
        count, kinds = len(recipe.levels), {type(level) for level in recipe.levels}
        _expect(
            count in (1, len(SEVERITIES)),
            f"{scale} has constants for each of five severities, or one for all",
            but=f"It has {count}",
        )
        _expect(
            len(kinds) == 1 and all(hasattr(level, "_asdict") for level in recipe.levels),
            f"the constants of {scale} are of one NamedTuple, whose names stand in the results",
            but=f"They are {', '.join(sorted(kind.__name__ for kind in kinds))}",
        )
        json.dumps([level._asdict() for level in recipe.levels])


def returns_images(corruption: Corruption) -> None:
    """The render returns uint8 images of the shape that came in."""
    for channels in (3, 1):
        corruption(picture(40, 48, channels), 2)


def keeps_kind_and_shape(corruption: Corruption) -> None:
    """The same kind, shape and dtype come back, for every supported kind of image."""
    from PIL import Image

    color = picture(40, 48)
    kinds: list[Any] = [
        color[..., 0],
        color[..., :1],
        color,
        picture(40, 48, 4),
        np.stack([color, color[::-1]]),
        np.stack([color[..., :1]] * 3),
    ]
    for image in kinds:
        out = corruption(image, 2)
        same = isinstance(out, np.ndarray) and out.shape == image.shape and out.dtype == np.uint8
        _expect(same, f"a uint8 array {image.shape} comes back as one")
    for mode, pixels in (("L", color[..., 0]), ("RGB", color), ("RGBA", picture(40, 48, 4))):
        out = corruption(Image.fromarray(pixels), 2)
        same = isinstance(out, Image.Image) and out.mode == mode and out.size == (48, 40)
        _expect(same, f"a PIL image of mode {mode} comes back as one")
        array = corruption(pixels, 2)
        _expect(np.array_equal(np.asarray(out), array), f"PIL {mode} and NumPy give the same pixels")


def leaves_input_alone(corruption: Corruption) -> None:
    """The caller's array is not changed, and the result does not share its memory."""
    image = picture(40, 48)
    before = image.copy()
    image.flags.writeable = False
    out = corruption(image, 3)
    _expect(np.array_equal(image, before), "the input is not changed")
    _expect(not np.shares_memory(out, image), "the result is a new array", but="It is the input itself")
    _expect(
        not np.shares_memory(out, corruption(image, 3)),
        "the result is a new array each time",
        but="The render hands out an array that it keeps; return a copy",
    )


def carries_alpha(corruption: Corruption) -> None:
    """Alpha comes back untouched and changes nothing else."""
    image = picture(40, 48, 4)
    out = corruption(image, 3, ids=["a"])
    _expect(np.array_equal(out[..., 3], image[..., 3]), "alpha is untouched")
    plain = corruption(image[..., :3], 3, ids=["a"])
    _expect(np.array_equal(out[..., :3], plain), "color does not depend on alpha")


def same_alone_as_in_a_batch(corruption: Corruption) -> None:
    """An image's pixels depend on the image, its id and the seed, not on its company."""
    images = np.stack([picture(40, 48, variant=i) // (1 + i % 3) for i in range(5)])  # bright and dark ones
    ids: list[int | str] = [0, 1, "two", "three", 2**40]
    for identity in (ids, None):
        batch = corruption(images, 3, ids=identity)
        for i, image in enumerate(images):
            alone = corruption(image, 3, ids=identity and [identity[i]])
            _expect(
                np.array_equal(batch[i], alone),
                "an image comes out alone as in a batch",
                but="Draw one entry an image, and let no image depend on the others",
            )
        order = [3, 0, 4, 2, 1]
        shuffled = corruption(images[order], 3, ids=identity and [identity[i] for i in order])
        _expect(np.array_equal(shuffled, batch[order]), "a batch may be in any order")
        many = corruption(np.concatenate([images] * 40), 3, ids=identity and identity * 40, jobs=2)
        _expect(
            np.array_equal(many, np.concatenate([batch] * 40)), "any number of threads gives the same pixels"
        )


def _global_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002  (it is looked at, not used)


def same_every_time(corruption: Corruption) -> None:
    """Two calls give the same pixels, and no global generator is touched."""
    image = picture(40, 48)
    before = _global_state()
    first, second = corruption(image, 3), corruption(image, 3)
    own = "It has a generator of its own; draw all that is random from `random`, in the draw"
    _expect(np.array_equal(first, second), "two calls give the same pixels", but=own)
    _expect(_global_state() == before, "NumPy's global generator is not touched", but=own)


def differs_by_seed_and_id(corruption: Corruption) -> None:
    """Other seeds and ids give other pixels where something is random, and the same where nothing is."""
    image = picture(40, 48)
    base = corruption(image, 3, ids=["a"], seed=0)
    for what, others in (
        ("seed", [corruption(image, 3, ids=["a"], seed=seed) for seed in range(1, 9)]),
        ("id", [corruption(image, 3, ids=[name], seed=0) for name in "bcdefghi"]),
    ):
        differs = any(not np.array_equal(base, other) for other in others)
        if corruption.random:
            ignored = "It has a draw whose numbers it ignores; use them in the render, or leave the draw out"
            _expect(differs, f"another {what} gives other pixels", but=ignored)
        else:
            _expect(not differs, f"the {what} does not matter, as it has no draw")


def does_something(corruption: Corruption) -> None:
    """At every scale and severity pictures change and stay pictures.

    Where something is random, one of eight pictures may be spared below the last severity: of a few patches
    that are put anywhere, all can miss one (`checkerboard_cutout` spares one of sixteen at its weakest). One
    of eight may become flat: these pictures are smaller than most scales are for.
    """
    for scale in corruption.recipes:
        images = _sample(scale, 32 if corruption.random else 4)
        some = len(images) // 8 if corruption.random else 0
        for severity in SEVERITIES:
            out = corruption(images, severity, scale=scale, ids=range(len(images)))
            each = out.reshape(len(images), -1)
            spared = int((each == images.reshape(len(images), -1)).all(axis=1).sum())
            flat = int((each.std(axis=1) == 0).sum())
            where, most = f"at scale {scale}, severity {severity}", 0 if severity == SEVERITIES[-1] else some
            told = f"{spared} of {len(images)} stay as they were; strengthen the constants"
            _expect(spared <= most, f"{where} changes a picture", but=told)
            told = f"{flat} of {len(images)} become a flat color; weaken the constants"
            _expect(flat <= some, f"{where} leaves a picture a picture", but=told)


def grows_with_severity(corruption: Corruption) -> None:
    """At severity 5 the pixels differ more from the clean ones than at severity 1."""
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
            f"at scale {scale}, severity 5 changes the pixels more than severity 1",
            but=f"It changes them by {damage[1]:.2f} levels in the mean, and severity 1 by {damage[0]:.2f}; "
            "order the constants from weak to strong, or declare it with graded=False",
        )


def takes_severities_between(corruption: Corruption) -> None:
    """Severity 2.5 has constants between those of 2 and 3, and works."""
    image = picture(40, 48)
    for scale, recipe in corruption.recipes.items():
        out = corruption(image, 2.5, scale=scale)
        _expect(out.shape == image.shape, f"severity 2.5 works at scale {scale}")
        if len(recipe.levels) == 1 or corruption.mixes:
            continue
        middle, ends = corruption.params(2.5, scale), [recipe.level(2), recipe.level(3)]
        ends += [snapped(one, SCALES[scale]) for one in ends]  # the whole things that numbers stand for
        for name, value, *around in zip(middle._fields, middle, *ends, strict=True):
            if isinstance(value, int | float):
                between = min(around) - 1e-9 <= value <= max(around) + 1e-9
                _expect(between, f"{name} of severity 2.5 lies between those of 2 and 3")


def takes_any_size(corruption: Corruption) -> None:
    """Small, large, wide and tall images, grey and color, at scales `auto` and `relative`."""
    for height, width in ((MIN_SIDE, MIN_SIDE), (MIN_SIDE, 97), (131, 17), (200, 333), (301, 299)):
        for channels in (1, 3):
            image = picture(height, width, channels)
            for scale in ("auto", "relative"):
                out = corruption(image, 3, scale=scale)
                _expect(
                    out.shape == image.shape,
                    f"an image of {height}×{width}×{channels} at scale {scale} keeps its shape",
                )


def takes_tensors_if_it_says_so(corruption: Corruption) -> None:
    """Unless it is declared with tensors=False, it works on torch tensors; skipped where torch is absent."""
    if find_spec("torch") is None:
        return
    import torch

    image = torch.from_numpy(picture(40, 48).transpose(2, 0, 1).copy())
    for scale in [scale for scale, recipe in corruption.recipes.items() if recipe.tensors]:
        try:
            out = corruption(image, 2, scale=scale, backend="torch")
            told = f"It gives {type(out).__name__} {tuple(out.shape)}"
            kept = torch.is_tensor(out) and out.dtype == torch.uint8 and out.shape == image.shape
        except AssetError:
            raise
        except Exception as error:
            kept, told = False, f"{type(error).__name__}: {error}"
        way = "declare it with tensors=False, and the processor makes the images of models on a GPU"
        _expect(kept, f"a torch tensor comes back as one at scale {scale}", but=f"{told}; {way}")


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
        takes_tensors_if_it_says_so,
    )
}
"""The promises by name."""


def check_corruption(corruption: Corruption) -> None:
    """Run every contract; a `ContractError` says which promise is not kept."""
    for contract in CORRUPTION_CONTRACTS.values():
        contract(corruption)
