"""The tasks: train a generator and classifiers, make images, mine, review, export, evaluate."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import write_bytes
from beaufort.data import load_dataset
from beaufort.mining import (
    ConditionalGenerator,
    MiningError,
    UNetRecipe,
    generate,
    make_plan,
    train_conditional,
)
from beaufort.studies.failed import task_result
from beaufort.studies.mined_digits.nets import JUDGES, NETS, load_net, train_net
from beaufort.studies.mined_digits.painting import PAIRS, paint, placed
from beaufort.studies.tasks import Task
from beaufort.training.ending import label_entropy

_HERE = "beaufort.studies.mined_digits.work"
PARTS = ("train", "images", "mine")
"""What can be asked for alone: trainings and images, which want a GPU, and the rest, which does not."""

_BLOCK = 256
"""Images that a judge sees at once."""

_LEGIBLE = 0.5
"""Share of the images that the judges must recognize, or the generator has not learned digits."""

SURROGATES = ("perceptron", "lenet", "vgg", "patches")
"""Four of the eight, as in ImageNet-D; the others show whether their failures carry over."""


@dataclass(frozen=True, kw_only=True)
class DigitSettings:
    """How much is done; plain values, so that another process can be told."""

    train: str = "mnist-train"
    device: str = "cpu"
    rehearse: bool = False
    seconds: float = 800.0
    """The longest that the generator is trained, if its steps take so long."""

    @property
    def limit(self) -> int | None:
        return 60 if self.rehearse else None

    @property
    def each(self) -> int:
        """Images for each pair of digit and nuisance."""
        return 1 if self.rehearse else 24

    @property
    def net_training(self) -> dict[str, int]:
        return {"steps": 3, "batch": 8} if self.rehearse else {"steps": 3000, "batch": 256}

    @property
    def recipe(self) -> UNetRecipe:
        return UNetRecipe(channels=(8, 16), layers=1, steps=3, batch=8) if self.rehearse else UNetRecipe()

    @property
    def sampling(self) -> dict[str, Any]:
        return {"steps": 2, "batch": 50, "guidance": 1.0} if self.rehearse else {"steps": 50, "batch": 600}


def plan(settings: DigitSettings, only: tuple[str, ...] = ()) -> list[list[Task]]:
    """What there is to do, in phases."""
    parts = set(only or PARTS)
    common: dict[str, Any] = {"settings": asdict(settings)}
    phases = []
    if "train" in parts:
        trainings = [Task("generator", "generator/conditions.json", f"{_HERE}:make_generator", common)]
        trainings += [
            Task(name, f"models/{name}.safetensors", f"{_HERE}:make_net", {**common, "name": name})
            for name in (*NETS, *JUDGES)
        ]
        phases.append(trainings)
    if "images" in parts:
        phases.append([Task("images", "images.json", f"{_HERE}:make_images", common)])
    if "mine" in parts:
        phases += [
            [Task("selection", "selection/index.html", f"{_HERE}:make_selection", common)],
            [Task("review", "review.json", f"{_HERE}:make_review", common)],
            [Task("set", "set/manifest.sha256", f"{_HERE}:make_set", common)],
            [Task("evaluation", "evaluation/index.html", f"{_HERE}:make_evaluation", common)],
        ]
    return phases


def make_generator(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """Train the diffusion model on painted digits."""
    chosen = DigitSettings(**settings)
    digits, labels = _digits(chosen)
    images, places = paint(digits, labels)
    seconds = chosen.seconds if deadline is None else min(chosen.seconds, deadline - time.monotonic())
    lines: list[dict[str, float]] = []
    train_conditional(
        images,
        places,
        PAIRS,
        folder / "generator",
        recipe=chosen.recipe,
        device=chosen.device,
        seconds=seconds,
        progress=lambda step, _, loss: lines.append({"step": step, "loss": loss}),
    )
    write_bytes(folder / "generator" / "losses.json", json.dumps(lines).encode())
    return True


def make_net(folder: Path, deadline: float | None, *, settings: Mapping[str, Any], name: str) -> bool | str:
    """Train a classifier on digits in plain colors; a judge on painted ones too."""
    chosen = DigitSettings(**settings)
    digits, labels = _digits(chosen)
    number = (*NETS, *JUDGES).index(name)
    masks = (placed(digits, np.random.default_rng(number)) * 255).round().astype(np.uint8)
    loss = train_net(
        name,
        masks,
        labels,
        folder / "models" / f"{name}.safetensors",
        painted=paint(digits, labels, seed=number)[0] if name in JUDGES else None,
        device=chosen.device,
        seed=number,
        **chosen.net_training,
    )
    facts = {
        "seed": number,
        "losses": [loss if math.isfinite(loss) else None],
        "constant_loss": label_entropy(np.bincount(labels).tolist()),
    }
    write_bytes(folder / "models" / f"{name}.json", (json.dumps(facts) + "\n").encode())
    return task_result(facts)


def make_images(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """Sample the generator: every digit with every nuisance."""
    chosen = DigitSettings(**settings)
    generator = ConditionalGenerator(folder / "generator", device=chosen.device, **chosen.sampling)
    items = make_plan(list(map(str, range(10))), each=chosen.each)
    generate(items, generator, folder / "images")
    recognized = _recognized(folder)
    if recognized < _LEGIBLE and not chosen.rehearse:
        steps = generator.facts["training"]["steps"]
        raise MiningError(
            f"judges must recognize at least {_LEGIBLE:.0%} of the generated images, got {recognized:.0%}: "
            f"the generator had {steps:,} of {chosen.recipe.steps:,} steps; remove {folder / 'generator'} "
            f"and {folder / 'images'} and train it for longer"
        )
    about = {"images": len(items), "recognized": recognized, "generator": dict(generator.facts)}
    write_bytes(folder / "images.json", (json.dumps(about, indent=1) + "\n").encode())
    return True


def make_selection(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """What four of the eight classifiers all get wrong."""
    from beaufort.mining import ask_models, open_generated, select, write_review_list, write_selection_report

    data, images = open_generated(folder / "images")
    others = [name for name in NETS if name not in SURROGATES]
    models = [_net(folder, name) for name in (*SURROGATES, *others)]
    selection = select(ask_models(models, data, folder / "store"), images, SURROGATES)
    easy = ~selection.verdicts.failed[: len(SURROGATES)].any(axis=0)
    controls = min(20, int(easy.sum()) // 2)
    write_review_list(selection, folder / "images" / "kept.csv", controls=controls)
    write_selection_report(selection, folder / "selection")
    return True


def make_review(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """Three networks that know the nuisances vote in the place of people; yes to all in a rehearsal."""
    from beaufort.mining.review import ReviewRules, create_review, open_review, standing

    rehearse = DigitSettings(**settings).rehearse
    rules = ReviewRules(votes=3, min_right=0.0) if rehearse else ReviewRules(votes=3)
    path = folder / "digits.review"
    for leftover in folder.glob("digits.review*"):
        leftover.unlink()
    create_review(path, folder / "images" / "kept.csv", rules=rules, title="Mined digits")
    review = open_review(path)
    for name in JUDGES:
        _vote(review, name, _net(folder, name), always=rehearse)
    found = standing(review)
    counts = {name: found.count(name) for name in ("accepted", "rejected", "tied", "open")}
    review.close()
    write_bytes(folder / "review.json", (json.dumps(counts) + "\n").encode())
    return True


def make_set(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """Export what was kept and accepted."""
    from beaufort.mining import export_set
    from beaufort.mining.review import open_review

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


def make_evaluation(folder: Path, deadline: float | None, *, settings: Mapping[str, Any]) -> bool:
    """All eight classifiers on the set; surrogates are marked."""
    from beaufort.mining import ask_models, open_set, write_evaluation_report

    mined = open_set(str(folder / "set"))
    verdicts = ask_models([_net(folder, name) for name in NETS], mined.data, folder / "store")
    write_evaluation_report(mined, verdicts, folder / "evaluation")
    return True


def _digits(settings: DigitSettings) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = load_dataset(settings.train, limit=settings.limit)
    pixels = np.stack([data[place].image[..., 0] for place in range(len(data))])
    return pixels, data.labels


def _net(folder: Path, name: str) -> Any:
    return load_net(name, folder / "models" / f"{name}.safetensors")


def _shares(model: Any, images: Sequence[bytes]) -> NDArray[np.float64]:
    """The probabilities that a network gives the digits, `(images, 10)`."""
    from scipy.special import softmax

    from beaufort.data.images import decode_image

    pixels = [np.asarray(decode_image(content).convert("RGB")) for content in images]
    blocks = [np.stack(pixels[start : start + _BLOCK]) for start in range(0, len(pixels), _BLOCK)]
    shares: NDArray[np.float64] = softmax(
        np.concatenate([model(block) for block in blocks]).astype(np.float64), axis=1
    )
    return shares


def _recognized(folder: Path) -> float:
    """The share of the generated images whose digit the judges name, over all judges."""
    from beaufort.mining import read_generated

    made = read_generated(folder / "images")
    wanted = np.array([int(one.item.category) for one in made])
    images = [one.path.read_bytes() for one in made]
    return float(np.mean([_shares(_net(folder, name), images).argmax(axis=1) == wanted for name in JUDGES]))


def _vote(review: Any, name: str, model: Any, *, always: bool) -> None:
    """Yes if the network names the category that is asked about; usable if it is sure of it."""
    from beaufort.mining.review import invite
    from beaufort.mining.review.ballots import cast
    from beaufort.mining.review.cards import card_picture, next_card, picture

    invite(review, name)
    row = review.connection.execute("SELECT id FROM reviewers WHERE name = ?", (name,)).fetchone()
    listed = review.connection.execute("SELECT id FROM images").fetchall()
    images = [picture(review, one["id"])[0] for one in listed]
    opinions = dict(zip(images, _shares(model, images), strict=True))  # all at once, or it takes minutes
    while (card := next_card(review, int(row["id"]))) is not None:
        content, _ = card_picture(review, int(row["id"]), card.showing)
        shares = opinions[content]
        seen = always or str(int(shares.argmax())) == card.category
        answers = {"recognizable": seen, "usable": seen and (always or shares.max() > 0.5), "single": True}
        cast(review, int(row["id"]), card.showing, {key: bool(value) for key, value in answers.items()})
