"""The files of the study: a page, and an image of samples."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from PIL import Image

from beaufort.mining import BUILT_IN, read_generated
from beaufort.studies.engine import definition, read_record
from beaufort.studies.failed_runs import CheckedRuns, check_runs
from beaufort.studies.mined_digits.digit_classifiers import CLASSIFIERS, JUDGES
from beaufort.studies.study_page import PageSection, StudyPage

Row = Mapping[str, str]


def study_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the page and the image of samples, once the evaluation exists."""
    if (folder / "evaluation" / "index.html").is_file():
        yield "README.md", _page(folder).markdown().encode()
        yield "samples.png", _samples(folder)


def _check(folder: Path) -> CheckedRuns:
    """Check the losses of the classifiers; older studies have none."""
    every = []
    for name in (*CLASSIFIERS, *JUDGES):
        path = folder / "models" / f"{name}.json"
        inside = "the votes of the review" if name in JUDGES else "its row; the selection, for a surrogate"
        every.append((name, inside, json.loads(path.read_text()) if path.is_file() else {}))
    return check_runs(every)


def _page(folder: Path) -> StudyPage:
    images, votes = (json.loads((folder / f"{name}.json").read_text()) for name in ("images", "review"))
    models, curve = (_rows(folder / "selection" / f"{name}.csv") for name in ("models", "surrogates"))
    every = _rows(folder / "evaluation" / "scores.csv")
    scores = {row["model"]: row for row in every if row["kind"] == "all"}
    values = {
        **votes,
        **images,
        "training": images["generator"]["training"],
        "recognized": 100 * images["recognized"],
        "kept": sum(int(row["kept"]) for row in _rows(folder / "selection" / "selection.csv")),
    }
    texts = definition("mined-digits")
    accuracy = [
        (
            *(row["model"], "surrogate" if row["role"] == "surrogate" else ""),
            *(_interval(row, "unfiltered"), _interval(row, "kept")),
            _interval(scores[row["model"]], "accuracy"),
        )
        for row in models
    ]
    steps = [
        (
            *(row["surrogates"], f"{100 * float(row.get('fraction_kept') or row['share_kept']):.1f}"),
            *(_interval(row, "accuracy"), _interval(row, "step")),
        )
        for row in curve
    ]
    return StudyPage(
        title=texts["title"],
        facts={name: text.format(**values) for name, text in texts["facts"].items()},
        rule=texts["about"],
        sections=[
            PageSection(
                id="samples",
                title="Samples",
                figures={"samples.png": "Samples: a column for each digit, a row for each nuisance"},
            ),
            PageSection(
                id="accuracy",
                title="Accuracy in percent, with 95 % intervals",
                head=("model", "", "all images", "selected by the surrogates", "selected and accepted"),
                rows=accuracy,
                remark=texts["models"],
            ),
            PageSection(
                id="surrogates",
                title="Number of surrogates",
                text=texts["surrogates"],
                head=("surrogates", "images selected, %", "accuracy of the others, %", "step, points"),
                rows=steps,
                remark=texts["links"],
            ),
        ],
        runs=_check(folder),
        rehearse=read_record(folder)["rehearse"],
    )


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _interval(row: Row, name: str) -> str:
    if not row[name]:
        return ""
    value, low, high = (100 * float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _samples(folder: Path) -> bytes:
    """Draw a column for each digit and a row for each nuisance, enlarged three times."""
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
