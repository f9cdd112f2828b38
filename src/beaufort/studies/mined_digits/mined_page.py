"""The files of the study: a page of figures, and a picture of samples."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from PIL import Image

from beaufort.mining import BUILT_IN, read_generated
from beaufort.studies.engine import read_record
from beaufort.studies.failed_runs import CheckedRuns, check_runs, failed_markdown
from beaufort.studies.mined_digits.digit_classifiers import CLASSIFIERS, JUDGES


def study_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The page and a picture of samples, once everything else is there."""
    if (folder / "evaluation" / "index.html").is_file():
        yield "README.md", _markdown(folder).encode()
        yield "samples.png", _samples(folder)


def _runs(folder: Path) -> CheckedRuns:
    """What the losses of the classifiers say; older studies have none."""
    found = []
    for name in (*CLASSIFIERS, *JUDGES):
        path = folder / "models" / f"{name}.json"
        inside = (
            "the votes of the review" if name in JUDGES else "its row; what is kept, if it is a surrogate"
        )
        found.append((name, inside, json.loads(path.read_text()) if path.is_file() else {}))
    return check_runs(found)


def _markdown(folder: Path) -> str:
    images = json.loads((folder / "images.json").read_text())
    votes = json.loads((folder / "review.json").read_text())
    rehearse = read_record(folder)["rehearse"]
    models, curve = (_rows(folder / "selection" / f"{name}.csv") for name in ("models", "surrogates"))
    scores = {
        row["model"]: row for row in _rows(folder / "evaluation" / "scores.csv") if row["kind"] == "all"
    }
    training = images["generator"]["training"]
    kept = sum(int(row["kept"]) for row in _rows(folder / "selection" / "selection.csv"))
    lines = [
        "# Mined digits",
        "",
        *(["**A rehearsal: the numbers mean nothing.**", ""] if rehearse else []),
        "The whole loop of mining on a diffusion model that was trained from scratch: MNIST's digits with "
        "the ten built-in nuisances, drawn by a program. `beaufort reproduce mined-digits` makes all of it.",
        "",
        "![Samples: a column for each digit, a row for each nuisance](samples.png)",
        "",
        f"- Generator: a UNet of diffusers, {training['channels']} channels, {training['steps']:,} steps of "
        f"{training['batch']} images; {images['generator']['steps']} steps of DDIM, guidance "
        f"{images['generator']['guidance']:g}. {images['images']:,} images, of which the three networks "
        f"of the review recognize {100 * images['recognized']:.1f} %.",
        "- Classifiers: eight small networks, trained on digits in plain colors; they never saw a nuisance.",
        f"- Mining: {kept:,} images on which all four surrogates fail.",
        f"- Review: three networks that did see the nuisances voted **in the place of people**: "
        f"{votes['accepted']} accepted, {votes['rejected']} rejected, {votes['tied']} tied, {votes['open']} "
        "open. They take out what does not show its digit, as far as networks can tell.",
        *failed_markdown(_runs(folder)),
        "",
        "## Accuracy in percent, with 95 % intervals",
        "",
        "| model | | all images | kept by the surrogates | kept and accepted |",
        "|---|---|---:|---:|---:|",
    ]
    for row in models:
        mark = "surrogate" if row["role"] == "surrogate" else ""
        cells = (
            _percent(row, "unfiltered"),
            _percent(row, "kept"),
            _percent(scores[row["model"]], "accuracy"),
        )
        lines.append(f"| {row['model']} | {mark} | {' | '.join(cells)} |")
    lines += [
        "",
        "Surrogates chose the images: what they have on them is no measure.",
        "",
        "## How many surrogates",
        "",
        "Accuracy of the held-out models on what so many surrogates all fail on, over every choice of "
        "surrogates among the eight, before the review; and what one more surrogate takes away.",
        "",
        "| surrogates | images kept, % | accuracy of the others, % | step, points |",
        "|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['surrogates']} | {100 * float(row['share_kept']):.1f} | {_percent(row, 'accuracy')} | "
        f"{_percent(row, 'step')} |"
        for row in curve
    ]
    lines += [
        "",
        "[The selection](selection/index.html), [the evaluation](evaluation/index.html), "
        "[the datasheet](set/DATASHEET.md).",
        "",
    ]
    return "\n".join(lines)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _percent(row: Mapping[str, str], name: str) -> str:
    if not row[name]:
        return ""
    value, low, high = (100 * float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _samples(folder: Path) -> bytes:
    """A sheet of samples: a column for each digit, a row for each nuisance, four times enlarged."""
    nuisances = [name for names in BUILT_IN.values() for name in names]
    first: dict[tuple[str, str], Path] = {}
    for one in read_generated(folder / "images"):
        first.setdefault((one.item.nuisance, one.item.category), one.path)
    sheet = Image.new("RGB", (10 * 33, len(nuisances) * 33), (255, 255, 255))
    for (nuisance, category), path in first.items():
        with Image.open(path) as opened:
            sheet.paste(opened.convert("RGB"), (int(category) * 33, nuisances.index(nuisance) * 33))
    sheet = sheet.resize((sheet.width * 3, sheet.height * 3), Image.Resampling.NEAREST)
    file = io.BytesIO()
    sheet.save(file, "png", optimize=True)
    return file.getvalue()
