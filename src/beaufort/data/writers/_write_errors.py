"""Errors of the output that end a job, because the next file would meet them too."""

from __future__ import annotations

import errno
from pathlib import Path

_HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


def stop_reason(path: Path, error: OSError) -> str | None:
    """The sentence that tells why the job stops; None for an error of this one file."""
    if error.errno not in _HOPELESS:
        return None
    what = f"{path} could not be written ({error.strerror})"
    return f"{what}; what is complete stays, and a second run makes the rest"
