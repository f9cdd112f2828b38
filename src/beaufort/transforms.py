"""Corruption as a step of a data loader: for PIL images, NumPy arrays and torch tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from beaufort.arrays import Images, is_tensor, open_batch
from beaufort.corruptions import corruptions, expand_names
from beaufort.errors import OptionError
from beaufort.ops import ops_of
from beaufort.rng import Id, id_words

__all__ = ["Corrupt"]


@dataclass(frozen=True)
class Corrupt:
    """A callable that corrupts images; what comes back has the kind, shape, dtype and device that came.

    Nothing about it changes when it is called and no global generator is touched: it can be pickled,
    shared by threads and sent to the workers of a data loader, and an image comes out the same
    whichever worker, batch or epoch it is in. A new `seed` gives new randomness, in each epoch if wanted.

    >>> rough = Corrupt("weather", severity=range(1, 6))
    >>> rough.choose("n01440764/a.jpg")
    ('fog', 2)
    """

    name: str | Sequence[str]
    """A corruption (`fog`), a list of `get_corruption_names` (`common`), or several of either, one of
    which is chosen for each image; what is named twice is chosen twice as often."""
    severity: int | Sequence[int] | None = None
    """1 to 5, or several, `range(1, 6)` say, one of which is chosen for each image. None is 1, or at
    scale `mnist` the published severity."""
    seed: int = 0
    """Any whole number."""
    scale: str = field(default="auto", kw_only=True)
    """Which published constants to use; see `Corruption.__call__`."""

    def __post_init__(self) -> None:
        for option in ("name", "severity"):
            given = getattr(self, option)
            if isinstance(given, Iterable) and not isinstance(given, str):
                object.__setattr__(self, option, tuple(given))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise OptionError(f"the seed {self.seed!r} came; accepted is a whole number")
        object.__setattr__(self, "seed", int(self.seed))
        if not (self._names and self._severities):
            raise OptionError("an empty list of names or severities came; there is nothing to choose from")
        for name in self._names:
            for severity in self._severities:
                corruptions[name].params(severity, self.scale)  # says what is wrong with either

    def __call__(self, image: Any, image_id: Id | Sequence[Id] | None = None) -> Any:
        """The image, or each image of a batch, corrupted.

        Args:
            image: a PIL image; a uint8 NumPy array `(h, w)`, `(h, w, 1|3|4)` or `(n, h, w, 1|3|4)`; a
                uint8 torch tensor `(1|3|4, h, w)` or `(n, 1|3|4, h, w)`, worked on where it is if that is
                the processor or a CUDA device, else on the processor.
            image_id: what identifies the image, a number or a text; a list of them for a batch.
                Without, its own pixels do.
        """
        batch = open_batch(image)
        color = batch.color
        if is_tensor(color) and not color.is_cuda:
            color = color.cpu().numpy()
        if len(color) == 0:
            return batch.close(color)
        if image_id is None:
            ids = ops_of(color).content_ids(color).tolist()
        else:
            ids = _ids(image_id, getattr(image, "ndim", 3) < 4, len(color))
        return batch.close(self._corrupt(color, ids))

    def choose(self, image_id: Id) -> tuple[str, int | None]:
        """The corruption and severity that the image of this id gets."""
        return self._choose(int(id_words([image_id])[0]))

    def _choose(self, word: int) -> tuple[str, int | None]:
        digest = hashlib.blake2b(f"beaufort|choice|{self.seed}|{word}".encode(), digest_size=16).digest()
        name = _pick(self._names, digest[:8])
        return name, _pick(self._severities, digest[8:])

    @cached_property
    def _names(self) -> tuple[str, ...]:
        given = self.name if isinstance(self.name, tuple) else (self.name,)
        return expand_names(given, kind="corruption or a list of them")

    @cached_property
    def _severities(self) -> tuple[int | None, ...]:
        return self.severity if isinstance(self.severity, tuple) else (self.severity,)

    def _corrupt(self, color: Images, ids: Sequence[Id]) -> Images:
        """Each image under its own choice; those that share one go through together."""
        groups: dict[tuple[str, int | None], list[int]] = {}
        for place, word in enumerate(id_words(ids).tolist()):
            groups.setdefault(self._choose(word), []).append(place)
        if not isinstance(color, np.ndarray):
            return self._on_device(color, ids, groups)
        out = np.empty_like(color)
        for (name, severity), places in groups.items():
            chosen = [ids[place] for place in places]
            some = color if len(places) == len(color) else color[places]
            out[places] = corruptions[name](some, severity, ids=chosen, seed=self.seed, scale=self.scale)
        return out

    def _on_device(
        self, color: Images, ids: Sequence[Id], groups: Mapping[tuple[str, int | None], list[int]]
    ) -> Images:
        from beaufort.ops.torch import upload

        out = color.clone()
        for (name, severity), places in groups.items():
            chosen = [ids[place] for place in places]
            index = upload(np.array(places), color.device)
            some = color[index].movedim(-1, 1)
            made = corruptions[name](some, severity, ids=chosen, seed=self.seed, scale=self.scale)
            out[index] = made.movedim(1, -1)
        return out


def _pick(things: Sequence[Any], digest: bytes) -> Any:
    return things[int.from_bytes(digest, "little") * len(things) >> 64]


def _ids(image_id: Any, single: bool, count: int) -> Sequence[Id]:
    if hasattr(image_id, "tolist"):  # an array or a tensor of numbers, as a data loader collates them
        image_id = image_id.tolist()
    several = not isinstance(image_id, str) and isinstance(image_id, Sequence)
    if single and not several:
        return [image_id]
    if not single and several and len(image_id) == count:
        return list(image_id)
    wanted = "an image takes one id" if single else f"a batch of {count} images takes a list of {count} ids"
    raise OptionError(f"image_id {image_id!r:.60} came; {wanted}")
