"""`beaufort gallery`: every corruption to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Json, Output, Seed, Subset


def gallery(
    image: Annotated[
        Path | None, typer.Argument(help="The picture to corrupt; a painted one if not given.")
    ] = None,
    output: Output = Path("gallery"),
    subset: Subset = "all",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw every corruption at every severity: `gallery.png`, and `gallery.html`, which needs no other file.

    `beaufort gallery --output gallery/`

    `beaufort gallery cat.jpg --output gallery/ --subset weather`
    """
    from beaufort.report.gallery import make_gallery

    with progress_bar("gallery") as progress:
        report = make_gallery(output, image, subset=subset or "all", seed=seed, progress=progress)
    finish(report, output, as_json=as_json)
