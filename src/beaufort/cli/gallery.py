"""`beaufort gallery`: show every corruption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from beaufort.cli._console import finish, progress_bar
from beaufort.cli._options import Corruptions, Json, Output, Seed


def gallery(
    image: Annotated[
        Path | None, typer.Argument(help="Image to corrupt; a painted one by default.", show_default=False)
    ] = None,
    output: Output = Path("gallery"),
    corruption: Corruptions = "all",
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Draw one image under every corruption and severity, as a PNG file and a self-contained page.

    `beaufort gallery --output gallery/`

    `beaufort gallery cat.jpg --output gallery/ --corruption weather`
    """
    from beaufort.report.gallery import make_gallery

    with progress_bar("gallery") as progress:
        outcome = make_gallery(output, image, subset=corruption or "all", seed=seed or 0, progress=progress)
    finish(outcome, output, as_json=as_json)
