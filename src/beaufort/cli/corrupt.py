"""`beaufort corrupt`: a picture or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.text import comma_list
from beaufort._core.validation import validate_choice
from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Corruptions, Format, Jobs, Json, Seed, Severities, severities_for


def corrupt(
    source: Annotated[
        Path, typer.Argument(help="A picture, or a folder that is searched with all below it.")
    ],
    output: Annotated[Path, typer.Argument(help="A folder outside of the source; made if missing.")],
    *,
    corruption: Corruptions = "common",
    severity: Severities = None,
    seed: Seed = 0,
    scale: Annotated[
        str,
        typer.Option(
            help="Published constants to use: imagenet, inception, tiny, cifar, mnist; auto takes those of "
            "the short side, or goes between the two sizes around it; relative lets those in pixels "
            "grow with it."
        ),
    ] = "auto",
    jobs: Jobs = None,
    format: Format = "keep",  # noqa: A002  the option's name
    quality: Annotated[int, typer.Option(help="Of JPEG files, 1 to 100; ImageNet-C has 85.")] = 85,
    as_json: Json = False,
) -> None:
    """Corrupt pictures into `OUTPUT/corruption/severity/…`, skipping what is there already.

    `beaufort corrupt photos/ corrupted/ --corruption fog,snow --severity 1-5`

    `beaufort corrupt cat.jpg corrupted/ --corruption weather --severity 3 --format png`

    `beaufort corrupt photos/ corrupted/ --corruption fog@2+jpeg_compression@3`

    Outputs have the paths of their sources. A picture's pixels depend on the picture, its path in SOURCE,
    the seed and the scale, and on nothing else. Use an OUTPUT of its own for each source.

    A file's content decides what it is, not its name. CMYK, palette and 16-bit pictures become 8-bit RGB or
    grey; the rotation in EXIF data is carried out; notes and color profiles are dropped. Transparency is
    kept where the format can, otherwise the picture is laid on white. Animations, pictures of more than 100
    megapixels or under 16 pixels, and damaged files are told at the end, with exit code 1; the rest is done.
    """
    from beaufort.data.writers import corrupt_tree

    names = comma_list(corruption or "common")
    with progress_bar("corrupt") as progress:
        report = corrupt_tree(
            source,
            output,
            names=names,
            severities=severities_for(names, severity),
            seed=seed,
            scale=scale,
            file_format=validate_choice("format", format or "keep", ("keep", "png", "jpeg")),
            quality=quality,
            jobs=jobs,
            progress=progress,
        )
    finish(report, output, as_json=as_json)
