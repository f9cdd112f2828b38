"""Three categories that have a color, models that go by colors, and people who look at the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort.mining import CompositeGenerator, generate, make_plan
from beaufort.mining.review import Review, invite
from beaufort.mining.review.cards import next_card
from beaufort.mining.review.votes import cast_vote
from beaufort.models import Model, as_model

CATEGORIES = ("cup", "kite", "leaf")
COLORS = {"cup": (230, 30, 30), "kite": (30, 30, 230), "leaf": (30, 200, 30)}


def make_cutouts(folder: Path) -> Path:
    """A disk, a square and a bar, each in its color, on a transparent ground."""
    y, x = np.mgrid[:40, :40]
    shapes = {
        "cup": (y - 20) ** 2 + (x - 20) ** 2 < 250,
        "kite": (abs(y - 20) < 14) & (abs(x - 20) < 14),
        "leaf": abs(y - 20) < 9,
    }
    for category, shape in shapes.items():
        (folder / category).mkdir(parents=True)
        rgba = np.zeros((40, 40, 4), np.uint8)
        rgba[..., :3] = COLORS[category]
        rgba[..., 3] = shape * 255
        Image.fromarray(rgba).save(folder / category / "1.png")
    return folder


def make_images(folder: Path, *, each: int = 2) -> Path:
    """60 images for each two of the built-in nuisances' pairs; gives the folder."""
    plan = make_plan(CATEGORIES, each=each)
    generate(plan, CompositeGenerator(make_cutouts(folder / "cutouts"), size=32), folder / "images")
    return folder / "images"


def class_fractions(images: NDArray[np.uint8], margin: int, corner: int) -> NDArray[np.float32]:
    """Return the amounts of red, blue and green in each image, in levels, without a border."""
    inner = images[:, corner : 32 - corner, corner : 32 - corner].astype(np.int64)
    found = []
    for channel in (0, 2, 1):
        others = np.delete(inner, channel, axis=3).max(axis=3)
        found.append((inner[..., channel] - others > margin).mean(axis=(1, 2)))
    guess = np.array([0.003, 0.002, 0.001])  # where there is no color at all
    return np.asarray(np.stack(found, axis=1) + guess, np.float32)


def color_model(name: str, margin: int, corner: int) -> Model:
    return as_model(
        lambda images: class_fractions(images, margin, corner),
        name=name,
        classes=list(CATEGORIES),
        version=f"{margin} {corner}",
    )


def bold() -> Model:
    return color_model("bold", 120, 0)


def middle() -> Model:
    return color_model("middle", 60, 6)


def faint() -> Model:
    return color_model("faint", 20, 0)


def close() -> Model:
    return color_model("close", 90, 10)


def vague() -> Model:
    return color_model("vague", 5, 3)


def always(place: int) -> Model:
    """Predict a constant; no image is wrong for all three of these models."""
    output = np.eye(3, dtype=np.float32)[place]
    return as_model(
        lambda images: np.tile(output, (len(images), 1)),
        name=CATEGORIES[place],
        classes=list(CATEGORIES),
        version=f"always {place}",
    )


def cups() -> Model:
    return always(0)


def kites() -> Model:
    return always(1)


def leaves() -> Model:
    return always(2)


def wide() -> Model:
    """Six outputs: each category is two of them, in another order."""

    def predict(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        cup, kite, leaf = class_fractions(images, 60, 6).T
        return np.stack([leaf, kite, cup, cup * 0.9, kite * 0.9, np.full_like(cup, 0.0005)], axis=1)

    return as_model(predict, name="wide", classes=6, version="wide")


WIDE_LABELS = {"cup": (2, 3), "kite": (1, 4), "leaf": (0,)}


def judge(review: Review, names: tuple[str, ...], reject: str) -> None:
    """People answer every card: no to a category, to controls as they are known, yes to all else."""
    for name in names:
        invite(review, name)
    for name in names:
        row = review.connection.execute("SELECT id FROM reviewers WHERE name = ?", (name,)).fetchone()
        while (card := next_card(review, int(row["id"]))) is not None:
            shown = review.connection.execute(
                "SELECT i.category, i.role FROM showings s JOIN images i ON i.id = s.image WHERE s.id = ?",
                (card.showing,),
            ).fetchone()
            good = shown["role"] != "control-invalid" and shown["category"] != reject
            cast_vote(
                review,
                int(row["id"]),
                card.showing,
                dict.fromkeys(("recognizable", "usable", "single"), good),
            )
