"""`beaufort make`: make published datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list
from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Corruptions, Jobs, Json, Limit, Seed


def make(
    dataset: Annotated[
        str,
        typer.Argument(
            help="mnist-c, cifar10-c, cifar100-c, tiny-imagenet-c, imagenet-c, cifar10-c-bar, "
            "imagenet-c-bar, cifar10-p, tiny-imagenet-p, imagenet-p or icons-open."
        ),
    ],
    source: Annotated[
        str, typer.Argument(help="Clean dataset, as --data of `beaufort run`; omitted for icons-open.")
    ],
    output: Annotated[
        Path | None, typer.Argument(help="Directory outside of the source; created if missing.")
    ] = None,
    *,
    corruption: Corruptions = None,
    extra: Annotated[
        bool,
        typer.Option(
            "--extra",
            help="Also write the data outside the benchmark: 31 corruptions for mnist-c, the validation "
            "sequences for *-p.",
        ),
    ] = False,
    seed: Seed = None,
    jobs: Jobs = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Make a published dataset in its published layout, skipping files that exist.

    `beaufort make imagenet-c imagenet/val imagenet-c`

    `beaufort make mnist-c mnist/ mnist-c/ --corruption fog,identity`

    SOURCE is any dataset: a path, KIND:PATH, or a name from `beaufort ls datasets`. `--limit` takes the first
    N images.

    **mnist-c**: from the directory of MNIST, both splits, or the test split if there is no other. Writes
    `corruption/{train,test}_{images,labels}.npy`.

    **cifar10-c**, **cifar100-c**: from images of 32×32 pixels. Writes `corruption.npy`, all images at
    severity 1 first, and `labels.npy`.

    **imagenet-c**: short side 256, center 224×224, corrupted, JPEG of quality 85 at
    `corruption/severity/class/file`. The source may be a directory of images without classes.

    **tiny-imagenet-c**: the same with 64×64 pixels, without keeping the aspect ratio.

    **cifar10-c-bar**, **imagenet-c-bar**: as cifar10-c and imagenet-c, with the ten C-bar corruptions.

    **cifar10-p**: from images of 32×32 pixels. Writes `sequence.npy` with all frames of each image, and
    `labels.npy`.

    **imagenet-p**, **tiny-imagenet-p**: short side 256 or 64, frames of the center 224×224 or 64×64. Writes
    videos at `sequence/class/file.mp4`, compressed as the published ones; needs the program ffmpeg.

    **icons-open**: `beaufort make icons-open DIR`, without a source, from artwork under open licenses that is
    downloaded from npm packages. Writes `class/style_version_subtype.png`, a manifest and a datasheet. Needs
    `pip install 'beaufort[icons]'`.
    """
    from beaufort.data.writers import make_dataset, make_icons_open

    if dataset == "icons-open":
        options = (output, corruption, limit, jobs, extra or None, seed)
        if any(value is not None for value in options):
            raise OptionError("icons-open takes only its output directory: make icons-open DIR")
        with progress_bar("make icons-open") as progress:
            outcome = make_icons_open(source, progress=progress)
        finish(outcome, source, as_json=as_json)
        return
    if output is None:
        raise OptionError(f"make {dataset} requires SOURCE and OUTPUT, got only {source!r}")
    with progress_bar(f"make {dataset}") as progress:
        outcome = make_dataset(
            dataset,
            source,
            output,
            names=None if corruption is None else comma_list(corruption),
            extra=extra,
            seed=seed or 0,
            limit=limit,
            jobs=jobs,
            progress=progress,
        )
    finish(outcome, output, as_json=as_json)
