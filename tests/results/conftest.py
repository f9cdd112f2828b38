"""Stores with answers that nobody had to be asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from beaufort.store import Cell, FileStore, predictions
from beaufort.suites import Suite, get_suite

CLASSES = 10

Fill = Callable[..., FileStore]


def fill_store(
    path: Path,
    models: dict[str, float],
    *,
    suite: str | Suite = "mnist-c",
    images: int = 300,
    seed: int = 0,
    data: str = "digits",
    record: bool = True,
    skip: int = 0,
    alike: float = 1.0,
    luck: int = 0,
) -> FileStore:
    """Models by the share of digits they get right; every digit is as hard for all of them.

    Clean digits are easier than corrupted ones. `skip` leaves the last conditions of the last model out;
    another `luck` gives other answers.
    """
    asked = get_suite(suite) if isinstance(suite, str) else suite
    store = FileStore(path)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, images)
    hardness = rng.random(images)
    rng = np.random.default_rng([2, luck])
    ids = [f"digit/{i}" for i in range(images)]
    facts = {"name": data, "digest": f"digest of {data} {images}"}
    prepare = [*([] if asked.scale == "mnist" else ["rgb"]), *map(str, asked.prepare)]
    for number, (name, skill) in enumerate(models.items()):
        model = {"name": name, "digest": f"sha256:{name}", "preprocessing": {}}
        conditions = asked.conditions(data)
        if skip and number == len(models) - 1:
            conditions = conditions[:-skip]
        for condition in conditions:
            easier = 0.5 if condition.clean else 1.0
            chance = skill if alike == 0 else np.clip(skill + alike * (0.5 - hardness) * easier, 0, 1)
            right = rng.random(images) < (chance if not condition.clean else np.sqrt(chance))
            answer = np.where(right, labels, (labels + 1) % CLASSES)
            logits = rng.normal(0, 1, (images, CLASSES)).astype(np.float32)
            logits[np.arange(images), answer] = 4
            about = {**condition.facts(scale=asked.scale, seed=seed), "prepare": prepare}
            store.write(Cell(model, facts, about), 0, predictions(ids, labels, logits), {"command": ["made"]})
    if record:
        about = {"suite": asked.as_dict(), "data": facts, "seed": seed, "models": sorted(models)}
        store.write_run(about, {"images": images, "classes": list("0123456789"), "time": "2026"})
    return store


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Fill the store of a name in a folder of the test's own."""
    return lambda name, models, **options: fill_store(tmp_path / name, models, **options)
