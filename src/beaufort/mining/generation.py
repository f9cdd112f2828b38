"""Generation of the images of a plan: one PNG for each row, with all facts in its metadata."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from PIL import Image, PngImagePlugin

from beaufort._core.errors import OptionError
from beaufort._core.files import remove_leftovers, write_bytes, write_output
from beaufort._core.validation import validate_choice
from beaufort.data.images import read_image
from beaufort.mining.composite import CompositeGenerator
from beaufort.mining.conditional import ConditionalGenerator
from beaufort.mining.diffusion import DiffusionGenerator, RetouchGenerator
from beaufort.mining.plan import (
    MiningError,
    OmittedImage,
    PlanItem,
    read_plan,
    read_rows,
    validate_plan,
    write_plan,
)

PLAN = "plan.csv"
"""Copy of the plan in the folder of the images, so that later steps know which images must exist."""
INDEX = "index.jsonl"
"""List of the generated and the omitted images, so that resuming does not decode them."""
_WRITERS = 8
"""Threads that encode and write images, because they mostly wait for the disk."""
_KEY = "beaufort"
_HEADER = {"format": "beaufort generated images", "version": 1}


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

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image | OmittedImage]:
        """Return the images of at most `batch` items, or why one is omitted."""
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
    generator is rejected before anything is generated. Images that the generator omits are not tried again;
    see `read_omitted`.

    Args:
        items: the plan.
        generator: the generator.
        output: the folder, with images at `KIND/CATEGORY/ID.png` beside `plan.csv` and `index.jsonl`.
        progress: called with the number of existing images and the number of all.
    """
    plan = validate_plan(items)
    generator.check(plan)
    facts = _plain(generator.facts)
    index = _check_folder(plan, facts, output)
    write_plan(plan, output / PLAN)
    missing = [item for item in plan if item.id not in index]
    if not missing:
        return 0
    for folder in sorted({(output / item.file).parent for item in missing}):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
    text, generated = json.dumps(facts), 0

    def write(pair: tuple[PlanItem, Image.Image | OmittedImage]) -> _Entry:
        item, image = pair
        if isinstance(image, OmittedImage):
            return {"id": item.id, "omitted": image.reason}
        path = output / item.file
        write_bytes(path, _encode(image, item, text))
        return {"id": item.id, **_state(path.stat())}

    with (
        (output / INDEX).open("a", encoding="utf-8") as lines,
        ThreadPoolExecutor(_WRITERS) as pool,
    ):
        for start in range(0, len(missing), generator.batch):
            some = missing[start : start + generator.batch]
            for entry in pool.map(write, zip(some, generator.make(some), strict=True)):
                generated += "omitted" not in entry
                lines.write("\n" + json.dumps(entry))
            lines.flush()
            if progress is not None:
                progress(len(plan) - len(missing) + start + len(some), len(plan))
    return generated


def read_generated(folder: Path) -> tuple[GeneratedImage, ...]:
    """Return the generated images in a folder, in the order of their paths.

    Images in the index that have not changed are not decoded.
    """
    facts, index = _read_index(folder)
    planned = {item.id: item for item in read_plan(folder / PLAN)} if index else {}
    return tuple(
        GeneratedImage(folder / file, planned[id], facts)
        if id in planned and planned[id].file == file and _matches(index.get(id), state)
        else read_image_facts(folder / file)
        for file, id, state in _image_files(folder)
    )


def read_omitted(folder: Path) -> dict[str, str]:
    """Return the reasons for which planned images were omitted, by the id of the item."""
    _, index = _read_index(folder)
    return {id: entry["omitted"] for id, entry in index.items() if "omitted" in entry}


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


def _encode(image: Image.Image, item: PlanItem, facts: str) -> bytes:
    about = PngImagePlugin.PngInfo()
    about.add_itxt(_KEY, f'{{"item": {json.dumps(asdict(item))}, "generator": {facts}}}')
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", pnginfo=about)
    return buffer.getvalue()


def _plain(facts: Mapping[str, Any]) -> Any:
    """Return facts after a round trip through JSON, for comparison."""
    return json.loads(json.dumps(facts))


# The index: a line with the facts of the generator, then a line for each image. An image whose size and time
# are those of its line was written completely by this generator, so that it need not be decoded. Each line
# begins with a line break, so that the rest of a line that was cut off does not damage the next one.

_Entry = dict[str, Any]


def _check_folder(plan: Sequence[PlanItem], facts: Mapping[str, Any], output: Path) -> dict[str, _Entry]:
    """Return the index of a plan's images; an error if the folder has another plan or generator."""
    planned = {item.id: item for item in plan}
    known_facts, known = _read_index(output)
    if known_facts != facts:
        known = {}
    index = {id: entry for id, entry in known.items() if "omitted" in entry and id in planned}
    for file, id, state in _image_files(output):
        if id not in planned or planned[id].file != file or not _matches(known.get(id), state):
            _check_image(read_image_facts(output / file), planned, facts, output)
        index[id] = {"id": id, **state}
    if known_facts != facts or index != known:
        lines = [{**_HEADER, "generator": facts}, *index.values()]
        write_output(output / INDEX, "\n".join(map(json.dumps, lines)).encode())
    return index


def _check_image(
    image: GeneratedImage, planned: Container[str], facts: Mapping[str, Any], output: Path
) -> None:
    item = image.item
    if item.id not in planned:
        raise MiningError(
            f"{item.file} in {output} is not in the plan ({item.prompt!r}, seed {item.seed}); restore the "
            "row, move the image away, or use a new folder"
        )
    if image.generator != facts:
        raise MiningError(
            f"{output} was filled by a different generator or with different settings: "
            f"{json.dumps(image.generator)} for {item.file}, now {json.dumps(facts)}"
        )


def _read_index(folder: Path) -> tuple[Any, dict[str, _Entry]]:
    """Return the facts of the generator and the entries by id; nothing if the index is missing or damaged."""
    try:
        header, *lines = (folder / INDEX).read_text(encoding="utf-8").split("\n")
        about = json.loads(header)
        facts = about.pop("generator")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, {}
    index = {}
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):  # cut off by a kill
            entry = json.loads(line)
            index[entry["id"]] = dict(entry)
    return (facts, index) if about == _HEADER else (None, {})


def _image_files(folder: Path) -> Iterator[tuple[str, str, _Entry]]:
    """Yield the path, the id and the state of each PNG file, in the order of the paths."""
    for parent in sorted(path for path in folder.glob("*/*") if path.is_dir()):
        with os.scandir(parent) as found:
            files = sorted(
                (
                    (one.name, _state(one.stat()))
                    for one in found
                    if one.name.endswith(".png") and not one.name.startswith(".")
                ),
                key=itemgetter(0),
            )
        place = parent.relative_to(folder).as_posix()
        for name, state in files:
            yield f"{place}/{name}", name.removesuffix(".png"), state


def _state(status: os.stat_result) -> _Entry:
    return {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _matches(entry: _Entry | None, state: _Entry) -> bool:
    return entry is not None and all(entry.get(key) == value for key, value in state.items())
