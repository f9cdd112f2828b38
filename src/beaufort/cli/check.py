"""`beaufort check`: check that a model fulfills the contract and is loaded as it was trained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._options import (
    Classes,
    Data,
    Device,
    Filter,
    Json,
    Labels,
    Limit,
    ModelOptions,
    Suite,
    model_options,
    parse_labels,
)

if TYPE_CHECKING:
    from beaufort.data import Problem
    from beaufort.models import Model
    from beaufort.testing import ModelFinding


def check(
    model: Annotated[str, typer.Argument(help="Model to check; `beaufort ls models` lists the kinds.")],
    *,
    data: Data = None,
    suite: Suite = None,
    classes: Classes = None,
    labels: Labels = None,
    options: ModelOptions = None,
    filter: Filter = None,  # noqa: A002  the option's name
    device: Device = None,
    limit: Limit = 200,
    as_json: Json = False,
) -> None:
    """Check that a model is loaded correctly, and report likely mistakes.

    `beaufort check resnet50.onnx --data imagenet/val`

    `beaufort check timm:resnet50.a1_in1k --set range=0..255 --set order=BGR --data samples.npz`

    The shape, type and number of the logits are checked; that they are finite and the same in every call, in
    any batch and order; and that the model does not change its input. With real images (`--data`), the value
    range and the channel order are checked as well: no other choice may give better predictions. This takes a
    few hundred images and is most reliable with labels. With labels, the accuracy is reported, and the likely
    mistake if it is at chance. Images are read, prepared and labeled as by `beaufort run`.

    Exit codes: 0 no problem; 1 problems, or images that cannot be read; 2 the model cannot be used at all.
    """
    from beaufort.evaluation.samples import read_samples
    from beaufort.models import load_model
    from beaufort.models.filtered import missing_filter_note
    from beaufort.testing import check_model, measure_accuracy

    loaded = load_model(model, **model_options(options, device=device, classes=classes, filter=filter))
    scoring = parse_labels(labels, ["convention"])
    accuracy = space = None
    problems: tuple[Problem, ...] = ()
    if data is None:
        findings = check_model(loaded)
    else:
        samples = read_samples(data, loaded, limit=limit or 200, suite=suite, **scoring)
        space, known, problems = samples.space, samples.classes, samples.problems
        findings = check_model(
            loaded, images=samples.images, labels=samples.labels, space=space, classes=known
        )
        if samples.labels is not None and not any(one.level == "unusable" for one in findings):
            accuracy = measure_accuracy(loaded, samples.images, samples.labels, space=space, classes=known)
    notes = [note for note in (missing_filter_note(loaded.spec),) if note]
    if as_json:
        facts: dict[str, Any] = {
            "model": loaded.spec.to_dict(),
            "findings": [one.to_dict() for one in findings],
            "problems": [problem._asdict() for problem in problems],
            "notes": notes,
        }
        if accuracy is not None:
            more = {"value": accuracy.value, "at_chance": accuracy.at_chance, "labels": str(space)}
            facts["accuracy"] = {**vars(accuracy), **more}
        typer.echo(json.dumps(facts, indent=2))
    else:
        _print(loaded, findings, with_data=data is not None, unread=bool(problems))
        if accuracy is not None:
            typer.echo(f"{accuracy}; {space}")
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in problems[:20]:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
    if problems:
        typer.echo(f"skipped {counted(len(problems), 'unreadable image')}", err=True)
    levels = {finding.level for finding in findings}
    if problems or levels & {"unusable", "problem"}:
        raise typer.Exit(2 if "unusable" in levels else 1)


def _print(model: Model, findings: list[ModelFinding], *, with_data: bool, unread: bool) -> None:
    from beaufort.models import FilteredModel

    spec = model.spec
    classes = "an unknown number of" if spec.classes is None else str(spec.classes - spec.outcomes)
    typer.echo(f"{printable(spec.name)}: {classes} classes, digest {spec.digest[:19]}")
    preprocessing = model.preparation if isinstance(model, FilteredModel) else spec.preprocessing
    typer.echo(f"preprocessing: {preprocessing}")
    for finding in findings:
        typer.echo(f"{finding.level}: {finding.check}: {printable(finding.message)}")
        typer.echo(f"    {printable(finding.advice)}")
    if not findings and not unread:
        typer.echo("no problem found")
    if not with_data:
        typer.echo("value range and channel order not checked; pass real images with --data")
