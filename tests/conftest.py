"""Where the data that some tests compare with lies, and what is random in tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("BEAUFORT_SHARED", ROOT.parent / "shared"))

if (SHARED / "reference" / "assets").is_dir():
    os.environ.setdefault("BEAUFORT_MIRROR", str(SHARED / "reference" / "assets"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data; a test that asks for it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no reference data at {SHARED}; name its folder in BEAUFORT_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def assets() -> None:
    """Frost's textures and the pessimal noise matrix are at hand, or the test is skipped."""
    from beaufort.catalog import assets, fetch
    from beaufort.errors import AssetError

    try:
        for name in assets:
            fetch(name)
    except AssetError as error:
        pytest.skip(str(error))
