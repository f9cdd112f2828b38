"""Recipes: everything that determines a training run except the seed and the data, as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice, validate_count, validate_flag, validate_number

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "cosine", "one-cycle", "steps")
PRECISIONS = ("float32", "bfloat16")

REQUIRED = "required"
"""Value of `start` in recipes for trained networks."""
_OF_TRAINED = frozenset({"pruning"})
"""Interventions for trained networks."""

_FOLDER = Path(__file__).parent / "recipes"
_MAX_BYTES = 100_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained.

    >>> Recipe(name="quick", architecture="conv1", epochs=1).changed(["batch=32"]).batch
    32
    """

    name: str
    architecture: str
    """A name in `beaufort.training.architectures`, or `python:package.module:factory`; the latter is not
    allowed in files."""
    architecture_options: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    """Description, and where each choice comes from."""
    data: str = "mnist-train"
    """Default training data, as for `load_dataset`."""
    epochs: int = 1
    batch: int = 64
    block: int = 60_000
    """Number of images that are read and prepared at a time, then split into batches. Corruptions, which
    depend on the image id, do not depend on it."""
    optimizer: str = "sgd"
    rate: float = 0.01
    """Learning rate; the highest one if the schedule changes it."""
    lowest_rate: float = 0.0
    """Final rate of the schedule `cosine`."""
    momentum: float = 0.9
    """Momentum of SGD."""
    nesterov: bool = False
    """Whether SGD uses Nesterov momentum."""
    weight_decay: float = 0.0
    schedule: str = "constant"
    """`constant`; `cosine`, down to `lowest_rate`; `one-cycle`, up for 30 % of the steps and down to 0;
    `steps`, divided by ten at each of the `milestones`."""
    milestones: tuple[float, ...] = ()
    """Fractions of the training run, for the schedule `steps`."""
    intervention: str = "plain"
    """A name in `beaufort.training.interventions`."""
    intervention_options: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "float32"
    """With `bfloat16`, products on a GPU have 8 bits of precision, and weights stay float32; it has no effect
    on the CPU."""
    replay: bool = False
    """On a GPU, record a step as a CUDA graph, in channels-last memory, and replay it, which is faster for
    small networks. For SGD, and steps that do not depend on values on the CPU."""
    start: str = ""
    """Trained model that provides the initial weights; empty for random weights. `required` in a file means
    that the user has to name one."""

    def __post_init__(self) -> None:
        for name in ("name", "architecture", "about", "data", "intervention", "start"):
            if not isinstance(getattr(self, name), str):
                raise OptionError(f"{name} must be a string, got {getattr(self, name)!r:.60}")
        if self.name == ".." or Path(self.name).name != self.name or not self.name or "\\" in self.name:
            raise OptionError(f"name must be a valid directory name, got {self.name!r:.60}")
        for name in ("architecture_options", "intervention_options"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise OptionError(f"{name} must be a mapping of names to values, got {value!r:.60}")
            object.__setattr__(self, name, _as_in_a_file(name, value))
        if not isinstance(self.milestones, list | tuple):
            raise OptionError(f"milestones must be a list of numbers, got {self.milestones!r:.60}")
        for value in self.milestones:
            validate_number("milestones", value, 0, 1)
        object.__setattr__(self, "milestones", tuple(self.milestones))
        for name, accepted in (
            ("optimizer", OPTIMIZERS),
            ("schedule", SCHEDULES),
            ("precision", PRECISIONS),
        ):
            validate_choice(name, getattr(self, name), accepted)
        for name in ("epochs", "batch", "block"):
            validate_count(name, getattr(self, name))
        for name in ("rate", "lowest_rate", "momentum", "weight_decay"):
            validate_number(name, getattr(self, name), 0, 1e6)
        for name in ("nesterov", "replay"):
            validate_flag(name, getattr(self, name))
        if self.replay and self.optimizer != "sgd":
            raise OptionError(f"replay requires the optimizer sgd, got {self.optimizer}")
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise OptionError("nesterov requires the optimizer sgd with momentum")

    def check_start(self) -> None:
        """Check that a recipe for trained networks, such as for fine-tuning, names one."""
        if self.start == REQUIRED or (not self.start and self.intervention in _OF_TRAINED):
            raise OptionError(
                f"the recipe {self.name!r} requires a trained network; pass --set start=NAME (in Python: "
                "changed(['start=NAME']))"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as in a recipe file."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """Return the recipe of plain values, which may have earlier names of interventions."""
        values = with_current_names(values)
        known = {one.name for one in fields(cls)}
        for key in values:
            if key not in known:
                raise OptionError(unknown_message("setting", key, sorted(known)))
        try:
            return cls(**values)
        except TypeError as error:
            raise OptionError(f"a recipe requires a name and an architecture: {error}") from None

    def changed(self, texts: Iterable[str]) -> Recipe:
        """Return the recipe with changes such as `epochs=3` or `intervention_options.epsilon=0.1`.

        Changing the architecture removes the options of the former one.
        """
        values = self.as_dict()
        for key, value in sorted(map(_setting, texts), key=lambda setting: setting[0] != "architecture"):
            if key == "architecture" and value != values[key]:
                values["architecture_options"] = {}
            inside = values
            *outer, last = key.split(".")
            for part in outer:
                inside = inside.get(part) if isinstance(inside, dict) else None  # type: ignore[assignment]
            if not isinstance(inside, dict):
                raise OptionError(
                    f"unknown setting {key!r}; write options as intervention_options.NAME=VALUE"
                )
            inside[last] = value
        return Recipe.from_dict(values)


_EARLIER = {
    "front": ("image_filter", {"front": "image_filter"}),
    "pruning": ("pruning", {"share": "fraction"}),
}
"""By the earlier name of an intervention: its name, and its options by their earlier names."""


def with_current_names(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a recipe with today's names of the intervention and its options."""
    name, options = values.get("intervention"), values.get("intervention_options", {})
    if name not in _EARLIER or not isinstance(options, Mapping):
        return values
    current, names = _EARLIER[name]
    renamed = {names.get(key, key): value for key, value in options.items()}
    return {**values, "intervention": current, "intervention_options": renamed}


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"a setting must be NAME=VALUE, got {text!r}")
    return key.strip(), _plain(value.strip())


def _as_in_a_file(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are read back from JSON, so that training uses what is stored."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(options), allow_nan=False))
    except (RecursionError, TypeError, ValueError):
        raise OptionError(
            f"{name} must be JSON values (no NaN, no dates), got {dict(options)!r:.60}"
        ) from None
    return plain


def _plain(text: str) -> Any:
    """Return the JSON value of a text; else the text."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return text


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes in the package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def get_recipe(name: str) -> Recipe:
    """Return a recipe by its name or from a YAML file.

    >>> get_recipe("conv2-pgd").intervention
    'pgd'
    """
    if name in recipe_names():
        return _bundled(name)
    if Path(name).suffix in (".yaml", ".yml"):
        return read_recipe(Path(name))
    raise UnknownNameError(unknown_message("recipe", name, recipe_names()))


@cache
def _bundled(name: str) -> Recipe:
    return read_recipe(_FOLDER / f"{name}.yaml")


def read_recipe(path: Path) -> Recipe:
    """Return the recipe in a YAML file."""
    import yaml

    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > _MAX_BYTES:
        raise OptionError(f"{path} must have at most {_MAX_BYTES:,} bytes, got {len(content):,}")
    try:
        values = yaml.safe_load(content)
    except (RecursionError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {path} as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise OptionError(f"{path} must contain lines 'name: value', such as 'epochs: 3'")
    if str(values.get("architecture", "")).startswith("python:"):
        raise OptionError(
            f"{path} must not name Python code, got architecture {values['architecture']!r:.80}; pass it "
            "with --set architecture=python:…"
        )
    return Recipe.from_dict({"name": path.stem, **values})
