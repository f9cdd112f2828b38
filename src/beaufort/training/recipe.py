"""Recipes: everything that decides what a training makes, except the seed and the data, as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice, validate_count, validate_number

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "cosine", "one-cycle", "steps")
PRECISIONS = ("float32", "bfloat16")

REQUIRED = "required"
"""What `start` is in a recipe that is for trained networks alone."""
_OF_TRAINED = frozenset({"pruning"})
"""Interventions that are for trained networks alone."""

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
    """One of `beaufort.training.architectures`, or `python:package.module:factory`; the latter is never taken
    from a file."""
    architecture_options: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    """What it is, and where each choice comes from."""
    data: str = "mnist-train"
    """What `load_dataset` opens if the caller names nothing else."""
    epochs: int = 1
    batch: int = 64
    block: int = 60_000
    """How many images are read and prepared at a time; batches are cut from blocks. It changes no result of
    preparations that go by image id, as corruptions do."""
    optimizer: str = "sgd"
    rate: float = 0.01
    """The learning rate; the highest one, if the schedule changes it."""
    lowest_rate: float = 0.0
    """Where the schedule `cosine` ends."""
    momentum: float = 0.9
    """Of SGD."""
    nesterov: bool = False
    """Whether SGD looks ahead along its momentum."""
    weight_decay: float = 0.0
    schedule: str = "constant"
    """`constant`; `cosine`, down to `lowest_rate`; `one-cycle`, up for 30 % of the steps and down to 0;
    `steps`, a tenth at each share of `milestones`."""
    milestones: tuple[float, ...] = ()
    """Shares of the training, for the schedule `steps`."""
    intervention: str = "plain"
    """One of `beaufort.training.interventions`."""
    intervention_options: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "float32"
    """`bfloat16` multiplies with 8 bits of precision on a GPU; weights stay float32. On the processor it is
    float32 always."""
    replay: bool = False
    """On a GPU, record a step once and replay it, with the channels of a pixel side by side in memory, so
    that small networks do not wait for the processor. For SGD, and what never looks at values on the way."""
    start: str = ""
    """A trained model whose weights it starts from; empty for random weights. `required` in a file says that
    whoever trains has to name one."""

    def __post_init__(self) -> None:
        for name in ("name", "architecture", "about", "data", "intervention", "start"):
            if not isinstance(getattr(self, name), str):
                raise OptionError(f"{name} must be text, got {getattr(self, name)!r:.60}")
        if self.name == ".." or Path(self.name).name != self.name or not self.name or "\\" in self.name:
            raise OptionError(f"name must be a plain name, because it names a folder, got {self.name!r:.60}")
        for name in ("architecture_options", "intervention_options"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise OptionError(f"{name} must be names with values, as NAME=value, got {value!r:.60}")
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
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be true or false, got {getattr(self, name)!r}")
        if self.replay and self.optimizer != "sgd":
            raise OptionError(f"replay must be false with {self.optimizer}: only steps of sgd are replayed")
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise OptionError("nesterov must be false without sgd and a momentum")

    def check_start(self) -> None:
        """Refuse a recipe that is for trained networks, as fine-tuning is, and names none to start from."""
        if self.start == REQUIRED or (not self.start and self.intervention in _OF_TRAINED):
            raise no_start()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as in a recipe's file."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe of plain values; a key that no recipe has is an error."""
        known = {one.name for one in fields(cls)}
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(sorted(known))}"
                raise OptionError(f"a recipe has no {key!r}{hint}")
        try:
            return cls(**values)
        except TypeError as error:
            raise OptionError(f"a recipe needs a name and an architecture ({error})") from None

    def changed(self, texts: Iterable[str]) -> Recipe:
        """The recipe with settings as `--set` takes them: `epochs=3`, `intervention_options.epsilon=0.1`.

        Another architecture begins without options, because those of the recipe are the former one's.
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
                raise OptionError(f"a recipe has no {key!r}; write intervention_options.NAME=value")
            inside[last] = value
        return Recipe.from_dict(values)


def no_start() -> OptionError:
    """The error about a recipe that needs a trained network and has none."""
    return OptionError(
        "start must name a trained network, which this recipe changes, got none; give it with "
        "--set start=NAME, or as `start` of the recipe"
    )


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"a setting must be written as key=value, got {text!r}")
    return key.strip(), _plain(value.strip())


def _as_in_a_file(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they are read back, so that a training does what is written about it: tuples are lists."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(options), allow_nan=False))
    except (RecursionError, TypeError, ValueError):
        raise OptionError(
            f"{name} must be values that JSON has, which NaN and dates are not, got {dict(options)!r:.60}"
        ) from None
    return plain


def _plain(text: str) -> Any:
    """A number, a list, true or false where the text is one in JSON; else the text."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return text


def recipe_names() -> tuple[str, ...]:
    """The recipes that come with Beaufort."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def get_recipe(name: str) -> Recipe:
    """A recipe by its name, or from a YAML file of your own.

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
    """The recipe in a YAML file."""
    import yaml

    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error.strerror or error})") from None
    if len(content) > _MAX_BYTES:
        raise OptionError(f"{path} must have at most {_MAX_BYTES} bytes, got {len(content)}")
    try:
        values = yaml.safe_load(content)
    except (RecursionError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise OptionError(f"{path} must be lines of 'key: value', as 'epochs: 3'")
    if str(values.get("architecture", "")).startswith("python:"):
        raise OptionError(
            f"the architecture in a file must be one that Beaufort has, got {values['architecture']!r:.80} "
            f"in {path}: a file could run any program so. Name it yourself, with --set architecture=python:…"
        )
    return Recipe.from_dict({"name": path.stem, **values})
