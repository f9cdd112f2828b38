"""Files that are written whole, or not at all with a message."""

from __future__ import annotations

from pathlib import Path

from beaufort._core.files import write_output


def write_file(path: Path | str, content: bytes) -> Path:
    """Write a file; its folder is made, and a file that is there is replaced."""
    target = Path(path)
    write_output(target, content)
    return target
