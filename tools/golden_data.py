"""Outputs of the published programs, from their directory or from the pack in the repository.

Each output is compared with ours for the same random numbers. `gate.csv` records the number of values that
differ and the largest difference; neither may grow.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.text import csv_text
from beaufort.corruptions import Choice, corruptions, cpu_ops
from beaufort.corruptions.rng import ReferenceStream

__all__ = ["GATE", "PACK", "Count", "Entry", "Row", "from_folder", "from_pack", "measure", "read_gate"]

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
PACK = GOLDEN / "reference.zip"
GATE = GOLDEN / "gate.csv"

FILES = {"imagenet": "imagenet_c_224", "tiny": "tiny_imagenet_c_64", "cifar": "cifar_c_32"}
"""The files with photos, by the scale of their constants."""
BAR_FILES = {"imagenet": "imagenet_c_bar_224", "cifar": "cifar_c_bar_32"}
"""The same of C-bar."""
DIGITS = "mnist_c"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Entry:
    """Images, and the outputs of the published program for them."""

    scale: str
    corruption: str
    severity: int | None
    """None for digits: each corruption has one published severity."""
    picture: str
    images: Bytes
    """`(n, h, w, c)`: one photo, or some digits."""
    wanted: Bytes
    """The outputs, `(n, rows, w, c)`; for some images only the upper rows."""
    seeds: tuple[int, ...]
    """One per image."""

    @property
    def key(self) -> str:
        """The name in tables and in the pack."""
        severity = "published" if self.severity is None else self.severity
        return f"{self.scale}/{self.corruption}/{severity}/{self.picture}"

    def choose(self) -> Choice:
        """Return the recipe and the constants of our corruption."""
        side = min(self.images.shape[1:3])
        return corruptions[self.corruption].choose(self.severity, scale=self.scale, side=side)

    def made(self, image: Bytes, seed: int) -> Bytes:
        """Return our output for an image, with the random numbers of the published program."""
        made: Bytes = corruptions[self.corruption](
            image, self.severity, scale=self.scale, seed=seed, stream="reference"
        )
        return made


class Count(NamedTuple):
    """The difference of outputs."""

    values: int
    """Number of values compared."""
    differ: int
    """Number of values that differ."""
    largest: int
    """Largest difference in levels."""


class Row(NamedTuple):
    """A line of the gate."""

    entry: str
    data: str
    """`full` for the directory of outputs, `packed` for the part in the repository."""
    counted: Count


def measure(entry: Entry, choice: Choice | None = None) -> Count:
    """Compare our outputs with those of the published program, optionally with other constants."""
    differ = largest = 0
    for image, wanted, seed in zip(entry.images, entry.wanted, entry.seeds, strict=True):
        made = entry.made(image, seed) if choice is None else _made(choice, image, seed)
        off = np.abs(made[: len(wanted)].astype(np.int16) - wanted)
        differ += int(np.count_nonzero(off))
        largest = max(largest, int(off.max()))
    return Count(entry.wanted.size, differ, largest)


def _made(choice: Choice, image: Bytes, seed: int) -> Bytes:
    made = choice.recipe.run(image[None], choice.params, lambda: ReferenceStream(seed), cpu_ops())[0]
    return np.asarray(made, np.uint8)


def read_gate(path: Path = GATE) -> dict[tuple[str, str], Count]:
    """Return the recorded counts by entry and kind of data."""
    with path.open(newline="") as file:
        return {
            (row["entry"], row["data"]): Count(int(row["values"]), int(row["differ"]), int(row["largest"]))
            for row in csv.DictReader(file)
        }


def write_gate(rows: Iterable[Row], path: Path = GATE) -> None:
    """Write counts."""
    lines = [(row.entry, row.data, *row.counted) for row in rows]
    path.write_text(csv_text(["entry", "data", *Count._fields], lines), encoding="utf-8", newline="")


def from_folder(folder: Path) -> Iterator[Entry]:
    """Yield all outputs on photos at scales `imagenet`, `tiny` and `cifar`, and on digits.

    If the output depends on the age of the libraries, the one of today's libraries is used.
    """
    for scale, name in (*FILES.items(), *BAR_FILES.items()):
        yield from _photos(folder / name, scale)
    with np.load(folder / f"{DIGITS}.npz") as stored:
        seeds = dict(zip(stored["seed_keys"].tolist(), stored["seed_values"].tolist(), strict=True))
        images = stored["inputs"][..., None]
        for key in [key for key in stored.files if key.startswith("out/")]:
            name = key.removeprefix("out/")
            yield Entry(
                "mnist", name, None, "digits", images, _today(stored, key)[..., None], tuple(seeds[name])
            )


def _photos(path: Path, scale: str) -> Iterator[Entry]:
    with np.load(path.with_suffix(".npz")) as stored:
        seeds = dict(zip(stored["seed_keys"].tolist(), stored["seed_values"].tolist(), strict=True))
        images = dict(zip(stored["input_names"].tolist(), stored["inputs"], strict=True))
        for key in [key for key in stored.files if key.startswith("out/")]:
            _, name, severity, image = key.split("/")
            seed = seeds[f"{name}/{severity}/{image}"]
            wanted = _today(stored, key)[None]
            yield Entry(scale, name, int(severity), image, images[image][None], wanted, (seed,))


def _today(stored: Any, key: str) -> Bytes:
    modern = key.replace("out/", "out_modern/")
    found: Bytes = stored[modern if modern in stored.files else key]
    return found


def from_pack(path: Path = PACK) -> Iterator[Entry]:
    """Yield the outputs in the repository."""
    with zipfile.ZipFile(path) as pack:
        manifest = json.loads(pack.read("manifest.json"))
        all_images = {name: _unpack(pack, name, shape) for name, shape in manifest["pictures"].items()}
        for key, about in manifest["entries"].items():
            scale, name, severity, image = key.split("/")
            images = all_images[f"{scale}/{image}"]
            kept = _unpack(pack, key, (len(images), about["rows"], *images.shape[2:]))
            wanted = kept + images[:, : about["rows"]] if about["difference"] else kept
            level = None if severity == "published" else int(severity)
            yield Entry(scale, name, level, image, images, wanted, tuple(about["seeds"]))


def write_pack(entries: Iterable[Entry], about: dict[str, Any], path: Path = PACK) -> None:
    """Write each output as lossless WebP, or its difference to the image modulo 256 if that is smaller."""
    manifest: dict[str, Any] = {**about, "pictures": {}, "entries": {}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for entry in entries:
            name, rows = f"{entry.scale}/{entry.picture}", entry.wanted.shape[1]
            if name not in manifest["pictures"]:
                manifest["pictures"][name] = entry.images.shape
                _put(pack, name, _webp(entry.images))
            plain, difference = _webp(entry.wanted), _webp(entry.wanted - entry.images[:, :rows])
            smaller = len(difference) < len(plain)
            _put(pack, entry.key, difference if smaller else plain)
            manifest["entries"][entry.key] = {"seeds": entry.seeds, "rows": rows, "difference": smaller}
        _put(pack, "manifest.json", json.dumps(manifest, indent=1).encode())


def _put(pack: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a member with a fixed date, so that the same outputs give the same file."""
    member = name if name.endswith(".json") else f"{name}.webp"
    kind = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
    pack.writestr(zipfile.ZipInfo(member, (2020, 1, 1, 0, 0, 0)), content, kind)


def _webp(images: Bytes) -> bytes:
    """Stack images vertically; grayscale ones become color."""
    sheet = np.repeat(images, 3 // images.shape[-1], axis=-1).reshape(-1, images.shape[2], 3)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "WEBP", lossless=True, quality=100, method=6)
    return file.getvalue()


def _unpack(pack: zipfile.ZipFile, name: str, shape: Iterable[int]) -> Bytes:
    count, rows, columns, channels = shape
    sheet = np.asarray(Image.open(io.BytesIO(pack.read(f"{name}.webp"))).convert("RGB"))
    return np.ascontiguousarray(sheet[..., :channels]).reshape(count, rows, columns, channels)
