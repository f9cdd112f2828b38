"""`beaufort check`: whether a model keeps the contract, and is loaded as it was trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort.cli._console import printable
from beaufort.cli._options import Json

if TYPE_CHECKING:
    from beaufort.models import ModelSpec
    from beaufort.testing import Finding

__all__ = ["check"]


def check(
    model: Annotated[str, typer.Argument(help="As in the examples of `beaufort ls models`.")],
    *,
    images: Annotated[
        Path | None,
        typer.Option(help="A folder with a folder a class, or an .npz file with images and labels."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="What to know about the model, as range=0..255; may be repeated."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:1.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the model's library.")] = None,
    limit: Annotated[int, typer.Option(help="The most pictures to look at.")] = 200,
    as_json: Json = False,
) -> None:
    """Run the model contract and say what is wrong.

    `beaufort check resnet50.onnx --images imagenet/val`

    `beaufort check timm:resnet50.a1_in1k --set range=0..255 --set order=BGR --images samples.npz`

    Checked are the shape, type and number of the logits, that they are finite, the same every time, in
    any batch and any order, and that images are left alone. With real pictures also the range and the
    channel order: another one must not do better. Labels make that certain, some hundreds of pictures
    make it reliable.

    Exit codes: 0 no problem was found; 1 there are problems; 2 the model cannot be used at all.
    """
    from beaufort.datasets.samples import Samples, read_samples
    from beaufort.models import load_model, parse_options
    from beaufort.testing import check_model

    given = parse_options(options or [])
    given.update(
        {key: value for key, value in (("device", device), ("threads", threads)) if value is not None}
    )
    loaded = load_model(model, **given)
    samples = Samples(None, None) if images is None else read_samples(images, loaded.spec, limit=limit)
    findings = check_model(loaded, images=samples.images, labels=samples.labels)
    if as_json:
        found = [finding.to_dict() for finding in findings]
        typer.echo(json.dumps({"model": loaded.spec.to_dict(), "findings": found}, indent=2))
    else:
        _tell(loaded.spec, findings, judged=images is not None)
    levels = {finding.level for finding in findings}
    if levels & {"unusable", "problem"}:
        raise typer.Exit(2 if "unusable" in levels else 1)


def _tell(spec: ModelSpec, findings: list[Finding], *, judged: bool) -> None:
    classes = "an unknown number of" if spec.classes is None else str(spec.classes)
    typer.echo(f"{printable(spec.name)}: {classes} classes, digest {spec.digest[:19]}")
    typer.echo(f"preprocessing: {spec.preprocessing}")
    for finding in findings:
        typer.echo(f"{finding.level}: {finding.check}: {printable(finding.message)}")
        typer.echo(f"    {printable(finding.advice)}")
    if not findings:
        typer.echo("nothing wrong was found")
    if not judged:
        typer.echo("range and channel order were not judged: that takes real pictures, --images")
