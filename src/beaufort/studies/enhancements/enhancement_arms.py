"""Settings of the study: conditions, data, and the training runs on CIFAR-10 as changes of recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from beaufort._core.errors import OptionError
from beaufort.corruptions import SUBSETS
from beaufort.studies.engine import StudySettings, definition
from beaufort.training import Recipe, get_recipe

STUDY_NAME = "imagenet-c-enhancements"
CLEAN = "clean"
BASE, CONTROL = "resnet20", "tuned-plain"
"""The network that fine-tuning starts from, whose first seed divides mCE; and plain fine-tuning."""

NETWORKS = ("resnet50_224", "efficientnet_lite0_224", "mobilenet_v1_1.0_224")
"""Files `NAME.onnx` of the directory of networks: the paper's, and two others."""

STYLE_LEVELS = (0, 1, 2, 3, 4, 5)
"""Severities of stylized photos; at 0 the network paints without any style."""

PhotoPass = Literal["filters", "crops", "styles"]
"""Photos at 224 pixels behind image filters, at 256 pixels in crops, and stylized."""

_MOVES = {"shift": 4, "flip": True}
_NOT_REPLAYED = frozenset({"augmix", "prime"})
"""Interventions that choose operations during training, so that steps cannot be recorded and replayed."""


@dataclass(frozen=True, kw_only=True)
class EnhancementSettings(StudySettings):
    """Extent of the study, and its datasets."""

    photos: str = ""
    """Labeled photos of ImageNet's validation set, for `load_dataset`; empty without."""
    networks: str = ""
    """Directory with the ONNX files; empty without."""
    train: str = "cifar10-train"
    test: str = "cifar10-test"
    seeds: int = 5

    @property
    def corruptions(self) -> tuple[str, ...]:
        return ("gaussian_noise", "defocus_blur", "contrast") if self.rehearse else SUBSETS["common"]

    @property
    def extra(self) -> tuple[str, ...]:
        """The corruptions that settings are selected by."""
        return ("speckle_noise",) if self.rehearse else SUBSETS["validation"]

    @property
    def severities(self) -> tuple[int, ...]:
        return (3,) if self.rehearse else (1, 2, 3, 4, 5)

    @property
    def limit(self) -> int | None:
        """Number of test images."""
        return 24 if self.rehearse else None

    @property
    def network_files(self) -> dict[str, Path]:
        """The networks that exist, by name."""
        folder = Path(self.networks)
        files = {name: path for name in NETWORKS if (path := folder / f"{name}.onnx").is_file()}
        if self.rehearse and not files:
            files = {path.stem: path for path in sorted(folder.glob("*.onnx"))[:2]}
        return files


def conditions(settings: EnhancementSettings, *, extra: bool = True) -> tuple[str, ...]:
    """Return `clean` and all `corruption@severity`, the extra ones last."""
    names = (*settings.corruptions, *(settings.extra if extra else ()))
    return (CLEAN, *(f"{name}@{severity}" for name in names for severity in settings.severities))


def photo_conditions(settings: EnhancementSettings, which: PhotoPass) -> tuple[str, ...]:
    """Return the conditions of a pass over photos; crops need no extra ones, because they select nothing."""
    if which == "styles":
        return tuple(f"stylize@{level}" for level in STYLE_LEVELS)
    return conditions(settings, extra=which == "filters")


def condition_file(which: PhotoPass, condition: str) -> str:
    """Return the file with the predictions under a condition, relative to the study's directory."""
    return f"photos/{which}/{condition}.npz"


def lines_file(network: str) -> str:
    """Return the file with the re-estimated statistics of a network behind CLAHE."""
    return f"photos/renormalized/{network}.npz"


def data_settings(data: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that follow from locations of datasets."""
    names = {"imagenet": "photos", "networks": "networks"}
    found = {setting: data[name] for name, setting in names.items() if name in data}
    for name in names:
        if ":" not in (place := data.get(name, "")) and not Path(place).exists():
            raise OptionError(f"{name} not found: {place}")
    if cifar := data.get("cifar10"):
        found |= {name: f"{cifar}#{name}" for name in ("train", "test")}
    return found


@dataclass(frozen=True)
class TrainingArm:
    """A training run, or a test of another arm's network."""

    name: str
    recipe: str = "cifar10-tuned"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe with other values."""
    start: str = ""
    """The arm whose network it starts from."""
    image_filter: str = ""
    """The image filter that the network is tested behind."""
    tests: str = ""
    """The arm whose network it tests, if it trains none itself."""

    def configured(self, settings: EnhancementSettings, start: str) -> Recipe:
        """Return its recipe, small for a rehearsal."""
        recipe = replace(get_recipe(self.recipe), name=self.name, start=start, **self.changes)
        if not settings.rehearse:
            return recipe
        kept = {key: value for key, value in recipe.architecture_options.items() if key == "shake"}
        small = definition(STUDY_NAME)["rehearsal"][recipe.architecture]
        return replace(recipe, epochs=1, batch=16, architecture_options={**small, **kept})


def training_arms(settings: EnhancementSettings) -> dict[str, list[TrainingArm]]:
    """Return the arms of each question; `base` comes first."""
    declared = definition(STUDY_NAME)["arms"]
    arms = {group: [_arm(name, **one) for name, one in some.items()] for group, some in declared.items()}
    arms["stability"] += _stability(settings)
    arms["transfer"] += _transfer(settings)
    return arms


def _arm(
    name: str,
    *,
    recipe: str = "cifar10-tuned",
    architecture: str = "",
    intervention: str = "",
    options: Mapping[str, Any] | None = None,
    image_filter: str = "",
    start: str = BASE,
    tests: str = "",
    depth: int = 0,
    epochs: int = 0,
) -> TrainingArm:
    if tests:
        return TrainingArm(name, tests=tests, image_filter=image_filter)
    if architecture:
        changes: dict[str, Any] = {
            "architecture": architecture,
            "architecture_options": dict(options or {}),
        }
        return TrainingArm(name, "cifar10-resnet20", changes)
    if not intervention:
        return TrainingArm(name, recipe, start="" if name == BASE else start)
    changes = {
        "intervention": intervention,
        "intervention_options": {**_MOVES, **(options or {})},
        "replay": intervention not in _NOT_REPLAYED,
        **({"architecture_options": {"depth": depth}} if depth else {}),
        **({"epochs": epochs} if epochs else {}),
    }
    return TrainingArm(name, recipe, changes, start, image_filter)


def _stability(settings: EnhancementSettings) -> Iterator[TrainingArm]:
    declared = definition(STUDY_NAME)["stability"]
    limits, weights, more = declared["limits"], declared["weights"], declared["more"]
    if settings.rehearse:
        limits, weights, more = [0.05], [0.05], []
    for limit in limits:
        grid = [(limit, weight) for weight in weights]
        yield from (_stable(*one) for one in grid)
        yield _arm(f"noise-{limit:g}", intervention="noise", options={"strength": limit})
    yield from (_stable(*one) for one in more)


def _stable(strength: float, weight: float) -> TrainingArm:
    options = {"strength": strength, "weight": weight}
    return _arm(f"stability-{strength:g}-w{weight:g}", intervention="stability", options=options)


def _transfer(settings: EnhancementSettings) -> Iterator[TrainingArm]:
    def arm(name: str, names: tuple[str, ...], **more: list[str]) -> TrainingArm:
        fixed = {"severity": list(settings.severities), "scale": "cifar"}
        return _arm(name, intervention="corruptions", options={"names": list(names), **more, **fixed})

    for name in settings.corruptions:
        yield arm(f"on-{name}", (name,))
        yield arm(f"but-{name}", settings.corruptions, but=[name])
    yield arm("on-all", settings.corruptions)
    yield arm("on-extra", settings.extra)
