"""What an attack is, the model as it sees it, and how it is run on a batch of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_number
from beaufort.corruptions.rng import Id, id_words, validate_ids, validate_seed
from beaufort.data.labels import NO_LABEL, LabelSpace
from beaufort.models import FilteredModel, Model, Network
from beaufort.suites.attacks.balls import BALLS

_AT_ONCE = 32 * 224 * 224 * 3
"""Values that are attacked at a time: gradients take several times the memory of a prediction."""


class AttackError(BeaufortError, RuntimeError):
    """An attack on a model that cannot be attacked, or that gave something other than images."""


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


def check_attackable(model: object) -> Network:
    """The model, if it has gradients with respect to the values of its images; an `AttackError` if not."""
    if isinstance(model, Network) and model.differentiable is not None:
        if model.spec.preprocessing.dtype == "uint8":
            raise AttackError(
                f"attacks need a model that takes floats, and {model.spec.name} takes 8-bit numbers; put the "
                "scaling into the preprocessing (range=0..255), not into the module"
            )
        return model
    if isinstance(model, FilteredModel):
        raise AttackError(
            f"attacks need gradients, and the image filter of {model.spec.name} has none; remove the filter, "
            "or the attacks"
        )
    spec = getattr(model, "spec", None)
    name, source = getattr(spec, "name", type(model).__name__), getattr(spec, "source", "unknown")
    raise AttackError(
        f"attacks need gradients, which only torch models have, and {name} is none ({source:.80}); load it "
        "as torch:…, timm:…, torchvision:… or a torch module, or leave the attacks out"
    )


@dataclass(frozen=True)
class Victim:
    """A network and the classes that its answers are about.

    Everything takes values in 0..1, tensors `(n, c, h, w)` on the network's device.
    """

    network: Network
    space: LabelSpace

    def logits(self, pixels: Any) -> Any:
        """Of the columns of the label space, with gradients."""
        found = self.space.apply(self.network.logits_of_pixels(pixels))
        if pixels.requires_grad and not found.requires_grad:
            raise AttackError(
                f"attacks need gradients, and the answers of {self.network.spec.name} have none; it computes "
                "without them somewhere (torch.no_grad, detach, or an operation that has no gradient)"
            )
        return found

    def losses(self, logits: Any, truth: Any) -> Any:
        """Minus the logarithm of the share that the right classes get, `(n,)`."""
        import torch

        shares = logits.log_softmax(dim=1)
        known = truth != NO_LABEL
        chosen = shares.gather(1, truth.where(known, 0)).masked_fill(~known, -torch.inf)
        return -chosen.logsumexp(dim=1)

    def wrong(self, logits: Any, truth: Any) -> Any:
        """Whether the most probable class is none of the right ones, `(n,)`."""
        return (logits.argmax(dim=1)[:, None] != truth).all(dim=1)

    def gradients(self, pixels: Any, truth: Any) -> tuple[Any, Any, Any]:
        """For each image its loss, whether it is answered wrong, and the gradient of the loss."""
        import torch

        pixels = pixels.detach().requires_grad_()
        steady = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=False
        )
        with torch.enable_grad(), steady:
            logits = self.logits(pixels)
            losses = self.losses(logits, truth)
            (gradients,) = torch.autograd.grad(losses.sum(), pixels)
        return losses.detach(), self.wrong(logits.detach(), truth), gradients.nan_to_num()

    def look(self, pixels: Any, truth: Any) -> tuple[Any, Any, Any]:
        """For each image its loss, whether it is answered wrong, and the most probable class."""
        import torch

        with torch.no_grad():
            logits = self.logits(pixels)
            return self.losses(logits, truth), self.wrong(logits, truth), logits.argmax(dim=1)

    def label_sets(self, labels: Any, count: int) -> Any:
        """Labels as a tensor `(n, k)`: of each image the right columns, filled up with `NO_LABEL`."""
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
    """Images that a model is to be fooled with: values in 0..1, a float32 tensor `(n, c, h, w)`.

    They have the size and the channels of the model's input, whose own resize and crop come first, and go to
    `Network.predict_pixels`. Each is within the ball around its image, whatever the attack did.

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
    validate_number("epsilon", epsilon, 0)
    validate_ids(ids, len(clean))
    truth, words, seed = victim.label_sets(labels, len(clean)), id_words(ids), validate_seed(seed)
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


def _confined(attack: Attack, images: Any, clean: Any, radius: float) -> Any:
    """Within the ball, to the last bit; clipping only brings values closer to the image's."""
    images = images.where(images.isfinite(), clean)
    images = BALLS[attack.norm].inside(images, clean, radius)
    return images.clamp(0, 1) if attack.clip else images
