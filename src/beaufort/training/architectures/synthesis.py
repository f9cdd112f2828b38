"""ABS, analysis by synthesis: Schott, Rauber, Bethge & Brendel (2019), arXiv:1805.09190.

There is one variational autoencoder per class. A digit is assigned to the class whose decoder can synthesize
it best: the bound on the likelihood is maximized over the latent code, first among stored samples, then by
gradient descent. Layers, number of samples (8,000, without their outermost tenth), steps (50), step size
(0.05) and the bound on codes are those of the authors' published model. The logits are the negative bounds,
in units of squared error over the whole digit; the authors scale them and add the same constant for all
classes.

Their program does not contain the training of the autoencoders: Adam and the weight of the KL term are ours.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from beaufort.training.architectures._layers import ten_classes

_CODES = 8
_CLIP = 5.0
_DISMISSED = 0.1
_SAMPLES_SEED = 7
_PIECE, _GPU_PIECE = 250, 2500
"""Batch sizes on the CPU and on a GPU."""


def _block(layer: nn.Module, width: int) -> list[nn.Module]:
    return [layer, nn.BatchNorm2d(width), nn.ELU()]


class Autoencoder(nn.Module):
    """A small convolutional VAE with codes of 8 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *_block(nn.Conv2d(1, 32, 5), 32),
            *_block(nn.Conv2d(32, 32, 4, stride=2), 32),
            *_block(nn.Conv2d(32, 64, 3, stride=2), 64),
            nn.Conv2d(64, 2 * _CODES, 5),
        )
        self.decoder = nn.Sequential(
            *_block(nn.ConvTranspose2d(_CODES, 32, 4), 32),
            *_block(nn.ConvTranspose2d(32, 16, 5, stride=2), 16),
            *_block(nn.ConvTranspose2d(16, 16, 5, stride=2), 16),
            *(nn.ConvTranspose2d(16, 1, 4), nn.Sigmoid()),
        )

    def decode(self, codes: Tensor) -> Tensor:
        """Return images `(n, 784)` of codes `(n, 8)`."""
        found: Tensor = self.decoder(codes[:, :, None, None])
        return found.flatten(1)

    def loss(self, images: Tensor, weight: float) -> Tensor:
        """Return squared error plus weighted KL divergence, summed over the images."""
        mean, log_variance = self.encoder(images).flatten(1).float().chunk(2, dim=1)
        codes = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        error = ((self.decode(codes).float() - images.flatten(1)) ** 2).sum()
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
        return error + weight * divergence


class AnalysisBySynthesis(nn.Module):
    """Ten autoencoders; the best reconstruction decides the class."""

    def __init__(self, samples: int = 8000, steps: int = 50, weight: float = 1.0, rate: float = 0.05) -> None:
        super().__init__()
        self.samples, self.steps, self.weight, self.rate = samples, steps, weight, rate
        self.autoencoders = nn.ModuleList(Autoencoder() for _ in range(10))
        self._stored: tuple[Tensor, Tensor] | None = None

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the mean bound of the digits, each under the autoencoder of its class."""
        self._stored = None
        total = images.new_zeros(())
        for digit, one in enumerate(self._each()):
            chosen = images[labels == digit]
            if len(chosen) > 1:  # batch normalization needs two
                total = total + one.loss(chosen, self.weight)
        return total / len(images)

    def forward(self, images: Tensor) -> Tensor:
        """Return the negative bound of each class, `(n, 10)`, after optimization over the codes."""
        with torch.inference_mode(False), torch.no_grad():
            size = _GPU_PIECE if images.is_cuda else _PIECE
            pieces = [self._logits(piece.clone()) for piece in images.flatten(1).float().split(size)]
            return torch.cat(pieces) if pieces else images.new_zeros((0, 10))

    def _each(self) -> list[Autoencoder]:
        return cast("list[Autoencoder]", list(self.autoencoders))

    def _logits(self, images: Tensor) -> Tensor:
        codes = self._best_stored(images).requires_grad_(True)
        optimizer = torch.optim.Adam([codes], lr=self.rate)
        for _ in range(self.steps):
            with torch.enable_grad():
                (codes.grad,) = torch.autograd.grad(self._bounds(images, codes).sum() / 784, codes)
            optimizer.step()
            codes.data = _clipped(codes.data)
        return -self._bounds(images, codes)

    def _bounds(self, images: Tensor, codes: Tensor) -> Tensor:
        """Return the bounds of codes `(n, 10, 8)`, with their variance taken as 1."""
        made = torch.stack([one.decode(codes[:, digit]) for digit, one in enumerate(self._each())], dim=1)
        error = ((made - images[:, None]) ** 2).sum(-1)
        return error + self.weight * 0.5 * (codes**2).sum(-1)

    def _best_stored(self, images: Tensor) -> Tensor:
        """Return the stored sample of each class with the best bound, `(n, 10, 8)`."""
        codes, decoded = self._samples(images.device)
        penalty = self.weight * 0.5 * (codes**2).sum(-1)
        best = []
        for some in decoded:
            distance = (some**2).sum(-1) - 2 * images @ some.T  # without the terms common to all samples
            best.append(codes[(distance + penalty).argmin(1)])
        return torch.stack(best, dim=1)

    def _samples(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return codes `(s, 8)` from the prior, and their images of each class, `(10, s, 784)`."""
        if self._stored is None or self._stored[0].device != device:
            generator = torch.Generator().manual_seed(_SAMPLES_SEED)
            drawn = torch.randn((int(self.samples / (1 - _DISMISSED)) + 1, _CODES), generator=generator)
            kept = drawn[drawn.norm(dim=1).argsort()[: self.samples].sort().values].to(device)
            self._stored = kept, torch.stack([one.decode(kept) for one in self._each()])
        return self._stored


def _clipped(codes: Tensor) -> Tensor:
    """Return codes no longer than the bound."""
    return codes * (_CLIP / codes.norm(dim=-1, keepdim=True)).clamp(max=1)


def from_published(states: list[dict[str, Tensor]], **options: int) -> AnalysisBySynthesis:
    """Return the model of ten published state dicts, in the order of the digits."""
    model = AnalysisBySynthesis(**options)
    for one, state in zip(model._each(), states, strict=True):
        one.load_state_dict({**one.state_dict(), **_renamed(state)})
    return model.eval()


def _renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename keys: `Encoder.conv_1.weight` becomes `encoder.3.weight`."""
    found = {}
    for key, value in state.items():
        part, layer, name = key.split(".")
        kind, _, number = layer.partition("_")
        found[f"{part.lower()}.{3 * int(number) + (kind == 'bn')}.{name}"] = value
    return found


def make(
    samples: int = 8000, steps: int = 50, weight: float = 1.0, rate: float = 0.05, classes: int = 10
) -> AnalysisBySynthesis:
    """Return the model of the paper."""
    ten_classes("abs", classes)
    return AnalysisBySynthesis(samples, steps, weight, rate)
