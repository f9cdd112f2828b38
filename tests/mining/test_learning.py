"""A custom diffusion model: trained, sampled, and used in all steps of mining."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.mining import (
    ConditionalGenerator,
    ConditionPair,
    MiningError,
    UNetRecipe,
    generate,
    make_plan,
    read_generated,
    train_conditional,
)

pytestmark = [
    pytest.mark.xdist_group("unet"),
    pytest.mark.skipif(find_spec("diffusers") is None, reason="diffusers is not installed"),
]

PAIRS = [ConditionPair("cup", "texture", "dotted"), ConditionPair("cup", "texture", "striped")]
TINY = UNetRecipe(channels=(8, 16), layers=1, steps=150, batch=16, rate=5e-3, warmup=5, average=0.9)


def halves(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Dark images for the first pair, bright ones for the second."""
    places = np.arange(count) % 2
    images = np.where(places[:, None, None, None] == 0, 20, 235) * np.ones((1, 8, 8, 3))
    return images.astype(np.uint8), places.astype(np.int64)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unet")
    assert train_conditional(*halves(64), PAIRS, folder, recipe=TINY) == TINY.steps
    return folder


def test_generated_images_depend_on_the_condition(trained: Path, tmp_path: Path) -> None:
    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped"]}, each=4)
    generate(plan, ConditionalGenerator(trained, steps=10, guidance=1.0), tmp_path / "out")
    means: dict[str, list[float]] = {}
    for one in read_generated(tmp_path / "out"):
        means.setdefault(one.item.nuisance, []).append(float(np.asarray(Image.open(one.path)).mean()))
    assert np.mean(means["striped"]) > np.mean(means["dotted"]) + 60


def test_samples_depend_on_the_seed_alone(trained: Path) -> None:
    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped"]}, each=2)
    model = ConditionalGenerator(trained, steps=2)
    together = [np.asarray(image, int) for image in model.make(plan)]
    alone = [np.asarray(model.make([item])[0], int) for item in plan]
    assert max(abs(a - b).max() for a, b in zip(together, alone, strict=True)) <= 1  # last bits of a batch
    assert (together[0] != together[1]).any()
    facts = model.facts
    assert facts["training"]["steps"] == TINY.steps
    assert facts == ConditionalGenerator(trained, steps=2).facts
    assert json.loads(json.dumps(facts))


def test_invalid_plans_and_training_data(trained: Path, tmp_path: Path) -> None:
    model = ConditionalGenerator(trained)
    with pytest.raises(MiningError, match=r"not trained.* cup"):
        model.check(make_plan(["cup"], nuisances={"texture": ["blotchy"]}))
    with pytest.raises(MiningError, match=r"conditions\.json"):
        ConditionalGenerator(tmp_path)
    with pytest.raises(MiningError, match="square with three channels"):
        train_conditional(np.zeros((2, 8, 9, 3), np.uint8), np.zeros(2, np.int64), PAIRS, tmp_path)
    with pytest.raises(MiningError, match="from 0 to 1"):
        train_conditional(np.zeros((2, 8, 8, 3), np.uint8), np.array([0, 2]), PAIRS, tmp_path)
    assert train_conditional(*halves(8), PAIRS, tmp_path / "none", recipe=TINY, seconds=0.0) == 0
