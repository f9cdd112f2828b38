"""Where the data that some tests compare with lies, and what is random in tests."""

from __future__ import annotations

import os
from functools import cache
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


FILES = {
    "frost": [
        f"frost/frost{i}.{kind}" for i, kind in enumerate(["png", "png", "png", "jpg", "jpg"], start=1)
    ],
    "pessimal_noise": ["mnist-c/pessimal_noise_matrix.f32"],
}


@cache
def _missing(corruption: str) -> str:
    from beaufort.catalog import fetch
    from beaufort.errors import AssetError

    try:
        for name in FILES.get(corruption, []):
            fetch(name)
    except AssetError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _files_at_hand(request: pytest.FixtureRequest) -> None:
    """A test of a corruption (its parameter `name`) whose files cannot be had is skipped."""
    call = getattr(request.node, "callspec", None)
    name = call.params.get("name") if call else None
    if isinstance(name, str) and (reason := _missing(name)):
        pytest.skip(reason)
