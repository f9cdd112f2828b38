"""Images to review, simulated reviewers, and a browser client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beaufort.mining.review import Review, invite

ROLES = ["control-valid", "control-invalid"] * 4 + ["example-valid", "example-invalid"]


def make_images(folder: Path, count: int = 6, *, roles: list[str] | None = None) -> Path:
    """Write images of one color and their list; the category is the right answer."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lines = ["file,category,role"]
    for number, role in enumerate([""] * count + (ROLES if roles is None else roles)):
        pixels = np.full((24, 32, 3), rng.integers(0, 256, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03}.png")
        right = "bad" if role.endswith("invalid") else "good"
        lines.append(f"{number:03}.png,{right} chair {number},{role}")
    (folder / "list.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "list.csv"


class People:
    """A review and the tokens of those who take part."""

    def __init__(self, review: Review, admin: str) -> None:
        self.review = review
        self.tokens = {"admin": admin}

    def add(self, *names: str) -> None:
        self.tokens |= {name: invite(self.review, name) for name in names}

    def id_of(self, name: str) -> int:
        row = self.review.connection.execute("SELECT id FROM reviewers WHERE name = ?", (name,)).fetchone()
        return int(row["id"])


class Visitor:
    """A browser without a screen."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def enter(self, token: str) -> Any:
        self.client.cookies.clear()
        return self.client.get(f"/r/{token}")

    def form(self, text: str) -> dict[str, str]:
        return dict(re.findall(r'name="(form|showing)" value="([^"]*)"', text))

    def begin(self, token: str) -> Any:
        return self.client.post("/begin", data=self.form(self.enter(token).text))

    def vote(self, text: str, answers: str = "yyy", **fields: str) -> Any:
        output = dict(
            zip(
                ("recognizable", "usable", "single"),
                ({"y": "yes", "n": "no"}[c] for c in answers),
                strict=False,
            )
        )
        return self.client.post("/vote", data={**self.form(text), **output, **fields})
