"""Files that are written whole, or not at all with a message."""

from __future__ import annotations

from pathlib import Path

from beaufort.errors import OptionError
from beaufort.files import write_output

__all__ = ["write_file"]


def write_file(path: Path | str, content: bytes) -> Path:
    """Write a file; its folder is made, and a file that is there is replaced."""
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"output must be a file, got the folder {target}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_output(target, content)
    except OSError as error:
        raise OptionError(f"{target} cannot be written ({error.strerror or error})") from None
    return target
