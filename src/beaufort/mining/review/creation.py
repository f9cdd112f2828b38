"""Creation of a review from a list of images."""

from __future__ import annotations

import contextlib
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
from beaufort._core.files import read_csv
from beaufort._core.text import encodable
from beaufort.data.images import decode_image
from beaufort.mining.review.access import invite
from beaufort.mining.review.database import SCHEMA, VERSION, ReviewError, connect, open_review
from beaufort.mining.review.rules import ReviewRules

ROLES = ("", "control-valid", "control-invalid", "example-valid", "example-invalid")
"""Roles of images: to be reviewed, a hidden control, or an example in the instructions."""

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
    """Create a review in a new file, and return the token of its administrator, which is not stored.

    Args:
        path: the new file.
        images: CSV file with the columns `file`, relative to its folder, `category`, and optionally `role`.
        rules: when images are decided; defaults of `ReviewRules` if None.
        title: title for reviewers.
        seed: seed of the order of images, which hides the controls.
    """
    if path.exists():
        raise ReviewError(f"{path} already exists; create the review in a new file")
    entries = sorted(_read(images), key=lambda entry: entry.file)
    random.Random(seed).shuffle(entries)
    if not any(entry.role == "" for entry in entries):
        raise ReviewError(f"{images} has no image to review: all have a role")
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
    seen: set[str] = set()
    for line, row in read_csv(images, ["file", "category"], ReviewError):
        try:
            entry = _entry(images.parent, row)
            if entry.file in seen:
                raise ReviewError(f"duplicate file {entry.file}")
        except BeaufortError as error:
            raise ReviewError(f"{images}, line {line}: {error}") from None
        seen.add(entry.file)
        yield entry


def _entry(folder: Path, row: dict[str, str]) -> _Entry:
    file, category, role = (row.get(name, "").strip() for name in ("file", "category", "role"))
    if not category:
        raise ReviewError("category must not be empty")
    if role not in ROLES:
        raise ReviewError(f"role must be empty or one of {', '.join(ROLES[1:])}, got {role!r}")
    content = read_listed(folder, file)
    decode_image(content)  # rejects damaged and too large images
    with Image.open(io.BytesIO(content)) as opened:
        if opened.format not in _TYPES:
            raise ReviewError(f"an image must be PNG, JPEG or WebP, got {opened.format}")
        return _Entry(file, sha256(content).hexdigest(), _TYPES[opened.format], category, role)


def read_listed(folder: Path, file: str) -> bytes:
    """Return the content of a file, which must be in the folder of the list."""
    if not file or "\0" in file or not (path := (folder / file).resolve()).is_relative_to(folder.resolve()):
        raise ReviewError(f"{file!r} is not in the folder of the list")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReviewError(f"cannot read the image {file!r}: {error.strerror}") from None
