"""`beaufort make`: the published data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list
from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Corruptions, First, Jobs, Json, Seed


def make(
    dataset: Annotated[
        str,
        typer.Argument(
            help="mnist-c, cifar10-c, cifar100-c, tiny-imagenet-c, imagenet-c, cifar10-c-bar, "
            "imagenet-c-bar, cifar10-p, tiny-imagenet-p, imagenet-p or icons-open."
        ),
    ],
    source: Annotated[
        str, typer.Argument(help="The clean data set, as --data of `beaufort run`; none for icons-open.")
    ],
    output: Annotated[
        Path | None, typer.Argument(help="A folder outside of the source; made if missing.")
    ] = None,
    *,
    corruption: Corruptions = None,
    extra: Annotated[
        bool, typer.Option("--extra", help="All: 31 for mnist-c, sequences of the validation set for *-p.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    first: First = None,
    as_json: Json = False,
) -> None:
    """Make a published data set in its published layout, skipping what is there already.

    `beaufort make imagenet-c imagenet/val imagenet-c`

    `beaufort make mnist-c mnist/ mnist-c/ --corruption fog,identity`

    SOURCE is any data set: a path, kind:path, or a name of `beaufort ls datasets`.

    **mnist-c**: of MNIST's folder, both splits, or the test split if that is all there is. Writes
    `corruption/{train,test}_{images,labels}.npy`.

    **cifar10-c**, **cifar100-c**: of pictures of 32×32 pixels. Writes `corruption.npy`, all pictures at
    severity 1 first, and `labels.npy`.

    **imagenet-c**: short side 256, middle 224×224, corrupted, JPEG of quality 85 at
    `corruption/severity/class/file`. A folder of pictures without classes will do, too.

    **tiny-imagenet-c**: the same with 64×64 pixels, the aspect not kept.

    **cifar10-c-bar**, **imagenet-c-bar**: as cifar10-c and imagenet-c, with their ten corruptions.

    **cifar10-p**: of pictures of 32×32 pixels. Writes `sequence.npy` with all frames of each picture, and
    `labels.npy`.

    **imagenet-p**, **tiny-imagenet-p**: short side 256 or 64, frames of the middle 224×224 or 64×64. Writes
    videos at `sequence/class/file.mp4`, compressed as the published ones; needs the program ffmpeg.

    **icons-open**: `beaufort make icons-open DIR`, without a source: artwork under open licenses is fetched
    from npm packages. Writes `class/style_version_subtype.png`, a manifest and a datasheet. Needs
    `pip install 'beaufort[icons]'`.
    """
    from beaufort.data.writers import make_dataset, make_icons_open

    if dataset == "icons-open":
        options = (output, corruption, first, jobs, extra or None, seed or None)
        if any(given is not None for given in options):
            raise OptionError("icons-open must be made with its output folder alone: make icons-open DIR")
        with progress_bar("make icons-open") as progress:
            made = make_icons_open(source, progress=progress)
        finish(made, source, as_json=as_json)
        return
    if output is None:
        raise OptionError(f"make {dataset} must be given SOURCE and OUTPUT, got {source!r} alone")
    names = None if corruption is None else comma_list(corruption)
    with progress_bar(f"make {dataset}") as progress:
        report = make_dataset(
            dataset,
            source,
            output,
            names=names,
            extra=extra,
            seed=seed,
            limit=first,
            jobs=jobs,
            progress=progress,
        )
    finish(report, output, as_json=as_json)
