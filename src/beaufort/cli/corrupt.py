"""`beaufort corrupt`: corrupt an image or a directory of images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.text import comma_list
from beaufort._core.validation import validate_choice
from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Corruptions, Format, Jobs, Json, Seed, Severities, severities_for


def corrupt(
    source: Annotated[Path, typer.Argument(help="Image, or directory that is searched recursively.")],
    output: Annotated[Path, typer.Argument(help="Directory outside of the source; created if missing.")],
    *,
    corruption: Corruptions = "common",
    severity: Severities = None,
    seed: Seed = None,
    scale: Annotated[
        str,
        typer.Option(
            help="Constants: imagenet, inception, tiny, cifar or mnist as published; auto chooses or "
            "interpolates them by the short side of the image; relative scales lengths with it."
        ),
    ] = "auto",
    jobs: Jobs = None,
    format: Format = "keep",  # noqa: A002  the option's name
    quality: Annotated[int, typer.Option(help="Quality of JPEG files, 1 to 100; ImageNet-C has 85.")] = 85,
    as_json: Json = False,
) -> None:
    """Corrupt images into `OUTPUT/corruption/severity/…`, skipping files that exist.

    `beaufort corrupt photos/ corrupted/ --corruption fog,snow --severity 1-5`

    `beaufort corrupt cat.jpg corrupted/ --corruption weather --severity 3 --format png`

    `beaufort corrupt photos/ corrupted/ --corruption fog@2+jpeg_compression@3`

    Outputs have the paths of their sources. The pixels depend only on the image, its path in SOURCE, the seed
    and the scale. Use one OUTPUT per source. Formats: keep, png and jpeg.

    The content of a file decides what it is, not its name. CMYK, palette and 16-bit images become 8-bit RGB
    or grayscale; EXIF rotation is applied; other metadata and color profiles are dropped. Transparency is
    kept if the format supports it, otherwise the image is put on white. Animations, images of more than 100
    megapixels or under 16 pixels and damaged files are listed at the end, with exit code 1.
    """
    from beaufort.data.writers import corrupt_tree

    names = comma_list(corruption or "common")
    with progress_bar("corrupt") as progress:
        outcome = corrupt_tree(
            source,
            output,
            names=names,
            severities=severities_for(names, severity),
            seed=seed or 0,
            scale=scale,
            file_format=validate_choice("format", format or "keep", ("keep", "png", "jpeg")),
            quality=quality,
            jobs=jobs,
            progress=progress,
        )
    finish(outcome, output, as_json=as_json)
