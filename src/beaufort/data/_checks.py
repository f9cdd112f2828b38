"""Checks and error messages that the readers of datasets share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from beaufort._core.errors import BeaufortError, ImageFileError


@contextmanager
def reading(
    what: object, errors: type[Exception] | tuple[type[Exception], ...] = Exception
) -> Iterator[None]:
    """Turn errors into an `ImageFileError` that names what was being read.

    Parsers of damaged bytes may raise anything, so all exceptions are turned by default.
    """
    try:
        yield
    except BeaufortError:
        raise
    except errors as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ImageFileError(f"cannot read {what}: {reason:.200}") from None


def check_none_missing(
    what: str,
    missing: Sequence[object],
    total: int,
    *,
    hint: str = "",
    error: type[BeaufortError] = ImageFileError,
) -> None:
    """Raise an error that counts what is missing and names the first."""
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise error(f"{len(missing):,} of {total:,} {what} {verb} missing (first: {missing[0]!r}){hint}")


def find_file(where: object, paths: Iterable[Path], what: str, *, hint: str = "") -> Path:
    """Return the first path that is a file; raise an error if there is none."""
    for path in paths:
        if path.is_file():
            return path
    raise ImageFileError(f"{what} not found in {where}{hint}")


def check_at_most(what: object, size: int, limit: int, unit: str = "bytes") -> None:
    """Raise an error if something would need too much memory."""
    if size > limit:
        raise ImageFileError(f"{what} is too large: at most {limit:,} {unit} are supported, got {size:,}")


def unsafe_path_reason(name: str) -> str | None:
    """Return why a file name from a list is rejected; None if it stays inside its directory.

    >>> unsafe_path_reason("a/b.png"), unsafe_path_reason("../b.png") is None
    (None, False)
    """
    path, windows = PurePosixPath(name), PureWindowsPath(name)
    if not name or "\0" in name:
        return "it is not a file name"
    if path.is_absolute() or windows.drive or windows.root or ".." in (*path.parts, *windows.parts):
        return "it leads out of the dataset; only files inside are read"
    return None
