"""Where a result came from: versions, machine, time, state of the code. None of it changes an answer."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from beaufort._core.text import command_without_secrets
from beaufort.evaluation._commit import checked_out

_PACKAGES = ("beaufort", "numpy", "numba", "opencv-python-headless", "pillow", "onnxruntime", "torch", "timm")


def provenance() -> dict[str, Any]:
    """The facts of this process that stand beside a result."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "command": command_without_secrets(sys.argv),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "git": checked_out(Path.cwd()),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
