"""The whole study of mined digits, as a rehearsal."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from beaufort.data import load_dataset
from beaufort.mining import MiningError
from beaufort.studies import StudySettings
from beaufort.studies import mined_digits as mining_steps
from beaufort.studies.digit_classifiers import CLASSIFIERS, PAIRS, paint
from beaufort.studies.mined_digits import SURROGATES
from tests.studies.rehearsal import Rehearsal

pytestmark = [
    pytest.mark.xdist_group("mined-digits"),
    pytest.mark.skipif(find_spec("diffusers") is None, reason="diffusers is not installed"),
]


def test_every_digit_meets_every_nuisance() -> None:
    digits = np.full((400, 28, 28), 255, np.uint8)
    labels = np.arange(400) % 10
    images, places = paint(digits, labels)
    assert images.shape == (400, 32, 32, 3)
    assert {PAIRS[place].category for place in places} == set("0123456789")
    assert all(PAIRS[place].category == str(label) for place, label in zip(places, labels, strict=True))
    assert len({PAIRS[place].nuisance for place in places}) == 10
    again, _ = paint(digits, labels)
    assert (images == again).all()
    assert (images != paint(digits, labels, seed=1)[0]).any()


def test_images_that_show_no_digits_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that was stopped early produces noise, on which every classifier fails."""

    class Unfinished:
        facts: ClassVar = {"training": {"steps": 1300}}

    monkeypatch.setattr(mining_steps, "ConditionalGenerator", lambda *_, **__: Unfinished())
    monkeypatch.setattr(mining_steps, "generate", lambda *_: None)
    monkeypatch.setattr(mining_steps, "_recognized", lambda _: 0.12)
    with pytest.raises(MiningError, match=r"12% .* 1,300 of 12,000 steps"):
        mining_steps.make_images(tmp_path, None, settings=StudySettings(study="mined-digits"))
    assert not (tmp_path / "images.json").exists()
    monkeypatch.setattr(mining_steps, "_recognized", lambda _: 0.9)
    mining_steps.make_images(tmp_path, None, settings=StudySettings(study="mined-digits"))
    assert json.loads((tmp_path / "images.json").read_text())["recognized"] == 0.9


def test_the_whole_loop(mined_digits: Rehearsal) -> None:
    out = mined_digits.folder
    (run,) = json.loads((out / "study.json").read_text())["runs"]
    assert run["tasks"] == 1 + len(CLASSIFIERS) + 3 + 5
    readme = (out / "README.md").read_text()
    assert all(f"| {name} | {'surrogate' if name in SURROGATES else ''} |" in readme for name in CLASSIFIERS)
    assert "in place of people" in readme
    assert len(load_dataset(out / "set")) > 0
    assert (out / "samples.png").is_file()
