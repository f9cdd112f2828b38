"""What an attack is, and how it is made on a batch of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort._core.errors import OptionError
from beaufort.corruptions.rng import Id, check_ids, checked_seed, id_words
from beaufort.data.labels import LabelSpace
from beaufort.models import Model
from beaufort.suites.attacks._errors import AttackError
from beaufort.suites.attacks.balls import BALLS
from beaufort.suites.attacks.victim import Victim, check_attackable

_AT_ONCE = 32 * 224 * 224 * 3
"""Values that are attacked at a time: gradients take several times the memory of an answer."""


@runtime_checkable
class Attack(Protocol):
    """A search for an image near a given one that a model gets wrong."""

    @property
    def name(self) -> str:
        """As in a condition, `pgd-linf`."""

    @property
    def norm(self) -> str:
        """What the distance is measured in: `linf` or `l2`."""

    @property
    def clip(self) -> bool:
        """Whether values stay in 0..1."""

    @property
    def passes(self) -> int:
        """About how many times as long as a plain answer it takes, at most; a gradient counts three."""

    def facts(self) -> dict[str, Any]:
        """All that decides what it does but epsilon, seed and images, ready for JSON."""

    def radius(self, epsilon: float, side: int) -> float:
        """The radius of the ball for images of a side, in pixels; epsilon unless an attack says otherwise."""

    def perturb(
        self,
        victim: Victim,
        pixels: Any,
        truth: Any,
        *,
        radius: float,
        words: NDArray[np.uint64],
        seed: int,
    ) -> Any:
        """Perturbed images.

        Args:
            victim: the model.
            pixels: the images, values in 0..1, a float32 tensor `(n, c, h, w)`.
            truth: of each image the classes that are right, `(n, k)`, filled up with -1.
            radius: how far the result may be from the image, in `norm`.
            words: of the images' ids; with the seed they decide everything that is random.
            seed: any whole number.
        """


def attack_images(
    attack: Attack,
    model: Model,
    images: Images,
    labels: NDArray[np.int64],
    *,
    epsilon: float,
    ids: Sequence[Id],
    seed: int = 0,
    space: LabelSpace | None = None,
) -> Any:
    """Images that a model is to be fooled with: values in 0..1, a float32 tensor `(n, c, h, w)`.

    They have the size and the channels of the model's input, whose own resize and crop come first, and go to
    `Network.answer_pixels`. Each is within the ball around its image, whatever the attack did.

    Args:
        attack: one of `attacks`, or of your own.
        model: a torch model.
        images: uint8, `(n, h, w, 1 or 3)`.
        labels: the true classes, `(n,)`, or of each image the set of them, `(n, k)`, filled up with -1.
        epsilon: the radius of the ball, for values in 0..1.
        ids: one identity an image.
        seed: any whole number.
        space: the classes that answers are about; the model's outputs if None.
    """
    victim = Victim(check_attackable(model), LabelSpace() if space is None else space)
    clean = victim.network.pixels(images)
    _check_epsilon(epsilon)
    check_ids(() if ids is None else ids, len(clean))
    truth, words, seed = victim.truth(_checked(labels, len(clean))), id_words(ids), checked_seed(seed)
    radius = attack.radius(epsilon, min(clean.shape[2:]))
    found = clean.clone()
    if radius == 0 or not len(clean):
        return found
    step = max(1, _AT_ONCE // clean[0].numel())
    for start in range(0, len(clean), step):
        part = slice(start, start + step)
        made = attack.perturb(
            victim, clean[part], truth[part], radius=radius, words=words[part], seed=seed
        ).detach()
        if made.shape != clean[part].shape:
            raise AttackError(
                f"an attack must give images of the shape {tuple(clean[part].shape)}, got "
                f"{tuple(made.shape)} from {attack.name}"
            )
        found[part] = _confined(attack, made.float(), clean[part], radius)
    return found


def _check_epsilon(epsilon: object) -> None:
    number = isinstance(epsilon, int | float | np.integer | np.floating) and not isinstance(epsilon, bool)
    if not number or not 0 <= epsilon < np.inf:  # type: ignore[operator]
        raise OptionError(f"epsilon must be a number from 0, for values in 0..1, got {epsilon!r:.60}")


def _checked(labels: Any, count: int) -> NDArray[np.int64]:
    """Labels of so many images, as an array."""
    found = np.asarray(labels)
    if found.dtype.kind not in "iu" or found.ndim not in (1, 2) or len(found) != count:
        raise OptionError(
            f"labels must be integers of shape ({count},), or ({count}, k) for sets of them, got "
            f"{found.dtype} of shape {found.shape}"
        )
    return found


def _confined(attack: Attack, images: Any, clean: Any, radius: float) -> Any:
    """Within the ball, to the last bit; clipping only brings values closer to the image's."""
    images = images.where(images.isfinite(), clean)
    images = BALLS[attack.norm].inside(images, clean, radius)
    return images.clamp(0, 1) if attack.clip else images
