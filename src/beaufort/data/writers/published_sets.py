"""Published datasets that can be made from clean images, in their published layouts.

| name | layout | images | corruptions |
|---|---|---|---|
| `mnist-c` | `<corruption>/{train,test}_{images,labels}.npy` | uint8 `(n, 28, 28, 1)` | 15 and `identity` |
| `cifar10-c`, `cifar100-c` | `<corruption>.npy`, `labels.npy` | uint8 `(5n, 32, 32, 3)`, by severity | 19 |
| `imagenet-c` | `<corruption>/<severity>/<class>/<file>` | JPEG, 224×224 | 19 |
| `tiny-imagenet-c` | `<corruption>/<severity>/<class>/<file>` | JPEG, 64×64 | 19 |
| `cifar10-c-bar`, `imagenet-c-bar` | as `cifar10-c`, `imagenet-c` | | 10 |
| `cifar10-p` | `<sequence>.npy`, `labels.npy` | uint8 `(n, frames, 32, 32, 3)` | 10 sequences |
| `imagenet-p`, `tiny-imagenet-p` | `<sequence>/<class>/<file>.mp4` | H.264, 224×224 or 64×64 | 10 sequences |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from PIL import Image

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_count
from beaufort.corruptions import SEVERITIES, get_corruption_names, validate_seed
from beaufort.corruptions.sequences import sequences
from beaufort.data import Step, dataset_kind, load_dataset
from beaufort.data.images import FORMATS, Format, flatten, read_image
from beaufort.data.writers.image_sources import (
    DatasetImages,
    FolderImages,
    SourceImages,
    check_apart,
    prepare_image,
)
from beaufort.data.writers.image_tree import TreeJob, corrupted, run_tree
from beaufort.data.writers.output_folder import Outcome, Progress
from beaufort.data.writers.published_arrays import IDENTITY, Request, make_cifar, make_mnist
from beaufort.data.writers.published_sequences import make_cifar_p, make_videos, sequence_names
from beaufort.data.writers.variants import corruption_names, variants, worker_count

_QUALITY = 85
_TEN_SEQUENCES = (
    *("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow"),
    *("brightness", "translate", "rotate", "tilt", "scale"),
)
"""The published sequences of ImageNet-P."""


@dataclass(frozen=True)
class PublishedSet:
    """A published dataset that can be made."""

    make: Callable[[Request], Outcome]
    corruptions: tuple[str, ...]
    """Published corruptions or sequences."""
    extra: tuple[str, ...] = ()
    """All corruptions, including those published as code only."""
    sequences: bool = False


PUBLISHED_SETS: Registry[PublishedSet] = Registry("dataset that can be made")
"""Datasets that `make_dataset` can make, by name."""


def make_dataset(
    name: str,
    source: Path | str,
    output: Path | str,
    *,
    names: Iterable[str] | None = None,
    extra: bool = False,
    seed: int = 0,
    limit: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Make a published dataset from its clean images, in its published layout.

    Existing outputs are skipped, and files are written atomically, so the same command resumes.

    Args:
        name: one of `PUBLISHED_SETS`.
        source: a spec of the clean images, as for `load_dataset`: 28×28 and grayscale for `mnist-c`, which
            is made from all available splits of MNIST; 32×32 for `cifar10-c` and `cifar100-c`. The other
            datasets also accept a directory of images without classes.
        output: a directory outside the source; created if missing.
        names: corruptions, subsets of corruptions, or sequences; by default, all published ones.
        extra: include all 31 corruptions for `mnist-c`, and the four sequences of the validation set and all
            difficulties of noise for sequences.
        seed: an integer.
        limit: number of images (of each split for MNIST); all by default.
        jobs: number of threads; by default, that of the processors.
        progress: called with the number of finished outputs and their total.
    """
    published = PUBLISHED_SETS[name]
    if extra and names is not None:
        raise OptionError("extra and names cannot be used together")
    chosen = published.extra or published.corruptions if extra else published.corruptions
    request = Request(
        dataset=name,
        source=str(source),
        output=Path(output),
        names=chosen if names is None else _chosen(names, published),
        seed=validate_seed(seed),
        limit=None if limit is None else validate_count("limit", limit),
        jobs=worker_count(jobs),
        progress=progress,
    )
    return published.make(request)


def _chosen(names: Iterable[str], published: PublishedSet) -> tuple[str, ...]:
    """Expand names and subsets; `identity` is accepted if the dataset has it."""
    wanted = list(names)
    if published.sequences:
        return sequence_names(wanted)
    plain = [IDENTITY] if IDENTITY in wanted and IDENTITY in published.corruptions else []
    others = [name for name in wanted if name not in plain]
    return (*plain, *(corruption_names(others) if others or not plain else ()))


def _make_tree(request: Request, scale: str, steps: Sequence[Step]) -> Outcome:
    made = variants(request.names, SEVERITIES, scale)
    images = _source_images(request, steps)
    if full := request.claim(request.names):
        return Outcome(stopped=full)
    content = corrupted(seed=request.seed, scale=scale, quality=_QUALITY)
    job = TreeJob(images, request.output, made, _jpeg_target, content, limit=request.limit)
    return run_tree(job, jobs=request.jobs, progress=request.progress)


def _make_videos(request: Request, scale: str, steps: Sequence[Step]) -> Outcome:
    return make_videos(request, _source_images(request, steps), scale)


def _source_images(request: Request, steps: Sequence[Step]) -> SourceImages:
    """Return the files of a directory, with or without classes, or the images of another dataset."""
    folder = Path(request.source.removeprefix("folder:"))
    if folder.is_dir():
        check_apart(folder, request.output)
        if dataset_kind(request.source) in (None, "folder"):
            return FolderImages(folder, request.output, lambda path: prepare_image(_read(path), steps))
    some = load_dataset(request.source, limit=request.limit)
    return DatasetImages(some, lambda image: prepare_image(image, steps))


def _read(path: Path) -> Image.Image:
    """Read an image without applying the EXIF orientation, as for the published sets."""
    return flatten(read_image(path, upright=False))


def _jpeg_target(name: str) -> tuple[str, Format]:
    path, kind = PurePath(name), FORMATS["jpeg"]
    return (name if path.suffix.lower() in kind.suffixes else f"{path.stem}.JPEG"), kind


_PHOTOS = tuple(get_corruption_names("all"))
_IMAGENET = partial(_make_tree, scale="imagenet", steps=(Step("resize", 256), Step("crop", 224)))
_TINY = partial(_make_tree, scale="tiny", steps=(Step("stretch", 64),))
_IMAGENET_P = partial(_make_videos, scale="imagenet", steps=(Step("resize", 256),))
_TINY_P = partial(_make_videos, scale="tiny", steps=(Step("resize", 64),))

for _name, _set in {
    "mnist-c": PublishedSet(
        make_mnist,
        (IDENTITY, *get_corruption_names("mnist-c")),
        (IDENTITY, *get_corruption_names("mnist-c-all")),
    ),
    "cifar10-c": PublishedSet(make_cifar, _PHOTOS),
    "cifar100-c": PublishedSet(make_cifar, _PHOTOS),
    "tiny-imagenet-c": PublishedSet(_TINY, _PHOTOS),
    "imagenet-c": PublishedSet(_IMAGENET, _PHOTOS),
    "imagenet-c-bar": PublishedSet(_IMAGENET, tuple(get_corruption_names("imagenet-c-bar"))),
    "cifar10-c-bar": PublishedSet(make_cifar, tuple(get_corruption_names("cifar10-c-bar"))),
    "cifar10-p": PublishedSet(make_cifar_p, _TEN_SEQUENCES, tuple(sequences), sequences=True),
    "tiny-imagenet-p": PublishedSet(_TINY_P, _TEN_SEQUENCES, tuple(sequences), sequences=True),
    "imagenet-p": PublishedSet(_IMAGENET_P, _TEN_SEQUENCES, tuple(sequences), sequences=True),
}.items():
    PUBLISHED_SETS.register(_name, _set)
