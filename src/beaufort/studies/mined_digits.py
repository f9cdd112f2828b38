"""Mined digits: train a generator and classifiers, make images, mine, review, export, evaluate."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.special import softmax

from beaufort._core.files import write_bytes
from beaufort.data import load_dataset
from beaufort.data.images import decode_image
from beaufort.mining import (
    BUILT_IN,
    ConditionalGenerator,
    MiningError,
    UNetRecipe,
    export_set,
    generate,
    make_plan,
    open_generated,
    open_set,
    predict_set,
    read_generated,
    select,
    train_conditional,
    write_evaluation_report,
    write_review_list,
    write_selection_report,
)
from beaufort.mining.review import (
    ReviewRules,
    card_image,
    cast_vote,
    create_review,
    invite,
    next_card,
    open_review,
    review_image,
    review_status,
)
from beaufort.models.torch import choose_device
from beaufort.studies.digit_classifiers import (
    CLASSIFIERS,
    JUDGES,
    PAIRS,
    load_classifier,
    paint,
    placed,
    train_classifier,
)
from beaufort.studies.engine import read_record
from beaufort.studies.failed_runs import CheckedRuns, check_runs, task_result
from beaufort.studies.study_file import StudySettings, definition
from beaufort.studies.study_page import PageSection, StudyPage
from beaufort.studies.study_tasks import Log, StudyTask
from beaufort.training.ending import label_entropy

PARTS = ("train", "images", "mine")
"""Training and images, which need a GPU, and the rest, which does not."""

SURROGATES = ("perceptron", "lenet", "vgg", "patches")
"""Four of the eight, as in ImageNet-D; the others show whether their failures transfer."""

Row = Mapping[str, str]

_LEGIBLE = 0.5
"""Fraction of images that the judges must recognize; below it, the generator has not learned digits."""


_SECONDS = 800.0
"""Longest training time of the generator."""


def plan(settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
    """Return the tasks in phases."""
    parts, used = set(only or PARTS), replace(settings, device=choose_device(settings.device))

    def task(title: str, file: str, step: str, **options: str) -> StudyTask:
        return StudyTask(title, file, f"{__name__}:{step}", {"settings": used, **options})

    phases = []
    if "train" in parts:
        classifiers = [
            task(name, f"models/{name}.safetensors", "make_classifier", name=name)
            for name in (*CLASSIFIERS, *JUDGES)
        ]
        phases.append([task("generator", "generator/conditions.json", "make_generator"), *classifiers])
    if "images" in parts:
        phases.append([task("images", "images.json", "make_images")])
    if "mine" in parts:
        phases += [
            [task("selection", "selection/index.html", "make_selection")],
            [task("review", "review.json", "make_review")],
            [task("set", "set/manifest.sha256", "make_set")],
            [task("evaluation", "evaluation/index.html", "make_evaluation")],
        ]
    return phases


def make_generator(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Train the diffusion model on painted digits."""
    images, places = paint(*_digits(settings))
    seconds = _SECONDS if deadline is None else min(_SECONDS, deadline - time.monotonic())
    lines: list[dict[str, float]] = []
    train_conditional(
        images,
        places,
        PAIRS,
        folder / "generator",
        recipe=_recipe(settings),
        device=settings.device,
        seconds=seconds,
        progress=lambda step, _, loss: lines.append({"step": step, "loss": loss}),
    )
    write_bytes(folder / "generator" / "losses.json", json.dumps(lines).encode())
    return True


def make_classifier(
    folder: Path, deadline: float | None, *, settings: StudySettings, name: str
) -> bool | str:
    """Train a classifier on digits in plain colors; a judge on painted ones, too."""
    digits, labels = _digits(settings)
    number = (*CLASSIFIERS, *JUDGES).index(name)
    masks = (placed(digits, np.random.default_rng(number)) * 255).round().astype(np.uint8)
    steps, batch = (3, 8) if settings.rehearse else (3000, 256)
    loss = train_classifier(
        name,
        masks,
        labels,
        folder / "models" / f"{name}.safetensors",
        painted=paint(digits, labels, seed=number)[0] if name in JUDGES else None,
        steps=steps,
        batch=batch,
        device=settings.device,
        seed=number,
    )
    facts = {
        "seed": number,
        "losses": [loss if math.isfinite(loss) else None],
        "constant_loss": label_entropy(np.bincount(labels).tolist()),
    }
    write_bytes(folder / "models" / f"{name}.json", (json.dumps(facts) + "\n").encode())
    return task_result(facts)


def make_images(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Generate images of every digit with every nuisance."""
    each = 1 if settings.rehearse else 24
    sampling: dict[str, Any] = (
        {"steps": 2, "batch": 50, "guidance": 1.0} if settings.rehearse else {"steps": 50, "batch": 600}
    )
    generator = ConditionalGenerator(folder / "generator", device=settings.device, **sampling)
    items = make_plan(list(map(str, range(10))), each=each)
    generate(items, generator, folder / "images")
    recognized = _recognized(folder)
    if recognized < _LEGIBLE and not settings.rehearse:
        steps = generator.facts["training"]["steps"]
        raise MiningError(
            f"the judges recognize only {recognized:.0%} of the generated images: the generator was trained "
            f"for {steps:,} of {_recipe(settings).steps:,} steps; delete {folder / 'generator'} and "
            f"{folder / 'images'} and train it for longer"
        )
    about = {"images": len(items), "recognized": recognized, "generator": dict(generator.facts)}
    write_bytes(folder / "images.json", (json.dumps(about, indent=1) + "\n").encode())
    return True


def make_selection(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Select the images that all four surrogates misclassify."""
    data, images = open_generated(folder / "images")
    others = [name for name in CLASSIFIERS if name not in SURROGATES]
    models = [_classifier(folder, name) for name in (*SURROGATES, *others)]
    selection = select(predict_set(models, data, folder / "store"), images, SURROGATES)
    easy = ~selection.predictions.failed[: len(SURROGATES)].any(axis=0)
    controls = min(20, int(easy.sum()) // 2)
    write_review_list(selection, folder / "images" / "kept.csv", controls=controls)
    write_selection_report(selection, folder / "selection")
    return True


def make_review(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Let the judges vote in place of people; in a rehearsal they accept everything."""
    rehearse = settings.rehearse
    rules = ReviewRules(votes=3, min_right=0.0) if rehearse else ReviewRules(votes=3)
    path = folder / "digits.review"
    for leftover in folder.glob("digits.review*"):
        leftover.unlink()
    create_review(path, folder / "images" / "kept.csv", rules=rules, title="Mined digits")
    review = open_review(path)
    for name in JUDGES:
        _vote(review, name, _classifier(folder, name), always=rehearse)
    status = review_status(review)
    counts = {name: status.count(name) for name in ("accepted", "rejected", "tied", "open")}
    review.close()
    write_bytes(folder / "review.json", (json.dumps(counts) + "\n").encode())
    return True


def make_set(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Export the selected and accepted images."""
    export_set(
        folder / "set",
        folder / "images",
        folder / "selection" / "selection.csv",
        review=open_review(folder / "digits.review"),
        title="Mined digits",
        license_text="CC BY-SA 3.0, as MNIST, whose digits a diffusion model redrew on painted textures",
        reviewed_by="networks that know the nuisances, in the place of people",
        decided_only=True,
    )
    return True


def make_evaluation(folder: Path, deadline: float | None, *, settings: StudySettings) -> bool:
    """Evaluate all eight classifiers on the set."""
    mined = open_set(str(folder / "set"))
    models = [_classifier(folder, name) for name in CLASSIFIERS]
    write_evaluation_report(mined, predict_set(models, mined.data, folder / "store"), folder / "evaluation")
    return True


def _recipe(settings: StudySettings) -> UNetRecipe:
    return UNetRecipe(channels=(8, 16), layers=1, steps=3, batch=8) if settings.rehearse else UNetRecipe()


def _digits(settings: StudySettings) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = load_dataset(settings.dataset("train"), limit=settings.rehearsal.get("train"))
    return np.stack([data[index].image[..., 0] for index in range(len(data))]), data.labels


def _classifier(folder: Path, name: str) -> Any:
    return load_classifier(name, folder / "models" / f"{name}.safetensors")


def _probabilities(model: Any, images: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the probabilities of the digits, `(images, 10)`, in batches of 256."""
    pixels = [np.asarray(decode_image(content).convert("RGB")) for content in images]
    batches = [np.stack(pixels[start : start + 256]) for start in range(0, len(pixels), 256)]
    logits = np.concatenate([model(batch) for batch in batches]).astype(np.float64)
    probabilities: NDArray[np.float64] = softmax(logits, axis=1)
    return probabilities


def _recognized(folder: Path) -> float:
    """Return the fraction of generated images whose digit the judges predict, over all judges."""
    generated = read_generated(folder / "images")
    labels = np.array([int(one.item.category) for one in generated])
    images = [one.path.read_bytes() for one in generated]
    predicted = [_probabilities(_classifier(folder, name), images).argmax(axis=1) for name in JUDGES]
    return float(np.mean(np.array(predicted) == labels))


def _vote(review: Any, name: str, model: Any, *, always: bool) -> None:
    """Vote yes if the network predicts the category in question, and usable if it is confident."""
    invite(review, name)
    row = review.connection.execute("SELECT id FROM reviewers WHERE name = ?", (name,)).fetchone()
    listed = review.connection.execute("SELECT id FROM images").fetchall()
    images = [review_image(review, one["id"])[0] for one in listed]
    predictions = dict(zip(images, _probabilities(model, images), strict=True))  # in batches, to save minutes
    while (card := next_card(review, int(row["id"]))) is not None:
        content, _ = card_image(review, int(row["id"]), card.showing)
        probabilities = predictions[content]
        recognizable = always or str(int(probabilities.argmax())) == card.category
        usable = recognizable and (always or bool(probabilities.max() > 0.5))
        votes = {"recognizable": recognizable, "usable": usable, "single": True}
        cast_vote(review, int(row["id"]), card.showing, votes)


def study_files(folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
    """Yield the page and the image of samples, once the evaluation exists."""
    if (folder / "evaluation" / "index.html").is_file():
        yield "README.md", _page(folder).markdown().encode()
        if (folder / "images").is_dir():  # not committed
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
    rows: dict[str, list[tuple[str, ...]]] = {}
    rows["accuracy"] = [
        (
            *(row["model"], "surrogate" if row["role"] == "surrogate" else ""),
            *(_interval(row, "unfiltered"), _interval(row, "kept")),
            _interval(scores[row["model"]], "accuracy"),
        )
        for row in models
    ]
    rows["surrogates"] = [
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
        sections=[PageSection(**one, rows=rows.get(one["id"], ())) for one in texts["sections"]],
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
