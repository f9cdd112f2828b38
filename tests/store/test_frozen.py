"""A store written by version 0.1.0 is read by today's code, and nothing in it would be computed again.

`frozen/v0.1.0` was made by `python tests/store/test_frozen.py FOLDER` and is never made anew: a later format
gets a folder of its own beside it. `frozen/fingerprints.json` pins what identifies a cell: the fingerprint of
every published corruption, scale and severity, and those of the cells in the store.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from beaufort.corruptions import corruptions
from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import RunOptions, plan
from beaufort.models import Model, as_model, load_model
from beaufort.results import evaluate
from beaufort.store import Cell, FileStore
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import digit, example_image

FROZEN = Path(__file__).parent / "frozen"
PINNED = FROZEN / "fingerprints.json"
STORES = sorted(path for path in FROZEN.iterdir() if path.is_dir()) if FROZEN.is_dir() else []


Run = tuple[Model, Dataset, str | list[Condition]]


def digits() -> Run:
    """The bundled classifier on eight drawn digits under the suite `mnist-c`."""
    images = np.stack([digit(variant=i) for i in range(8)])
    return load_model("demo:digits"), from_arrays("frozen-digits", images, np.arange(8)), "mnist-c"


def photos() -> Run:
    """Predictions of a function for eight generated 32×32 images at scale `auto`, with logits."""
    images = np.stack([example_image(32, 32, variant=i) for i in range(8)])
    conditions = [Condition("frozen-photos")]
    conditions += [Condition("frozen-photos", name, 3) for name in ("gaussian_noise", "defocus_blur", "snow")]
    model = as_model(
        lambda shown: shown.mean(axis=(1, 2), dtype=np.float64).astype(np.float32) / 16,
        name="mean-color",
        version="1",
    )
    return model, from_arrays("frozen-photos", images, np.arange(8) % 3), conditions


def published_fingerprints() -> dict[str, str]:
    """A fingerprint for every corruption, published scale and severity, of made-up model and data."""
    found = {}
    for name, corruption in corruptions.items():
        for scale in corruption.recipes:
            for severity in range(1, 6):
                facts = Condition("data", name, severity).facts(scale=scale, seed=7)
                cell = Cell({"name": "m", "digest": "m"}, {"name": "d", "digest": "d"}, facts)
                found[f"{name}/{scale}/{severity}"] = cell.fingerprint
    return found


def cells_of(made: Run, store: Path) -> list[str]:
    """Fingerprints that today's code computes for the frozen runs; all of them must be in the store."""
    model, data, conditions = made
    requested = plan([model], conditions, data, store)
    assert not requested.images, "the store does not have these cells under today's facts"
    return [work.cell.fingerprint for work in requested.cells]


@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
def test_a_frozen_store_is_sound(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    opened = FileStore(tmp_path / "store")
    assert not opened.verify()
    pinned = json.loads(PINNED.read_text())["cells"][store.name]
    assert sorted(opened.cells()) == sorted(itertools.chain.from_iterable(pinned.values()))
    for cell in opened.cells().values():
        table = opened.read(cell)
        assert table["place"].to_pylist() == list(range(8))
        assert table["label"].null_count == 0


@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
@pytest.mark.parametrize("make", [digits, photos])
def test_nothing_in_it_is_computed_again(store: Path, make: Callable[[], Run], tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    pinned = json.loads(PINNED.read_text())["cells"][store.name]
    assert cells_of(make(), tmp_path / "store") == pinned[make.__name__]


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
@pytest.mark.parametrize("make", [digits, photos])
def test_its_predictions_are_unchanged(store: Path, make: Callable[[], Run], tmp_path: Path) -> None:
    """A new run gives the same predictions, up to rounding differences between processors."""
    model, data, conditions = make()
    evaluate([model], conditions, data, tmp_path / "new")
    old, new = FileStore(store), FileStore(tmp_path / "new")
    for fingerprint, cell in new.cells().items():
        frozen = old.cells()[fingerprint]
        assert new.read(cell, columns=["id"]).equals(old.read(frozen, columns=["id"]))
        for column in ("p_label", "nll", "entropy"):
            ours, theirs = (np.asarray(s.read(c)[column]) for s, c in ((new, cell), (old, frozen)))
            assert np.allclose(ours, theirs, atol=2e-3, rtol=2e-3), (cell.condition_name, column)


def test_published_conditions_keep_their_fingerprints() -> None:
    assert published_fingerprints() == json.loads(PINNED.read_text())["published"]


def test_every_fact_counts() -> None:
    """The pins can fail: facts that differ in a constant, a version or a seed have another fingerprint."""
    facts = Condition("data", "fog", 3).facts(scale="imagenet", seed=7)
    changed = [
        facts | {"seed": 8},
        facts | {"version": 2},
        facts | {"params": facts["params"] | {"amount": 2.500001}},
    ]
    prints = [Cell({"name": "m"}, {"name": "d"}, one).fingerprint for one in (facts, *changed)]
    assert len(set(prints)) == 4


if __name__ == "__main__":
    folder = FROZEN / sys.argv[1]
    made = {}
    for make in (digits, photos):
        model, data, conditions = make()
        evaluate([model], conditions, data, folder, options=RunOptions(keep_logits=make is photos))
        made[make.__name__] = cells_of((model, data, conditions), folder)
    known = json.loads(PINNED.read_text())["cells"] if PINNED.exists() else {}
    pins = {"cells": {**known, folder.name: made}, "published": published_fingerprints()}
    PINNED.write_text(json.dumps(pins, indent=1) + "\n")
