"""Corrupt one image with `corrupt`, or the images of a data loader with `Corrupt`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from beaufort._core.arrays import Images, as_batch, is_float, is_tensor, on_host, put_changed, to_levels
from beaufort._core.errors import OptionError
from beaufort._core.samples import find_images, find_places, map_leaves
from beaufort._core.validation import validate_integer, validate_number
from beaufort.corruptions._chain import Chain, Link
from beaufort.corruptions._choices import (
    Names,
    Severities,
    expand_severities,
    freeze_severity,
    pick,
    weigh_names,
)
from beaufort.corruptions._corruption import Severity, corruptions, validate_option
from beaufort.corruptions._kernels import ops_of
from beaufort.corruptions.rng import Id, id_words, validate_seed

if TYPE_CHECKING:
    from torch import Tensor


def corrupt(
    image: Any,
    corruption: str,
    severity: Severity | None = None,
    *,
    scale: str = "auto",
    seed: int = 0,
    image_id: Id | None = None,
    stream: str = "keyed",
) -> Any:
    """Corrupt one image.

    Args:
        image: a uint8 NumPy array `(h, w)` or `(h, w, 1|3|4)`, a uint8 torch tensor `(1|3|4, h, w)`, or a PIL
            image.
        corruption: a name (`fog`), a name with a severity (`fog@2.5`), or a chain
            (`fog@2+jpeg_compression@3`). `get_corruption_names` lists the names.
        severity: a number from 1 to 5. None means 1, or at scale `mnist` the published severity.
        scale: which published constants to use; see `Corruption.__call__`.
        seed: any integer.
        image_id: an integer or string that identifies the image. By default its pixels identify it.
        stream: `keyed` or `reference`; see `Corruption.__call__`.

    >>> photo = np.full((32, 32, 3), 100, np.uint8)
    >>> corrupt(photo, "brightness", severity=2)[0, 0]
    array([125, 125, 125], dtype=uint8)
    """
    if not isinstance(corruption, str):
        raise OptionError(
            f"corruption must be a name, got {corruption!r:.60}; pass corruption, then severity "
            "(beaufort.compat.imagecorruptions has the opposite order)"
        )
    ids = None if image_id is None else [image_id]
    if "@" not in corruption and "+" not in corruption:
        return corruptions[corruption](image, severity, ids=ids, seed=seed, scale=scale, stream=stream)
    if severity is not None:
        raise OptionError(f"severity cannot be used with {corruption!r}, which has its own, got {severity!r}")
    return Chain.parse(corruption)(image, ids=ids, seed=seed, scale=scale, stream=stream)


@dataclass(frozen=True)
class Corrupt:
    """A callable that corrupts images and keeps their type, shape, dtype and device.

    It accepts what torchvision's transforms v2 accept: an image, several arguments such as an image and its
    label, or a tuple, list or dict of them. Images are corrupted, everything else is returned unchanged.

    It has no state and uses no global generator: it can be pickled, shared by threads and sent to the workers
    of a data loader, and the result for an image does not depend on the worker or the batch. `for_epoch`
    returns a transform with new randomness for each epoch.

    >>> rough = Corrupt("weather", severity=(1, 5))
    >>> rough.choose("n01440764/a.jpg")
    ('fog', 2)
    """

    name: str | Sequence[str]
    """A corruption (`fog`), a subset of `get_corruption_names` (`common`), a corruption or a chain with
    severities of its own (`fog@2.5`, `fog@2+jpeg_compression@3`), or a list of these, one of which is chosen
    for each image. A name listed twice is chosen twice as often."""
    severity: Severities = None
    """A number from 1 to 5; a pair `(lowest, highest)` of integers, or a list or range such as `[1, 1.5, 2]`,
    from which one is chosen for each image. None means 1, or at scale `mnist` the published severity. Names
    with severities of their own ignore it."""
    seed: int = 0
    """Any integer."""
    p: float = field(default=1.0, kw_only=True)
    """The fraction of images that are corrupted, selected by their ids; the others stay clean."""
    scale: str = field(default="auto", kw_only=True)
    """Which published constants to use; see `Corruption.__call__`."""
    weights: Sequence[float] | None = field(default=None, kw_only=True)
    """Relative frequency of each name, positive numbers; the members of a subset divide its weight. By
    default every corruption is equally likely."""
    floats: bool = field(default=False, kw_only=True)
    """Whether to accept float images with values from 0 to 1, too. They are rounded to the nearest of 256
    levels, halves to even, and corrupted; changed levels are divided by 255, and unchanged values keep all
    their digits."""
    boxes: str = field(default="reject", kw_only=True)
    """What to do with the boxes, masks and key points of torchvision's `tv_tensors` in a sample. They are
    returned unchanged with `keep`. With `reject` it is an error if a corruption can move the objects in the
    image, as `elastic_transform` does."""

    def __post_init__(self) -> None:
        if isinstance(
            self.name, set | frozenset | Mapping
        ):  # the order of a set of strings differs between processes
            raise OptionError(f"name must be a name or a list of names, got {self.name!r:.60}")
        if isinstance(self.name, Iterable) and not isinstance(self.name, str):
            object.__setattr__(self, "name", tuple(self.name))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(self.weights))
        object.__setattr__(self, "severity", freeze_severity(self.severity))
        object.__setattr__(self, "seed", validate_seed(self.seed))
        object.__setattr__(self, "p", validate_number("p", self.p, 0, 1))
        validate_option("boxes", self.boxes, ("reject", "keep"))
        if not (self._names.names and self._severities):
            raise OptionError("name and severity must not be empty lists")
        for name in self._names.names:
            Chain.parse(name).check(self.scale)
        for link in self._links:
            corruptions[link.name].params(link.severity, self.scale)  # validates both

    def __call__(self, *inputs: Any, image_id: Id | Sequence[Id] | None = None) -> Any:
        """Corrupt an image, or each image of a batch or a structure.

        Args:
            inputs: a PIL image; a uint8 NumPy array `(h, w)`, `(h, w, 1|3|4)` or `(n, h, w, 1|3|4)`; or a
                uint8 torch tensor `(1|3|4, h, w)` or `(n, 1|3|4, h, w)`, which is processed on its device if
                that is a CUDA device, else on the CPU. Or several arguments, tuples, lists and dicts that
                contain images: PIL images and `tv_tensors.Image`, or, if there are none, the first array or
                plain tensor. Everything else is returned unchanged; for boxes and masks see `boxes`.
            image_id: an integer or string that identifies the image; a list of them for a batch. By
                default an image's pixels identify it.
        """
        if not inputs:
            raise OptionError("expected an image, got no arguments")
        sample = inputs[0] if len(inputs) == 1 else inputs
        if not isinstance(sample, tuple | list | Mapping):
            return self._image(sample, image_id)
        if self.boxes == "reject" and self._moving and (beside := find_places(sample)):
            raise OptionError(
                f"{self._moving[0]} moves objects in the image, so the {beside} of the sample no longer "
                "fit; remove the corruption, or pass boxes='keep' to leave them unchanged"
            )
        wanted = find_images(sample)
        return map_leaves(sample, lambda leaf: self._image(leaf, image_id) if id(leaf) in wanted else leaf)

    def for_epoch(self, epoch: int) -> Corrupt:
        """Return the transform with other randomness for an epoch; for epoch 0 it is the same.

        >>> rough = Corrupt("noise", (1, 5))
        >>> rough.for_epoch(1) == rough.for_epoch(1), rough.for_epoch(1) == rough.for_epoch(2)
        (True, False)
        """
        if validate_integer("epoch", epoch, 0) == 0:
            return self
        digest = hashlib.blake2b(f"beaufort|epoch|{self.seed}|{epoch}".encode(), digest_size=8).digest()
        return replace(self, seed=int.from_bytes(digest, "little"))

    def _image(self, image: Any, image_id: Id | Sequence[Id] | None) -> Any:
        if self.floats and is_float(image):  # unchanged values keep every digit
            levels = to_levels(image)
            return put_changed(image, levels, self._image(levels, image_id))
        batch = as_batch(image)
        color = batch.color
        if is_tensor(color) and not color.is_cuda:
            color = on_host(color)
        if len(color) == 0:
            return batch.close(color)
        if image_id is None:
            ids = ops_of(color).content_ids(color).tolist()
        else:
            ids = _ids(image_id, getattr(image, "ndim", 3) < 4, len(color))
        return batch.close(self._corrupt(color, ids))

    def choose(self, image_id: Id) -> tuple[str, Severity | None] | None:
        """Return the corruption and severity for the image with this id; None if it stays clean.

        The severity is None for a name with severities of its own.
        """
        return self._choose(int(id_words([image_id])[0]))

    def _choose(self, word: int) -> tuple[str, Severity | None] | None:
        if self.p < 1 and self._uniform(word) >= self.p:
            return None
        if len(self._names.names) == len(self._severities) == 1:
            return self._with_severity(self._names.names[0], self._severities[0])
        digest = hashlib.blake2b(f"beaufort|choice|{self.seed}|{word}".encode(), digest_size=16).digest()
        return self._with_severity(self._names.pick(digest[:8]), pick(self._severities, digest[8:]))

    @staticmethod
    def _with_severity(name: str, severity: Severity | None) -> tuple[str, Severity | None]:
        return (name, severity) if name in corruptions else (name, None)

    def _uniform(self, word: int) -> float:
        """Return a uniform number from 0 to 1 for an image."""
        # the text stays as it is, because other text would select other images
        digest = hashlib.blake2b(f"beaufort|share|{self.seed}|{word}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") / 2**64

    @cached_property
    def _names(self) -> Names:
        return weigh_names(self.name if isinstance(self.name, tuple) else (self.name,), self.weights)

    @cached_property
    def _severities(self) -> tuple[Severity | None, ...]:
        return expand_severities(self.severity)

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        """All corruptions that can be chosen, at all severities."""
        choices = {self._with_severity(*both) for both in product(self._names.names, self._severities)}
        return tuple(link for choice in choices for link in Chain.of(*choice).links)

    @cached_property
    def _moving(self) -> tuple[str, ...]:
        return tuple(sorted({link.name for link in self._links if corruptions[link.name].moves}))

    def _corrupt(self, color: Images, ids: Sequence[Id]) -> Images:
        """Corrupt each image by its own choice; images with the same choice are corrupted together."""
        groups: dict[tuple[str, Severity | None], list[int]] = {}
        for place, word in enumerate(id_words(ids).tolist()):
            if (choice := self._choose(word)) is not None:
                groups.setdefault(choice, []).append(place)
        if not isinstance(color, np.ndarray):
            return self._on_device(color, ids, groups)
        if [*map(len, groups.values())] == [len(color)]:  # all in one group
            (choice,) = groups
            return np.asarray(Chain.of(*choice)(color, ids=ids, seed=self.seed, scale=self.scale))
        out = color.copy()
        for choice, places in groups.items():
            chosen = [ids[place] for place in places]
            out[places] = Chain.of(*choice)(color[places], ids=chosen, seed=self.seed, scale=self.scale)
        return out

    def _on_device(
        self, color: Tensor, ids: Sequence[Id], groups: Mapping[tuple[str, Severity | None], list[int]]
    ) -> Images:
        from beaufort._core.device import upload

        out = color.clone()
        for choice, places in groups.items():
            chosen = [ids[place] for place in places]
            index = upload(np.array(places), color.device)
            some = color[index].movedim(-1, 1)
            made = Chain.of(*choice)(some, ids=chosen, seed=self.seed, scale=self.scale)
            out[index] = made.movedim(1, -1)
        return out


def _ids(image_id: Any, single: bool, count: int) -> Sequence[Id]:
    if hasattr(image_id, "tolist"):  # a data loader collates ids to arrays or tensors
        image_id = image_id.tolist()
    several = not isinstance(image_id, str) and isinstance(image_id, Sequence)
    if single and not several:
        return [image_id]
    if not single and several and len(image_id) == count:
        return list(image_id)
    expected = "one id for one image" if single else f"a list of {count} ids for a batch of {count} images"
    raise OptionError(f"image_id must be {expected}, got {image_id!r:.60}")
