"""A model as an attack sees it: a differentiable function of values in 0..1, and what it has to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.data.labels import NO_LABEL, LabelSpace
from beaufort.models import FilteredModel, Network
from beaufort.suites.attacks._errors import AttackError


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

    def truth(self, labels: NDArray[np.int64]) -> Any:
        """Labels as a tensor `(n, k)`: of each image the right columns, filled up with `NO_LABEL`."""
        import torch

        sets = labels if labels.ndim == 2 else labels[:, None]
        return torch.from_numpy(np.ascontiguousarray(sets, np.int64)).to(self.network.device)
