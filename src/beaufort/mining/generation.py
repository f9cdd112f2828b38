"""Carrying a plan out: one PNG for each row, with everything about it inside; killed, it goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from beaufort._core.files import remove_leftovers, write_bytes
from beaufort.data.images import read_image
from beaufort.mining.generators import Generator
from beaufort.mining.plan import MiningError, PlanItem, checked, write_plan

PLAN = "plan.csv"
"""The plan of a folder, in it, so that later steps know what must be there."""
_KEY = "beaufort"


@dataclass(frozen=True)
class GeneratedImage:
    """An image that was made, and how."""

    path: Path
    item: PlanItem
    generator: Mapping[str, Any]


def generate(
    items: Sequence[PlanItem],
    generator: Generator,
    output: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Make the images of a plan that a folder lacks; gives how many were made.

    Killed and started again, the folder ends with the same set. Images of another plan or generator are
    refused before anything is made, and nothing is deleted.

    Args:
        items: the plan.
        generator: what makes the images.
        output: the folder; an image lies in it under its kind, its category and its id, beside `plan.csv`.
        progress: told how many are there, of how many.
    """
    plan = checked(items)
    generator.check(plan)
    there = _check_folder(plan, generator, output)
    write_plan(plan, output / PLAN)
    missing = [item for item in plan if item.id not in there]
    for start in range(0, len(missing), generator.batch):
        some = missing[start : start + generator.batch]
        for item, image in zip(some, generator.make(some), strict=True):
            path = output / item.file
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent)
            write_bytes(path, _encoded(image, item, generator))
        if progress is not None:
            progress(len(plan) - len(missing) + start + len(some), len(plan))
    return len(missing)


def read_generated(folder: Path) -> tuple[GeneratedImage, ...]:
    """The images in a folder with how they were made, in the order of their paths."""
    return tuple(read_image_facts(path) for path in _pictures(folder))


def _check_folder(plan: Sequence[PlanItem], generator: Generator, output: Path) -> set[str]:
    """The ids of images that are there; refuses a folder that another plan or generator filled."""
    planned = {item.id for item in plan}
    facts = _plain(generator.facts)
    there = set()
    for found in map(read_image_facts, _pictures(output)):
        if found.item.id not in planned:
            raise MiningError(
                f"the plan must be the one that {output} was made by, got none of its rows for "
                f"{found.item.file}: {found.item.prompt!r}, seed {found.item.seed}; restore the row, move "
                "the image away, or generate into a new folder"
            )
        if found.generator != facts:
            raise MiningError(
                f"all images in {output} must be made by one generator with one setting, got "
                f"{json.dumps(facts)} where {found.item.file} has {json.dumps(found.generator)}"
            )
        there.add(found.item.id)
    return there


def _pictures(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*/*/*.png")) if not path.name.startswith("."))


def _encoded(image: Image.Image, item: PlanItem, generator: Generator) -> bytes:
    about = PngImagePlugin.PngInfo()
    about.add_itxt(_KEY, json.dumps({"item": asdict(item), "generator": _plain(generator.facts)}))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", pnginfo=about)
    return buffer.getvalue()


def read_image_facts(path: Path) -> GeneratedImage:
    """How an image was made, as it says itself; an error if it is damaged or lies under another name."""
    try:
        read_image(path)  # refuses what is damaged, or too large
        with Image.open(path, formats=["PNG"]) as opened:
            about = json.loads(opened.info[_KEY])
        (item,) = checked([PlanItem(**about["item"])])  # its names become folders
        generator = dict(about["generator"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MiningError(
            f"an image must be whole and say how it was made, got {path} ({error!r}); delete it to have it "
            "made again"
        ) from None
    if path.stem != item.id:
        raise MiningError(f"an image must lie under its id {item.id}, got {path}")
    return GeneratedImage(path, item, generator)


def _plain(facts: Mapping[str, Any]) -> Any:
    """Facts as JSON gives them back, for comparison."""
    return json.loads(json.dumps(facts))
