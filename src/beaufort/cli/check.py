"""`beaufort check`: whether a model keeps the contract, and is loaded as it was trained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._options import (
    Classes,
    Convention,
    Data,
    Device,
    Filter,
    Json,
    Labels,
    Limit,
    ModelOptions,
    Suite,
    model_options,
)

if TYPE_CHECKING:
    from beaufort.data import Problem
    from beaufort.models import Model
    from beaufort.testing import ModelFinding


def check(
    model: Annotated[str, typer.Argument(help="As in the examples of `beaufort ls models`.")],
    *,
    data: Data = None,
    suite: Suite = None,
    classes: Classes = None,
    labels: Labels = None,
    convention: Convention = None,
    options: ModelOptions = None,
    filter: Filter = None,  # noqa: A002  the option's name
    device: Device = None,
    limit: Limit = 200,
    as_json: Json = False,
) -> None:
    """Run the model contract and say what is wrong.

    `beaufort check resnet50.onnx --data imagenet/val`

    `beaufort check timm:resnet50.a1_in1k --set range=0..255 --set order=BGR --data samples.npz`

    Checked are the shape, type and number of the logits, that they are finite, the same every time, in
    any batch and any order, and that images are left alone. With real pictures also the range and the
    channel order: another one must not do better. Labels make that certain, some hundreds of pictures
    make it reliable. With labels the accuracy is told, and what is likely wrong if it is at chance. Pictures
    are opened, made ready and labeled as `beaufort run` does.

    Exit codes: 0 no problem was found; 1 there are problems, pictures that cannot be read among them; 2 the
    model cannot be used at all.
    """
    from beaufort.evaluation.samples import read_samples
    from beaufort.models import load_model
    from beaufort.models.filtered import missing_filter_note
    from beaufort.testing import check_model, measure_accuracy

    given = model_options(options, device=device, classes=classes, filter=filter)
    loaded = load_model(model, **given)
    accuracy = space = None
    problems: tuple[Problem, ...] = ()
    if data is None:
        findings = check_model(loaded)
    else:
        samples = read_samples(
            data, loaded, limit=limit or 200, suite=suite, labels=labels, convention=convention
        )
        space, known, problems = samples.space, samples.classes, samples.problems
        findings = check_model(
            loaded, images=samples.images, labels=samples.labels, space=space, classes=known
        )
        if samples.labels is not None and not any(one.level == "unusable" for one in findings):
            accuracy = measure_accuracy(loaded, samples.images, samples.labels, space=space, classes=known)
    notes = [note for note in (missing_filter_note(loaded.spec),) if note]
    if as_json:
        told: dict[str, Any] = {
            "model": loaded.spec.to_dict(),
            "findings": [one.to_dict() for one in findings],
            "problems": [problem._asdict() for problem in problems],
            "notes": notes,
        }
        if accuracy is not None:
            more = {"value": accuracy.value, "at_chance": accuracy.at_chance, "labels": str(space)}
            told["accuracy"] = {**vars(accuracy), **more}
        typer.echo(json.dumps(told, indent=2))
    else:
        _tell(loaded, findings, judged=data is not None, unread=bool(problems))
        if accuracy is not None:
            typer.echo(f"{accuracy}; {space}")
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in problems[:20]:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
    if problems:
        typer.echo(f"{counted(len(problems), 'picture')} could not be read and had no part in it", err=True)
    levels = {finding.level for finding in findings}
    if problems or levels & {"unusable", "problem"}:
        raise typer.Exit(2 if "unusable" in levels else 1)


def _tell(model: Model, findings: list[ModelFinding], *, judged: bool, unread: bool) -> None:
    from beaufort.models import FilteredModel

    spec = model.spec
    classes = "an unknown number of" if spec.classes is None else str(spec.classes)
    typer.echo(f"{printable(spec.name)}: {classes} classes, digest {spec.digest[:19]}")
    done = model.preparation if isinstance(model, FilteredModel) else spec.preprocessing
    typer.echo(f"preprocessing: {done}")
    for finding in findings:
        typer.echo(f"{finding.level}: {finding.check}: {printable(finding.message)}")
        typer.echo(f"    {printable(finding.advice)}")
    if not findings and not unread:
        typer.echo("nothing wrong was found")
    if not judged:
        typer.echo("range and channel order were not judged: that takes real images, --data")
