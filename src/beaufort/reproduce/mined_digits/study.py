"""The whole study: tasks first, then a page of figures from what they made."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image

from beaufort.errors import OptionError
from beaufort.files import write_bytes
from beaufort.reproduce.record import RECORD, check_folder, note_run
from beaufort.reproduce.tasks import StudyOutcome, run_tasks

__all__ = ["run_study", "write_readme"]


def run_study(
    folder: Path,
    *,
    only: tuple[str, ...],
    data: Mapping[str, str],
    device: str,
    seeds: int,
    jobs: int,
    stop_after_s: float | None,
    rehearse: bool,
    tell: Callable[[str], None] | None,
) -> StudyOutcome:
    """Do what is missing of the study, then write its figures."""
    from beaufort.models.torch import choose_device
    from beaufort.reproduce.mined_digits.work import PARTS, DigitSettings, plan

    start = time.monotonic()
    for part in only:
        if part not in PARTS:
            raise OptionError(f"only must name parts of mined-digits ({', '.join(PARTS)}), got {part!r}")
    for name in data:
        if name != "mnist":
            raise OptionError(f"data must be given as mnist=FOLDER, got {name!r}")
    train = f"mnist:{data['mnist']}#train" if "mnist" in data else "mnist-train"
    settings = DigitSettings(train=train, device=choose_device(device), rehearse=rehearse)
    check_folder(folder, rehearse=rehearse)
    deadline = None if stop_after_s is None else start + stop_after_s
    outcome = run_tasks(plan(settings, only), folder, jobs=jobs, deadline=deadline, tell=tell)
    if outcome.done:
        told = f"beaufort reproduce mined-digits --device {device}"
        told += f" --only {','.join(only)}" if only else ""
        note_run(
            folder, {"command": told, "seconds": round(time.monotonic() - start, 1), "tasks": outcome.done}
        )
    if (folder / "evaluation" / "index.html").is_file():
        write_readme(folder)
    return outcome


def write_readme(folder: Path) -> None:
    """Write `README.md` and `samples.png` from the tables of a study that is done."""
    images = json.loads((folder / "images.json").read_text())
    votes = json.loads((folder / "review.json").read_text())
    rehearse = json.loads((folder / RECORD).read_text())["rehearse"]
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
        f"{images['generator']['guidance']:g}. {images['images']:,} images.",
        "- Classifiers: eight small networks, trained on digits in plain colors; they never saw a nuisance.",
        f"- Mining: {kept:,} images on which all four surrogates fail.",
        f"- Review: three networks that did see the nuisances voted **in the place of people**: "
        f"{votes['accepted']} accepted, {votes['rejected']} rejected, {votes['tied']} tied, {votes['open']} "
        "open. They take out what does not show its digit, as far as networks can tell.",
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
        "| surrogates | images kept | accuracy of the others | step |",
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
    write_bytes(folder / "README.md", "\n".join(lines).encode())
    _write_samples(folder)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _percent(row: Mapping[str, str], name: str) -> str:
    if not row[name]:
        return ""
    value, low, high = (100 * float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _write_samples(folder: Path) -> None:
    """A sheet of samples: a column for each digit, a row for each nuisance, four times enlarged."""
    from beaufort.mining import BUILT_IN, read_generated

    nuisances = [name for names in BUILT_IN.values() for name in names]
    first: dict[tuple[str, str], Path] = {}
    for one in read_generated(folder / "images"):
        first.setdefault((one.item.nuisance, one.item.category), one.path)
    sheet = Image.new("RGB", (10 * 33, len(nuisances) * 33), (255, 255, 255))
    for (nuisance, category), path in first.items():
        with Image.open(path) as opened:
            sheet.paste(opened.convert("RGB"), (int(category) * 33, nuisances.index(nuisance) * 33))
    sheet = sheet.resize((sheet.width * 3, sheet.height * 3), Image.Resampling.NEAREST)
    sheet.save(folder / "samples.png", optimize=True)
