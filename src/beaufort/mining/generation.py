"""Generation of the images of a plan: one PNG for each row, with all facts in its metadata."""

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
"""Copy of the plan in the folder of the images, so that later steps know which images must exist."""
_KEY = "beaufort"


class Generator(Protocol):
    """Generates images, each of which depends only on its item and on `facts`."""

    batch: int
    """Largest number of items of one call of `make`."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Name, settings and digests of inputs, as plain values."""
        ...

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if one of the items cannot be generated."""

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return the images of at most `batch` items."""
        ...


class FolderGenerator:
    """Existing images named in a CSV file: the columns of a plan, and `file`, relative to its folder."""

    batch = 1

    def __init__(self, path: Path) -> None:
        rows = read_rows(path)
        validate_plan([item for item, _ in rows])  # a duplicate row would silently use the last file
        self._folder = path.parent.resolve()
        self._files = {item.id: row.get("file", "") for item, row in rows}
        self._digest = sha256(path.read_bytes()).hexdigest()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Digest of the list of images."""
        return {"name": "folder", "list": self._digest}

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error unless every item has a file in the folder of the list."""
        for item in items:
            if not (file := self._files.get(item.id)):
                raise MiningError(
                    f"the list has no file for {item.category} with {item.nuisance} and seed {item.seed}"
                )
            self._path(file)

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return the images without transparency."""
        return [read_image(self._path(self._files[item.id])).convert("RGB") for item in items]

    def _path(self, file: str) -> Path:
        path = self._folder / file
        if "\0" in file or not path.resolve().is_relative_to(self._folder) or not path.is_file():
            raise MiningError(f"file must be a file in the folder of the list, got {file!r}")
        return path


_GENERATORS: dict[str, Callable[..., Generator]] = {
    "composite": CompositeGenerator,
    "folder": FolderGenerator,
    "diffusers": DiffusionGenerator,
    "retouch": RetouchGenerator,
    "conditional": ConditionalGenerator,
}


def load_generator(text: str, **options: Any) -> Generator:
    """Return a generator by its name.

    Args:
        text: `composite:CUTOUTS`, `folder:LIST.csv`, `diffusers:MODEL` or `conditional:FOLDER`.
        **options: options of the generator's class; `diffusers` with `photos` is a `RetouchGenerator`.
    """
    kind, _, source = text.partition(":")
    if kind not in _GENERATORS or kind == "retouch" or not source:
        raise OptionError(
            "generator must be composite:CUTOUTS, folder:LIST.csv, diffusers:MODEL or conditional:FOLDER, "
            f"got {text!r}"
        )
    generator = _GENERATORS["retouch" if kind == "diffusers" and "photos" in options else kind]
    accepted = [*inspect.signature(_GENERATORS[kind]).parameters, *inspect.signature(generator).parameters]
    for name in options:
        validate_choice(f"option of {kind}", name, accepted)
    options |= {name: Path(str(options[name])) for name in ("photos", "surfaces") if name in options}
    if kind == "conditional":
        options.setdefault("steps", 30)
    return generator(source if kind == "diffusers" else Path(source), **options)


@dataclass(frozen=True)
class GeneratedImage:
    """A generated image with its item and the facts of its generator."""

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
    """Generate the images of a plan that are missing in a folder, and return how many were generated.

    An interrupted run can be resumed with the same result. A folder with images of a different plan or
    generator is rejected before anything is generated.

    Args:
        items: the plan.
        generator: the generator.
        output: the folder, with images at `KIND/CATEGORY/ID.png` beside `plan.csv`.
        progress: called with the number of existing images and the number of all.
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
            write_bytes(path, _encode(image, item, generator))
        if progress is not None:
            progress(len(plan) - len(missing) + start + len(some), len(plan))
    return len(missing)


def read_generated(folder: Path) -> tuple[GeneratedImage, ...]:
    """Return the generated images in a folder, in the order of their paths."""
    return tuple(map(read_image_facts, _image_files(folder)))


def read_image_facts(path: Path) -> GeneratedImage:
    """Read a generated image's metadata; an error if the file is damaged or renamed."""
    try:
        read_image(path)  # rejects damaged and too large files
        with Image.open(path, formats=["PNG"]) as opened:
            about = json.loads(opened.info[_KEY])
        (item,) = validate_plan([PlanItem(**about["item"])])  # names are used as folders
        generator = dict(about["generator"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MiningError(
            f"{path} is damaged or not a generated image ({error!r}); delete it to generate it again"
        ) from None
    if path.stem != item.id:
        raise MiningError(f"{path} was renamed; its id is {item.id}")
    return GeneratedImage(path, item, generator)


def _check_folder(plan: Sequence[PlanItem], generator: Generator, output: Path) -> set[str]:
    """Return the ids of existing images; an error if the folder belongs to a different plan or generator."""
    planned = {item.id for item in plan}
    facts = _plain(generator.facts)
    existing = set()
    for found in map(read_image_facts, _image_files(output)):
        if found.item.id not in planned:
            raise MiningError(
                f"{found.item.file} in {output} is not in the plan ({found.item.prompt!r}, seed "
                f"{found.item.seed}); restore the row, move the image away, or use a new folder"
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


def _encode(image: Image.Image, item: PlanItem, generator: Generator) -> bytes:
    about = PngImagePlugin.PngInfo()
    about.add_itxt(_KEY, json.dumps({"item": asdict(item), "generator": _plain(generator.facts)}))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", pnginfo=about)
    return buffer.getvalue()


def _plain(facts: Mapping[str, Any]) -> Any:
    """Return facts after a round trip through JSON, for comparison."""
    return json.loads(json.dumps(facts))
