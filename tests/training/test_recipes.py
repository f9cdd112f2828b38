"""Recipes are plain values: they round-trip, and what is wrong with one is said."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.training import Recipe, get_recipe, recipe_names
from beaufort.training.architectures import build
from beaufort.training.interventions import make_intervention
from beaufort.training.optimize import rate_at


@pytest.mark.parametrize("name", recipe_names())
def test_bundled_recipes_are_whole(name: str) -> None:
    recipe = get_recipe(name)
    assert Recipe.from_dict(json.loads(json.dumps(recipe.as_dict()))) == recipe
    assert recipe.about
    make_intervention(recipe.intervention, recipe.intervention_options, seed=0, device="cpu")
    assert (
        sum(one.numel() for one in build(recipe.architecture, recipe.architecture_options).parameters()) > 1e4
    )


def test_settings() -> None:
    recipe = get_recipe("conv2-pgd").changed(["epochs=2", "intervention_options.epsilon=0.1", "name=mine"])
    assert (recipe.epochs, recipe.intervention_options["epsilon"], recipe.name) == (2, 0.1, "mine")
    with pytest.raises(OptionError, match="did you mean 'epochs'"):
        recipe.changed(["epoch=2"])
    with pytest.raises(OptionError, match="NAME=VALUE"):
        recipe.changed(["epochs"])
    with pytest.raises(OptionError, match=r"unknown setting 'a\.b'"):
        recipe.changed(["a.b=1"])
    with pytest.raises(OptionError, match=r"rate.*'fast'"):
        recipe.changed(["rate=fast"])
    with pytest.raises(UnknownNameError, match="unknown schedule 'linear'"):
        recipe.changed(["schedule=linear"])


def test_earlier_names_of_interventions() -> None:
    """Recipe files of earlier versions have the same meaning."""
    values = {"name": "x", "architecture": "conv1"}
    for options, intervention, current in (
        (
            {"intervention": "front", "intervention_options": {"front": "clahe"}},
            "image_filter",
            {"image_filter": "clahe"},
        ),
        ({"intervention": "pruning", "intervention_options": {"share": 0.5}}, "pruning", {"fraction": 0.5}),
    ):
        found = Recipe.from_dict({**values, **options})
        assert (found.intervention, found.intervention_options) == (intervention, current)


def test_options_of_another_architecture_are_not_kept() -> None:
    recipe = get_recipe("icons-resnet20")
    assert recipe.changed(["architecture=msdnet"]).architecture_options == {}
    assert recipe.changed(["architecture=resnet"]).architecture_options == {"depth": 20}
    wider = recipe.changed(["architecture_options.width=8", "architecture=python:nets:make"])
    assert wider.architecture_options == {"width": 8}
    assert wider.intervention_options == recipe.intervention_options


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("architecture_options=5", "architecture_options must be .* got 5"),
        ("intervention_options=[1]", "intervention_options must be a mapping"),
        ("milestones=5", "milestones must be a list"),
        ('milestones=["a"]', r"milestones .*number.* 0 to 1"),
        ("milestones=[1.5]", r"milestones .*number.* 0 to 1"),
        ("architecture=7", "architecture must be .* got 7"),
        ("start=1", "start must be .* got 1"),
        ("name=../../elsewhere", r"name .*valid directory name"),
        ("name=/tmp/elsewhere", r"name .*valid directory name"),
        ("name=..", r"name .*valid directory name"),
        ("name=", r"name .*valid directory name"),
    ],
)
def test_invalid_settings(setting: str, message: str, tmp_path: Path) -> None:
    """A name decides where weights are written, and a recipe may be another person's file."""
    with pytest.raises(OptionError, match=message):
        get_recipe("conv1").changed([setting])
    key, _, value = setting.partition("=")
    (tmp_path / "mine.yaml").write_text(f"architecture: conv1\n{key}: {value or repr('')}\n")
    if key != "architecture":
        with pytest.raises(OptionError, match=message):
            get_recipe(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("name", ["architecture_options", "intervention_options"])
def test_options_are_what_a_file_can_hold(name: str, tmp_path: Path) -> None:
    """Options are JSON values: tuples become lists, and other values are rejected."""
    pair: Any = {name: {"severity": (1, 5)}}
    recipe = Recipe(name="a", architecture="conv1", **pair)
    assert getattr(recipe, name) == {"severity": [1, 5]} == recipe.as_dict()[name]
    for value in (math.nan, math.inf, date(2020, 1, 1), np.array([1, 2]), b"", object()):
        wrong: Any = {name: {"x": value}}
        with pytest.raises(OptionError, match=rf"{name}.*JSON"):
            Recipe(name="a", architecture="conv1", **wrong)
    with pytest.raises(OptionError, match="must be JSON values"):
        get_recipe("conv1").changed([f"{name}.x=Infinity"])
    (tmp_path / "mine.yaml").write_text(f"architecture: conv1\n{name}: {{x: 2020-01-01}}\n")
    with pytest.raises(OptionError, match="must be JSON values"):
        get_recipe(str(tmp_path / "mine.yaml"))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("architecture: conv1\nepochs: 2\n")
    assert get_recipe(str(path)) == Recipe(name="mine", architecture="conv1", epochs=2)
    for text, message in (
        ("- a\n", "epochs: 3"),
        ("a: [", "as YAML"),
        ("[" * 9000, "as YAML"),
        ("!!python/object:os.system {}", "as YAML"),
        ("epochs: 2", "requires a name and an architecture"),
        ("architecture: python:os:system", "must not name Python code"),
        ("a" * 100_001, "at most 100,000 bytes"),
    ):
        path.write_text(text)
        with pytest.raises(OptionError, match=message):
            get_recipe(str(path))
    with pytest.raises(OptionError, match="cannot read"):
        get_recipe(str(tmp_path / "none.yaml"))
    with pytest.raises(UnknownNameError, match="did you mean 'conv1'"):
        get_recipe("conv")


@pytest.mark.parametrize("schedule", ["constant", "cosine", "one-cycle", "steps"])
def test_rates_stay_in_bounds(schedule: str) -> None:
    recipe = Recipe(name="a", architecture="conv1", rate=0.5, schedule=schedule, milestones=(0.5, 0.9))
    rates = [rate_at(recipe, step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(0.5)
    assert min(rates) >= 0
    assert rates[-1] <= rates[50]
    if schedule == "steps":
        assert [rates[0], rates[60], rates[95]] == pytest.approx([0.5, 0.05, 0.005])


def test_a_cosine_may_end_above_zero() -> None:
    recipe = Recipe(name="a", architecture="conv1", rate=0.1, lowest_rate=1e-6, schedule="cosine")
    assert rate_at(recipe, 0, 100) == pytest.approx(0.1)
    assert rate_at(recipe, 100, 100) == pytest.approx(1e-6)


def test_conflicting_settings() -> None:
    recipe = get_recipe("icons-resnet20")
    for changes, message in (
        (["optimizer=adam"], "replay requires .* adam"),
        (["optimizer=adam", "replay=false"], "nesterov requires"),
        (["momentum=0"], "nesterov requires"),
        (["nesterov=2"], "nesterov must be .* got 2"),
    ):
        with pytest.raises(OptionError, match=message):
            recipe.changed(changes)


def test_recipes_of_icons_are_the_papers() -> None:
    for name in (one for one in recipe_names() if one.startswith("icons-")):
        recipe = get_recipe(name)
        assert (recipe.optimizer, recipe.momentum, recipe.nesterov) == ("sgd", 0.9, True)
        assert (recipe.rate, recipe.lowest_rate, recipe.schedule) == (0.1, 1e-6, "cosine")
        assert (recipe.batch, recipe.weight_decay) == (128, 1e-4)
        assert recipe.epochs == (500 if name == "icons-shake26-96d" else 50)
        assert recipe.intervention_options == {"shift": 4, "flip": True}
