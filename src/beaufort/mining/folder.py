"""Images that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from PIL import Image

from beaufort.data.images import read_image
from beaufort.mining.plan import MiningError, PlanItem, checked, read_rows


class FolderGenerator:
    """Images named in a CSV file: the columns of a plan, and `file`, relative to the CSV file's folder."""

    batch = 1

    def __init__(self, path: Path) -> None:
        self._folder, content = path.parent, path.read_bytes() if path.is_file() else b""
        rows = read_rows(path)
        checked([item for item, _ in rows])  # none twice, or the last file would silently be taken
        self._files = {item.id: row.get("file", "") for item, row in rows}
        self._digest = sha256(content).hexdigest()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Which list the images are from."""
        return {"name": "folder", "list": self._digest}

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every item must be in the list, with a file in its folder."""
        for item in items:
            if not (file := self._files.get(item.id)):
                raise MiningError(
                    f"every row of the plan must be in the list with a file, got none for {item.category} "
                    f"with {item.nuisance} and seed {item.seed}"
                )
            self._path(file)

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The images as they are, without transparency."""
        return [read_image(self._path(self._files[item.id])).convert("RGB") for item in items]

    def _path(self, file: str) -> Path:
        folder = self._folder.resolve()
        if (
            "\0" in file
            or not (path := (folder / file).resolve()).is_relative_to(folder)
            or not path.is_file()
        ):
            raise MiningError(f"file must be a file in the folder of the list, got {file!r}")
        return path
