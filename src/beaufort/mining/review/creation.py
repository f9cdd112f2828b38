"""From a list of images to a review."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from beaufort._core.errors import BeaufortError
from beaufort._core.text import encodable
from beaufort.data.images import decode_image
from beaufort.mining.review.access import invite
from beaufort.mining.review.database import SCHEMA, VERSION, ReviewError, connect, open_review
from beaufort.mining.review.rules import ReviewRules

ROLES = ("", "control-valid", "control-invalid", "example-valid", "example-invalid")
"""What an image is for: to be judged, a hidden control, or an example beside the instructions."""

_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


class _Entry(NamedTuple):
    file: str
    sha256: str
    type: str
    category: str
    role: str


def create_review(
    path: Path,
    images: Path,
    *,
    rules: ReviewRules | None = None,
    title: str = "Image review",
    seed: int = 0,
) -> str:
    """Make a review in a new file; gives the token of its administrator, which nobody can look up later.

    Args:
        path: the file to make.
        images: a CSV file with the columns `file`, relative to its folder, `category`, and, where there are
            controls or examples, `role`.
        rules: when images are decided; the defaults of `ReviewRules` if not given.
        title: as reviewers read it.
        seed: of the order of the images, which hides the controls among the others.
    """
    if path.exists():
        raise ReviewError(f"{path} already exists; create the review in a new file")
    entries = sorted(_read(images), key=lambda entry: entry.file)
    random.Random(seed).shuffle(entries)
    if not any(entry.role == "" for entry in entries):
        raise ReviewError(f"{images} has no image to judge: all have a role")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = connect(path)
    except sqlite3.OperationalError as error:
        raise ReviewError(f"cannot create {path}: {error}") from None
    with contextlib.closing(opened) as connection:
        connection.executescript("BEGIN IMMEDIATE;" + SCHEMA)
        about = {
            "version": str(VERSION),
            "folder": str(images.parent.resolve()),
            "title": encodable(title),
            "rules": json.dumps(asdict(rules or ReviewRules())),
        }
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        connection.executemany(
            "INSERT INTO images (file, sha256, type, category, role) VALUES (?, ?, ?, ?, ?)",
            entries,
        )
        connection.execute("COMMIT")
    return invite(open_review(path), "admin", admin=True)


def _read(images: Path) -> Iterator[_Entry]:
    try:
        lines = csv.DictReader(io.StringIO(images.read_text(encoding="utf-8-sig")), strict=True)
        rows = [(lines.line_num, row) for row in lines]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReviewError(f"cannot read {images} as a CSV file in UTF-8: {error}") from None
    if missing := {"file", "category"} - set(lines.fieldnames or ()):
        raise ReviewError(f"{images} has no column {' or '.join(sorted(missing))}")
    seen: set[str] = set()
    for line, row in rows:
        try:
            entry = _entry(images.parent, row)
        except BeaufortError as error:
            raise ReviewError(f"{images}, line {line}: {error}") from None
        if entry.file in seen:
            raise ReviewError(f"{images}, line {line}: duplicate file {entry.file}")
        seen.add(entry.file)
        yield entry


def _entry(folder: Path, row: dict[str, str | None]) -> _Entry:
    file, category, role = ((row.get(name) or "").strip() for name in ("file", "category", "role"))
    if not category:
        raise ReviewError("category must not be empty")
    if role not in ROLES:
        raise ReviewError(f"role must be empty or one of {', '.join(ROLES[1:])}, got {role!r}")
    content = read_listed(folder, file)
    decode_image(content)  # rejects what is no image, or too large
    with Image.open(io.BytesIO(content)) as opened:
        if opened.format not in _TYPES:
            raise ReviewError(f"an image must be PNG, JPEG or WebP, got {opened.format}")
        return _Entry(file, sha256(content).hexdigest(), _TYPES[opened.format], category, role)


def read_listed(folder: Path, file: str) -> bytes:
    """The bytes of a file that lies in the folder of the list, and nowhere else."""
    if not file or "\0" in file or not (path := (folder / file).resolve()).is_relative_to(folder.resolve()):
        raise ReviewError(f"{file!r} is not in the folder of the list")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReviewError(f"cannot read the image {file!r}: {error.strerror}") from None
