"""The published lists of corruptions, in their published order."""

from __future__ import annotations

from collections.abc import Iterable

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort.corruptions._corruption import corruptions


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")
_BLUR = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
_WEATHER = ("snow", "frost", "fog", "brightness")
_DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
_COMMON = (*_NOISE, *_BLUR, *_WEATHER, *_DIGITAL)
_VALIDATION = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

_MNIST_ALL = _names("""
    gaussian_noise shot_noise impulse_noise speckle_noise pessimal_noise gaussian_blur glass_blur defocus_blur
    motion_blur zoom_blur fog frost snow spatter contrast brightness saturate jpeg_compression pixelate
    elastic_transform quantize shear rotate scale translate line dotted_line zigzag inverse stripe canny_edges
""")
_MNIST = _names("""
    shot_noise impulse_noise glass_blur motion_blur shear scale rotate brightness translate stripe fog spatter
    dotted_line zigzag canny_edges
""")
_IMAGENET_C_BAR = _names("""
    blue_noise_sample plasma_noise checkerboard_cutout cocentric_sine_waves single_frequency_greyscale
    brownish_noise perlin_noise sparkles inverse_sparkles caustic_refraction
""")
_CIFAR10_C_BAR = _names("""
    blue_noise_sample brownish_noise checkerboard_cutout circular_motion_blur inverse_sparkles lines
    pinch_and_twirl ripple sparkles transverse_chromatic_abberation
""")

SUBSETS: dict[str, tuple[str, ...]] = {
    "common": _COMMON,
    "validation": _VALIDATION,
    "all": (*_COMMON, *_VALIDATION),
    "noise": _NOISE,
    "blur": _BLUR,
    "weather": _WEATHER,
    "digital": _DIGITAL,
    "mnist-c": _MNIST,
    "mnist-c-extra": tuple(name for name in _MNIST_ALL if name not in _MNIST),
    "mnist-c-all": _MNIST_ALL,
    "imagenet-c-bar": _IMAGENET_C_BAR,
    "cifar10-c-bar": _CIFAR10_C_BAR,
}

corruptions.reserve(SUBSETS, "a list of corruptions")


def get_corruption_names(subset: str = "common") -> list[str]:
    """Return the names of a published list, in its order.

    >>> get_corruption_names("noise")
    ['gaussian_noise', 'shot_noise', 'impulse_noise']
    """
    if subset not in SUBSETS:
        raise UnknownNameError(unknown_message("subset", subset, SUBSETS))
    return list(SUBSETS[subset])


def members_of(name: object) -> tuple[str, ...]:
    """Return the members of a list, or the corruption of this name; nothing for an unknown name.

    >>> members_of("noise"), members_of("fog"), members_of("smog")
    (('gaussian_noise', 'shot_noise', 'impulse_noise'), ('fog',), ())
    """
    if not isinstance(name, str):
        return ()
    return SUBSETS.get(name) or ((name,) if name in corruptions else ())


def expand_names(names: Iterable[object], *, kind: str) -> tuple[str, ...]:
    """Return the corruptions of names and lists of names, in order; a corruption may occur twice.

    >>> expand_names(["fog", "weather"], kind="corruption")
    ('fog', 'snow', 'frost', 'fog', 'brightness')

    Args:
        names: names of corruptions and of lists.
        kind: kind of thing named in the error for an unknown name.
    """
    found: list[str] = []
    for name in names:
        members = members_of(name)
        if not members:
            raise UnknownNameError(corruptions.unknown_message(name, {**corruptions, **SUBSETS}, kind=kind))
        found += members
    return tuple(found)
