"""The protocol of attacks, and how an attack runs on a batch of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_number
from beaufort.corruptions.rng import Id, id_words, validate_ids, validate_seed
from beaufort.data.labels import NO_LABEL, LabelSpace
from beaufort.suites.attacks.balls import BALLS

if TYPE_CHECKING:
    from beaufort.models import Model, Network

_AT_ONCE = 32 * 224 * 224 * 3
"""Values attacked at a time; gradients need several times the memory of a prediction."""


class AttackError(BeaufortError, RuntimeError):
    """An attack that failed, or a model without gradients."""


@runtime_checkable
class Attack(Protocol):
    """A search for images near given ones that a model misclassifies."""

    @property
    def name(self) -> str:
        """Name in conditions, such as `pgd-linf`."""

    @property
    def norm(self) -> str:
        """`linf` or `l2`."""

    @property
    def clip(self) -> bool:
        """Whether values stay in 0..1."""

    @property
    def passes(self) -> int:
        """Approximate maximum cost in predictions; a gradient counts as three."""

    def facts(self) -> dict[str, Any]:
        """Return all settings but epsilon and seed, ready for JSON."""

    def radius(self, epsilon: float, side: int) -> float:
        """Return the radius of the ball for images with a side in pixels; usually epsilon."""

    def perturb(
        self,
        victim: Victim,
        pixels: Any,
        label_sets: Any,
        *,
        radius: float,
        words: NDArray[np.uint64],
        seed: int,
    ) -> Any:
        """Return perturbed images.

        Args:
            victim: the model.
            pixels: images, a float32 tensor `(n, c, h, w)` with values in 0..1.
            label_sets: correct classes of each image, `(n, k)`, padded with -1.
            radius: maximum distance from the image, in `norm`.
            words: from the images' ids; words and seed determine everything random.
            seed: any integer.
        """


def check_attackable(model: object) -> Network:
    """Return the model if it has gradients with respect to its images; raise `AttackError` otherwise."""
    from beaufort.models import FilteredModel, Network  # only an attack that runs needs models

    if isinstance(model, Network) and model.differentiable is not None:
        if model.spec.preprocessing.dtype == "uint8":
            raise AttackError(
                f"attacks need float inputs, but {model.spec.name} takes 8-bit integers; move the scaling "
                "from the module to the preprocessing (range=0..255)"
            )
        return model
    if isinstance(model, FilteredModel):
        raise AttackError(
            f"attacks need gradients, and the image filter of {model.spec.name} has none; remove the filter "
            "or the attacks"
        )
    spec = getattr(model, "spec", None)
    name, source = getattr(spec, "name", type(model).__name__), getattr(spec, "source", "unknown")
    raise AttackError(
        f"attacks need a torch model, and {name} is not one ({source:.80}); load it as torch:…, timm:…, "
        "torchvision:… or a torch module, or remove the attacks"
    )


@dataclass(frozen=True)
class Victim:
    """A network and its label space.

    Methods take tensors `(n, c, h, w)` with values in 0..1 on the network's device.
    """

    network: Network
    space: LabelSpace

    def logits(self, pixels: Any) -> Any:
        """Return the logits of the label space, with gradients."""
        found = self.space.apply(self.network.logits_of_pixels(pixels))
        if pixels.requires_grad and not found.requires_grad:
            raise AttackError(
                f"attacks need gradients, and the outputs of {self.network.spec.name} have none; look for "
                "torch.no_grad, detach and operations without gradient"
            )
        return found

    def losses(self, logits: Any, label_sets: Any) -> Any:
        """Return minus the logarithm of the total probability of the correct classes, `(n,)`."""
        import torch

        probabilities = logits.log_softmax(dim=1)
        known = label_sets != NO_LABEL
        chosen = probabilities.gather(1, label_sets.where(known, 0)).masked_fill(~known, -torch.inf)
        return -chosen.logsumexp(dim=1)

    def wrong(self, logits: Any, label_sets: Any) -> Any:
        """Return whether the predicted class is none of the correct ones, `(n,)`."""
        return (logits.argmax(dim=1)[:, None] != label_sets).all(dim=1)

    def gradients(self, pixels: Any, label_sets: Any) -> tuple[Any, Any, Any]:
        """Return for each image its loss, whether it is misclassified, and the gradient of the loss."""
        import torch

        pixels = pixels.detach().requires_grad_()
        steady = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=False
        )
        with torch.enable_grad(), steady:
            logits = self.logits(pixels)
            losses = self.losses(logits, label_sets)
            (gradients,) = torch.autograd.grad(losses.sum(), pixels)
        return losses.detach(), self.wrong(logits.detach(), label_sets), gradients.nan_to_num()

    def look(self, pixels: Any, label_sets: Any) -> tuple[Any, Any, Any]:
        """Return for each image its loss, whether it is misclassified, and the predicted class."""
        import torch

        with torch.no_grad():
            logits = self.logits(pixels)
            return self.losses(logits, label_sets), self.wrong(logits, label_sets), logits.argmax(dim=1)

    def label_sets(self, labels: Any, count: int) -> Any:
        """Return labels as a tensor `(n, k)`, padded with `NO_LABEL`."""
        import torch

        found = np.asarray(labels)
        if found.dtype.kind not in "iu" or found.ndim not in (1, 2) or len(found) != count:
            raise OptionError(
                f"labels must be integers of shape ({count},), or ({count}, k) for sets of them, got "
                f"{found.dtype} of shape {found.shape}"
            )
        sets = found if found.ndim == 2 else found[:, None]
        return torch.from_numpy(np.ascontiguousarray(sets, np.int64)).to(self.network.device)


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
    """Return images that an attack made for a model: a float32 tensor `(n, c, h, w)` with values in 0..1.

    They have the size of the model's input, as its resize and crop come first, and go to
    `Network.predict_pixels`. Each is projected into the ball around its image, whatever the attack did.

    Args:
        attack: one of `attacks`, or your own.
        model: a torch model.
        images: uint8, `(n, h, w, 1 or 3)`.
        labels: true classes, `(n,)`, or label sets, `(n, k)`, padded with -1.
        epsilon: radius of the ball, for values in 0..1.
        ids: one id per image.
        seed: any integer.
        space: label space; the model's outputs by default.
    """
    victim = Victim(check_attackable(model), LabelSpace() if space is None else space)
    clean = victim.network.pixels(images)
    validate_number("epsilon", epsilon, 0)
    validate_ids(ids, len(clean))
    label_sets, words, seed = victim.label_sets(labels, len(clean)), id_words(ids), validate_seed(seed)
    radius = attack.radius(epsilon, min(clean.shape[2:]))
    found = clean.clone()
    if radius == 0 or not len(clean):
        return found
    step = max(1, _AT_ONCE // clean[0].numel())
    for start in range(0, len(clean), step):
        part = slice(start, start + step)
        made = attack.perturb(
            victim, clean[part], label_sets[part], radius=radius, words=words[part], seed=seed
        ).detach()
        if made.shape != clean[part].shape:
            raise AttackError(
                f"{attack.name} returned images of shape {tuple(made.shape)}, not {tuple(clean[part].shape)}"
            )
        found[part] = _confined(attack, made.float(), clean[part], radius)
    return found


def _confined(attack: Attack, images: Any, clean: Any, radius: float) -> Any:
    """Project into the ball, to the last bit; clipping only moves values closer to the image."""
    images = images.where(images.isfinite(), clean)
    images = BALLS[attack.norm].inside(images, clean, radius)
    return images.clamp(0, 1) if attack.clip else images
