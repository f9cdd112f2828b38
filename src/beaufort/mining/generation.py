"""Generating the images of a plan: one PNG for each row, with everything about it inside."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from PIL import Image, PngImagePlugin

from beaufort._core.errors import OptionError
from beaufort._core.files import remove_leftovers, write_bytes
from beaufort._core.validation import validate_choice
from beaufort.data.images import read_image
from beaufort.mining.composite import CompositeGenerator
from beaufort.mining.conditional import ConditionalGenerator
from beaufort.mining.diffusion import DiffusionGenerator, RetouchGenerator
from beaufort.mining.plan import MiningError, PlanItem, read_rows, validate_plan, write_plan

PLAN = "plan.csv"
"""The plan of a folder, in it, so that later steps know which images must exist."""
_KEY = "beaufort"


class Generator(Protocol):
    """Generates images of items; each depends on its item and on `facts`, and on nothing else."""

    batch: int
    """Items that are generated at a time."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What generates the images, as plain values: a name, settings, digests of what it uses."""
        ...

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if one of the items cannot be generated, before any is."""

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return the images of at most `batch` items."""
        ...


class FolderGenerator:
    """Existing images named in a CSV file: the columns of a plan, and `file`, relative to its folder."""

    batch = 1

    def __init__(self, path: Path) -> None:
        self._folder, content = path.parent, path.read_bytes() if path.is_file() else b""
        rows = read_rows(path)
        validate_plan([item for item, _ in rows])  # a duplicate row would silently use the last file
        self._files = {item.id: row.get("file", "") for item, row in rows}
        self._digest = sha256(content).hexdigest()

    @property
    def facts(self) -> Mapping[str, Any]:
        """The list that the images come from."""
        return {"name": "folder", "list": self._digest}

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error unless every item is in the list, with a file in its folder."""
        for item in items:
            if not (file := self._files.get(item.id)):
                raise MiningError(
                    f"the list has no file for {item.category} with {item.nuisance} and seed {item.seed}"
                )
            self._path(file)

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return the images as they are, without transparency."""
        return [read_image(self._path(self._files[item.id])).convert("RGB") for item in items]

    def _path(self, file: str) -> Path:
        folder = self._folder.resolve()
        if "\0" not in file and (path := (folder / file).resolve()).is_relative_to(folder) and path.is_file():
            return path
        raise MiningError(f"file must be a file in the folder of the list, got {file!r}")


_GENERATORS: dict[str, Callable[..., Generator]] = {
    "composite": CompositeGenerator,
    "folder": FolderGenerator,
    "diffusers": DiffusionGenerator,
    "retouch": RetouchGenerator,
    "conditional": ConditionalGenerator,
}


def load_generator(text: str, **options: Any) -> Generator:
    """Return the generator that a text stands for.

    Args:
        text: `composite:CUTOUTS`, `folder:LIST.csv`, `diffusers:MODEL` or `conditional:FOLDER`.
        **options: those of the generator's class; `diffusers` with `photos` is a `RetouchGenerator`.
    """
    kind, _, source = text.partition(":")
    if kind not in _GENERATORS or kind == "retouch" or not source:
        raise OptionError(
            "generator must be composite:CUTOUTS, folder:LIST.csv, diffusers:MODEL or conditional:FOLDER, "
            f"got {text!r}"
        )
    made = _GENERATORS["retouch" if kind == "diffusers" and "photos" in options else kind]
    accepted = [*inspect.signature(_GENERATORS[kind]).parameters, *inspect.signature(made).parameters]
    for name in options:
        validate_choice(f"option of {kind}", name, accepted)
    options |= {name: Path(str(options[name])) for name in ("photos", "surfaces") if name in options}
    if kind == "conditional":
        options.setdefault("steps", 30)
    return made(source if kind == "diffusers" else Path(source), **options)


@dataclass(frozen=True)
class GeneratedImage:
    """An image that was generated, and how."""

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
    """Generate the images of a plan that a folder lacks, and return how many were generated.

    Started again after a kill, the folder ends with the same set. Images of another plan or generator are
    rejected before anything is generated, and nothing is deleted.

    Args:
        items: the plan.
        generator: what generates the images.
        output: the folder; an image is at its kind, category and id, beside `plan.csv`.
        progress: called with the number of existing images and of all.
    """
    plan = validate_plan(items)
    generator.check(plan)
    existing = _check_folder(plan, generator, output)
    write_plan(plan, output / PLAN)
    missing = [item for item in plan if item.id not in existing]
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
    """Return the images in a folder with how they were generated, in the order of their paths."""
    return tuple(map(read_image_facts, _image_files(folder)))


def read_image_facts(path: Path) -> GeneratedImage:
    """Read how an image was generated from its own metadata; an error if it is damaged or renamed."""
    try:
        read_image(path)  # rejects what is damaged, or too large
        with Image.open(path, formats=["PNG"]) as opened:
            about = json.loads(opened.info[_KEY])
        (item,) = validate_plan([PlanItem(**about["item"])])  # its names become folders
        generator = dict(about["generator"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MiningError(
            f"{path} is damaged or not a generated image ({error!r}); delete it to generate it again"
        ) from None
    if path.stem != item.id:
        raise MiningError(f"{path} was renamed; its id is {item.id}")
    return GeneratedImage(path, item, generator)


def _check_folder(plan: Sequence[PlanItem], generator: Generator, output: Path) -> set[str]:
    """Return the ids of existing images; reject a folder of another plan or generator."""
    planned = {item.id for item in plan}
    facts = _plain(generator.facts)
    existing = set()
    for found in map(read_image_facts, _image_files(output)):
        if found.item.id not in planned:
            raise MiningError(
                f"{found.item.file} in {output} is not in the plan: {found.item.prompt!r}, seed "
                f"{found.item.seed}; restore the row, move the image away, or use a new folder"
            )
        if found.generator != facts:
            raise MiningError(
                f"{output} was filled by a different generator or with different settings: "
                f"{json.dumps(found.generator)} for {found.item.file}, now {json.dumps(facts)}"
            )
        existing.add(found.item.id)
    return existing


def _image_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*/*/*.png")) if not path.name.startswith("."))


def _encoded(image: Image.Image, item: PlanItem, generator: Generator) -> bytes:
    about = PngImagePlugin.PngInfo()
    about.add_itxt(_KEY, json.dumps({"item": asdict(item), "generator": _plain(generator.facts)}))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", pnginfo=about)
    return buffer.getvalue()


def _plain(facts: Mapping[str, Any]) -> Any:
    """Facts after a round trip through JSON, for comparison."""
    return json.loads(json.dumps(facts))
