"""The published data sets, made again in their published layouts.

| name | layout | pictures | corruptions |
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
from pathlib import Path, PurePath

from PIL import Image

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_count
from beaufort.corruptions import SEVERITIES, checked_seed, get_corruption_names
from beaufort.corruptions.sequences import sequences
from beaufort.data import dataset_kind, load_dataset
from beaufort.data.images import FORMATS, Format, flatten, read_image
from beaufort.data.preparation import Step
from beaufort.data.writers.image_sources import (
    DatasetImages,
    FolderImages,
    SourceImages,
    check_apart,
    prepare_image,
)
from beaufort.data.writers.image_tree import TreeJob, corrupted, run_tree
from beaufort.data.writers.output_folder import Outcome, Progress, claim_folder
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
    """How one of the published data sets is made."""

    corruptions: tuple[str, ...]
    """The published ones."""
    extra: tuple[str, ...]
    """All, with those that were published as code only, or beside the others."""
    make: Callable[[Request], Outcome]
    films: bool = False
    """Whether these are sequences."""


PUBLISHED_SETS: Registry[PublishedSet] = Registry("data set that can be made")
"""What `make_dataset` makes, by name."""


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
    """Make a published data set from its clean pictures, in its published layout.

    What is there already is skipped; a file has its name only when it is complete.

    Args:
        name: `mnist-c`, `cifar10-c`, `cifar100-c`, `tiny-imagenet-c` or `imagenet-c`; `cifar10-c-bar` or
            `imagenet-c-bar`; `cifar10-p`, `tiny-imagenet-p` or `imagenet-p`.
        source: the clean pictures, as for `load_dataset`: 28×28 and grey for `mnist-c`, which is made of both
            of MNIST's splits where they are; 32×32 for `cifar10-c` and `cifar100-c`. For the others also a
            folder of pictures without classes.
        output: a folder outside of the source; made if missing.
        names: the corruptions, or sequences, to make instead of all published ones; subsets of corruptions
            are accepted.
        extra: for `mnist-c`, all 31 corruptions; for sequences also the four of the validation set, and
            noise of all difficulties.
        seed: any whole number.
        limit: the first so many pictures only (of MNIST, of each split).
        jobs: threads; as many as there are processors if None.
        progress: called as outputs are dealt with.
    """
    dataset = PUBLISHED_SETS[name]
    if limit is not None:
        limit = validate_count("limit", limit)
    if extra and names is not None:
        raise OptionError(
            "extra stands for all names, so it must be given without them; leave one of both out"
        )
    published = dataset.extra if extra else dataset.corruptions
    request = Request(
        dataset=name,
        source=str(source),
        output=Path(output),
        names=published if names is None else _chosen(names, dataset),
        seed=checked_seed(seed),
        limit=limit,
        jobs=worker_count(jobs),
        progress=progress,
    )
    return dataset.make(request)


def _chosen(names: Iterable[str], dataset: PublishedSet) -> tuple[str, ...]:
    """Names and subsets, with `identity` where the data set has it."""
    wanted = list(names)
    if dataset.films:
        return sequence_names(wanted)
    plain = [IDENTITY] if IDENTITY in wanted and IDENTITY in dataset.extra else []
    others = [name for name in wanted if name not in plain]
    return (*plain, *(corruption_names(others) if others or not plain else ()))


def _imagenet(request: Request) -> Outcome:
    return _tree(request, "imagenet", (Step("resize", 256), Step("crop", 224)))


def _tiny(request: Request) -> Outcome:
    return _tree(request, "tiny", (Step("stretch", 64),))


def _imagenet_p(request: Request) -> Outcome:
    return make_videos(request, _pictures(request, (Step("resize", 256),)), "imagenet")


def _tiny_p(request: Request) -> Outcome:
    return make_videos(request, _pictures(request, (Step("resize", 64),)), "tiny")


def _tree(request: Request, scale: str, steps: Sequence[Step]) -> Outcome:
    made = variants(request.names, SEVERITIES, scale)
    pictures = _pictures(request, steps)
    if full := claim_folder(request.output, request.settings(), request.names):
        return Outcome(stopped=full)
    job = TreeJob(
        pictures,
        request.output,
        made,
        _jpeg_target,
        corrupted(seed=request.seed, scale=scale, quality=_QUALITY),
        limit=request.limit,
    )
    return run_tree(job, jobs=request.jobs, progress=request.progress)


def _pictures(request: Request, steps: Sequence[Step]) -> SourceImages:
    """Files as they lie in a folder with or without classes; of other data sets, a folder a class."""
    folder = Path(request.source.removeprefix("folder:"))
    if folder.is_dir():
        check_apart(folder, request.output)
        if dataset_kind(request.source) in (None, "folder"):
            return FolderImages(folder, request.output, lambda path: prepare_image(_read(path), steps))
    some = load_dataset(request.source, limit=request.limit)
    return DatasetImages(some, lambda image: prepare_image(image, steps))


def _read(path: Path) -> Image.Image:
    """As the published sets were read: the rotation in EXIF data is not carried out."""
    return flatten(read_image(path, upright=False))


def _jpeg_target(name: str) -> tuple[str, Format]:
    path, kind = PurePath(name), FORMATS["jpeg"]
    return (name if path.suffix.lower() in kind.suffixes else f"{path.stem}.JPEG"), kind


def _register() -> None:
    photos = tuple(get_corruption_names("all"))
    digits = (IDENTITY, *get_corruption_names("mnist-c"))
    PUBLISHED_SETS.register(
        "mnist-c", PublishedSet(digits, (IDENTITY, *get_corruption_names("mnist-c-all")), make_mnist)
    )
    PUBLISHED_SETS.register("cifar10-c", PublishedSet(photos, photos, make_cifar))
    PUBLISHED_SETS.register("cifar100-c", PublishedSet(photos, photos, make_cifar))
    PUBLISHED_SETS.register("tiny-imagenet-c", PublishedSet(photos, photos, _tiny))
    PUBLISHED_SETS.register("imagenet-c", PublishedSet(photos, photos, _imagenet))
    unseen = tuple(get_corruption_names("imagenet-c-bar"))
    PUBLISHED_SETS.register("imagenet-c-bar", PublishedSet(unseen, unseen, _imagenet))
    unseen = tuple(get_corruption_names("cifar10-c-bar"))
    PUBLISHED_SETS.register("cifar10-c-bar", PublishedSet(unseen, unseen, make_cifar))
    ten, every = _TEN_SEQUENCES, tuple(sequences)
    PUBLISHED_SETS.register("cifar10-p", PublishedSet(ten, every, make_cifar_p, films=True))
    PUBLISHED_SETS.register("tiny-imagenet-p", PublishedSet(ten, every, _tiny_p, films=True))
    PUBLISHED_SETS.register("imagenet-p", PublishedSet(ten, every, _imagenet_p, films=True))


_register()
