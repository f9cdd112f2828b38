"""The published test sets of the testbed: where they come from, and how to find them on a disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from beaufort._core.errors import BeaufortError
from beaufort._core.validation import validate_directory
from beaufort.corruptions import get_corruption_names
from beaufort.data import dataset_kind, read_frame_sets
from beaufort.data.labels import class_ids, label_maps

VALIDATION = "imagenet-val"
_MAX_DEPTH = 4
_MOST_FOLDERS = 400
"""Directories with more subdirectories are not searched; they are class directories of another set."""
_MOSTLY = 0.9
"""Fraction of the class directories by which an incomplete copy is recognized, to report what is missing."""
_WNID = re.compile(r"n\d{8}")


class TestbedSet(NamedTuple):
    """A published set of test images."""

    layout: str
    """What its directory contains."""
    source: str
    """Where it can be downloaded."""
    suites: Mapping[str, Mapping[str, str]] = {}
    """Suites that evaluate it, each with its datasets; `{}` stands for the directory."""


def _suite(name: str, **data: str) -> Mapping[str, Mapping[str, str]]:
    return {
        name: {dataset.replace("_", "-"): spec for dataset, spec in data.items()} or {name: f"{name}:{{}}"}
    }


_V2 = "imagenetv2-matched-frequency", "imagenetv2-threshold-0.7", "imagenetv2-top-images"
_VIDEOS = "natural-perturbations website of modestyachts (github.com/modestyachts)"

PUBLISHED_SETS: Mapping[str, TestbedSet] = {
    VALIDATION: TestbedSet(
        "1,000 directories n01440764, …, or ILSVRC2012_val_*.JPEG with a list of labels",
        "image-net.org (ILSVRC2012_img_val.tar)",
    ),
    **{
        name: TestbedSet(
            "directories 0 to 999",
            "huggingface.co/datasets/vaishaal/ImageNetV2",
            {
                name: {name: "imagenetv2:{}"},
                **(
                    {"imagenetv2-one-eighth": {name: "imagenetv2:{}"}}
                    if name == "imagenetv2-matched-frequency"
                    else {}
                ),
            },
        )
        for name in _V2
    },
    "objectnet": TestbedSet(
        "images/air_freshener, …: 313 directories",
        "objectnet.dev",
        {"objectnet-2020": {"objectnet": "objectnet:{}"}},
    ),
    "imagenet-a": TestbedSet(
        "200 directories n01498041, …", "github.com/hendrycks/natural-adv-examples", _suite("imagenet-a")
    ),
    "imagenet-r": TestbedSet(
        "200 directories n01443537, …", "github.com/hendrycks/imagenet-r", _suite("imagenet-r")
    ),
    "imagenet-sketch": TestbedSet(
        "1,000 directories with sketch_*.JPEG",
        "github.com/HaohanWang/ImageNet-Sketch",
        _suite("imagenet-sketch"),
    ),
    **{
        name: TestbedSet(
            "frames with pmsets.json and labels.json",
            _VIDEOS,
            {name: {f"{name}-anchors": f"{name}:{{}}#anchors", f"{name}-frames": f"{name}:{{}}"}},
        )
        for name in ("vid-robust", "ytbb-robust")
    },
    "stylized-imagenet": TestbedSet(
        "1,000 directories with ILSVRC2012_val_*.png",
        "made by github.com/rgeirhos/Stylized-ImageNet",
        _suite("stylized-imagenet"),
    ),
    "imagenet-c": TestbedSet(
        "directories corruption/severity/class, also below noise, blur, weather, digital, extra",
        "zenodo.org/record/2235448",
        {name: {"": "imagenet-c:{}"} for name in ("imagenet-c", "imagenet-c-validation")},
    ),
}
"""Sets by name, in the order of the table of results."""


@dataclass(frozen=True)
class FoundSets:
    """The published sets below a directory."""

    root: Path
    places: Mapping[str, Path]
    """Directory of each set that was found."""
    notes: tuple[str, ...] = ()
    """Directories that look like a set but cannot be used, and sets found twice."""

    @property
    def missing(self) -> Mapping[str, TestbedSet]:
        """The sets that were not found."""
        return {name: one for name, one in PUBLISHED_SETS.items() if name not in self.places}

    def runs(self, *, latest: bool = False) -> Mapping[str, str | Mapping[str, str]]:
        """Return the suites that can be evaluated, each with its datasets.

        Args:
            latest: score clean images for ObjectNet among 113 classes, as the testbed does since 2021.
        """
        found: dict[str, str | Mapping[str, str]] = {}
        for name in (name for name in PUBLISHED_SETS if name in self.places):
            for suite, data in PUBLISHED_SETS[name].suites.items():
                chosen = "objectnet" if latest and suite == "objectnet-2020" else suite
                specs = {key: spec.format(self.places[name]) for key, spec in data.items()}
                if name == "imagenet-c":
                    if not _lacking(self.places[name], suite):
                        found[chosen] = specs[""]
                elif VALIDATION in self.places:
                    found[chosen] = {VALIDATION: str(self.places[VALIDATION]), **specs}
        return found


def find_published_sets(root: Path | str) -> FoundSets:
    """Find the published sets below a directory by their layout, whatever the directories are called.

    ImageNetV2's variants have the same layout and are distinguished by the name of the directory.
    """
    top = Path(root)
    validate_directory("data root", top)
    places: dict[str, Path] = {}
    notes: list[str] = []
    for path, name, note in _search(top):
        if note:
            notes.append(note)
        if name in places:
            notes.append(f"{path} is ignored: {name} was found in {places[name]}")
        elif name:
            places[name] = path
    if corrupted := places.get("imagenet-c"):
        for suite in PUBLISHED_SETS["imagenet-c"].suites:
            if lacking := _lacking(corrupted, suite):
                notes.append(f"{suite} is not evaluated: {corrupted} has no {', '.join(lacking)}")
    return FoundSets(top, places, tuple(notes))


def _search(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield directories that are a set, with its name, and notes on others."""
    waiting = [(root, 0)]
    while waiting:
        path, depth = waiting.pop(0)
        folders = _folders(path)
        name, note = _recognize(path, folders)
        if name or note:
            yield path, name, note
        elif depth < _MAX_DEPTH and len(folders) <= _MOST_FOLDERS:
            waiting += [(path / folder, depth + 1) for folder in folders]


def _recognize(path: Path, folders: Sequence[str]) -> tuple[str, str]:
    """Return the set that a directory contains, or a note; two empty texts if it is none."""
    names = set(folders)
    if any((path / place / "pmsets.json").is_file() for place in ("", "metadata", "misc")):
        return _video_set(path)
    for name in ("imagenet-a", "imagenet-r"):
        wanted = set(label_maps[name].classes)
        wnids = {one for one in names if _WNID.fullmatch(one)}
        if len(wnids & wanted) >= _MOSTLY * len(wanted) and len(wnids) < 2 * len(wanted):
            return name, ""
    if len(names & set(class_ids("imagenet-1k"))) >= _MOSTLY * 1000:
        return _set_of_all_classes(path, sorted(names))
    if len(names & set(map(str, range(1000)))) >= _MOSTLY * 1000:
        return _variant_of_v2(path)
    objects = set(label_maps["objectnet"].classes)
    if len(set(_folders(path / "images")) & objects) >= _MOSTLY * len(objects) or (
        len(names & objects) >= _MOSTLY * len(objects) and path.name != "images"
    ):
        return "objectnet", ""
    places = (path, *(path / group for group in sorted(names)[:20]))
    if any((place / name / "1").is_dir() for place in places for name in get_corruption_names("all")):
        return "imagenet-c", ""
    if not names and dataset_kind(path) == VALIDATION:
        return VALIDATION, ""
    return "", ""


def _video_set(path: Path) -> tuple[str, str]:
    try:
        first = next(iter(read_frame_sets(path).neighbors))
    except BeaufortError as error:
        return "", f"{path} is ignored: {error}"
    if "ILSVRC2015" in first:
        return "vid-robust", ""
    if re.search("yt-?bb|youtube", f"{path}/{first}".lower()):
        return "ytbb-robust", ""
    return "", f"{path} is ignored: its frames are of neither ImageNet-Vid-Robust nor YTBB-Robust"


def _set_of_all_classes(path: Path, folders: Sequence[str]) -> tuple[str, str]:
    """Tell sets with ImageNet's 1,000 directories apart by the names of their files."""
    files = (file.name for folder in folders for file in sorted((path / folder).iterdir()) if file.is_file())
    first = next(files, "")
    if first.startswith("sketch_"):
        return "imagenet-sketch", ""
    if first.startswith("ILSVRC2012_val_"):
        return ("stylized-imagenet" if first.lower().endswith(".png") else VALIDATION), ""
    if re.match(r"n\d{8}_\d+\.", first):
        return "", f"{path} is ignored: its files are named like ImageNet's training images"
    for word, name in (("sketch", "imagenet-sketch"), ("styl", "stylized-imagenet"), ("val", VALIDATION)):
        if word in path.name.lower():
            return name, ""
    return "", f"{path} is ignored: it has ImageNet's classes, but no file names of a known set"


def _variant_of_v2(path: Path) -> tuple[str, str]:
    for word, name in zip(("matched", "threshold", "top"), _V2, strict=True):
        if word in path.name.lower():
            return name, ""
    return _V2[0], f"{path} is taken as {_V2[0]}, because its name does not state the variant"


def _lacking(path: Path, suite: str) -> list[str]:
    """Return the corruptions of a suite that a copy of ImageNet-C lacks."""
    wanted = get_corruption_names("validation" if suite.endswith("validation") else "common")
    present = {*_folders(path), *(name for group in _folders(path) for name in _folders(path / group))}
    return [name for name in wanted if name not in present]


def _folders(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    names = (one.name for one in path.iterdir() if one.is_dir())
    return sorted(name for name in names if not name.startswith((".", "__MACOSX")))
