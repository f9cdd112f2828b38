"""What the study is about: the questions, and how much of everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from beaufort._core.errors import OptionError
from beaufort.corruptions import SUBSETS
from beaufort.studies.engine import StudySettings

CLEAN = "clean"

DESIGNS: Mapping[str, str] = {
    "nlm": "Does denoising by non-local means help a network that never saw it?",
    "clahe": "Does CLAHE help, without and with fine-tuning on it?",
    "stability": "Does stability training help?",
    "ten-crop": "Does averaging over ten crops help more than accuracy?",
    "small": "Are small and pruned networks less robust than their accuracy explains?",
    "aggregation": "Are aggregating and larger networks more robust than their accuracy explains?",
    "multiscale": "Are multiscale networks more robust, above all to noise?",
    "transfer": "Does fine-tuning on one corruption help with the others?",
    "shake": "Does Shake-Shake help at equal training?",
    "style": "Is style transfer harder for a network than every corruption?",
    "augmentation": "What do AugMix, PRIME-like changes and noise do?",
}
"""The questions, by the name that `--only` takes."""

NETWORKS = ("resnet50_224", "efficientnet_lite0_224", "mobilenet_v1_1.0_224")
"""Files `NAME.onnx` of the folder of networks: the paper's, and two others."""

STYLE_LEVELS = (0, 1, 2, 3, 4, 5)
"""Severities of stylized photos; 0 is the network that paints, without any style."""

PhotoPass = Literal["fronts", "crops", "styles"]
"""The photos at 224 pixels behind front ends, at 256 pixels in crops, and stylized."""

_FEW = ("gaussian_noise", "defocus_blur", "contrast")


@dataclass(frozen=True, kw_only=True)
class EnhancementSettings(StudySettings):
    """How much is done, and with which data."""

    photos: str = ""
    """Labeled photos of ImageNet's validation set, for `load_dataset`; empty if there are none."""
    networks: str = ""
    """Folder with the ONNX files; empty if there is none."""
    train: str = "cifar10-train"
    test: str = "cifar10-test"
    seeds: int = 5

    @property
    def corruptions(self) -> tuple[str, ...]:
        """The 15 of the benchmark."""
        return _FEW if self.rehearse else SUBSETS["common"]

    @property
    def extra(self) -> tuple[str, ...]:
        """The four that choices are made on."""
        return ("speckle_noise",) if self.rehearse else SUBSETS["validation"]

    @property
    def severities(self) -> tuple[int, ...]:
        return (3,) if self.rehearse else (1, 2, 3, 4, 5)

    @property
    def limit(self) -> int | None:
        """Test images."""
        return 24 if self.rehearse else None

    @property
    def train_limit(self) -> int | None:
        return 48 if self.rehearse else None

    @property
    def network_files(self) -> dict[str, Path]:
        """The networks that are there, by name."""
        folder = Path(self.networks)
        found = {name: folder / f"{name}.onnx" for name in NETWORKS if (folder / f"{name}.onnx").is_file()}
        if self.rehearse and not found:
            found = {path.stem: path for path in sorted(folder.glob("*.onnx"))[:2]}
        return found


def conditions(settings: EnhancementSettings, *, extra: bool = True) -> tuple[str, ...]:
    """`clean`, then `corruption@severity`; those that choices are made on last."""
    names = (*settings.corruptions, *(settings.extra if extra else ()))
    return (CLEAN, *(f"{name}@{severity}" for name in names for severity in settings.severities))


def photo_conditions(settings: EnhancementSettings, which: PhotoPass) -> tuple[str, ...]:
    """The conditions of a pass over photos; nothing is chosen by crops, so they need no extra ones."""
    if which == "styles":
        return tuple(f"stylize@{level}" for level in STYLE_LEVELS)
    return conditions(settings, extra=which == "fronts")


def condition_file(which: PhotoPass, condition: str) -> str:
    """Where the answers under a condition are, below the study's folder."""
    return f"photos/{which}/{condition}.npz"


def lines_file(network: str) -> str:
    """Where the statistics of a network behind CLAHE are, below the study's folder."""
    return f"photos/renormalized/{network}.npz"


def named_data(data: Mapping[str, str]) -> dict[str, str]:
    """The settings that places of data stand for."""
    found = {
        key: data[name] for key, name in (("photos", "imagenet"), ("networks", "networks")) if name in data
    }
    if "cifar10" in data:
        found |= {"train": f"{data['cifar10']}#train", "test": f"{data['cifar10']}#test"}
    for name in ("photos", "networks"):
        if name in found and ":" not in found[name] and not Path(found[name]).exists():
            raise OptionError(f"{name} must be a place that exists, got {found[name]!r}")
    return found
