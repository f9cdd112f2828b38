"""A store in an S3 bucket behind a faulty network: right results or a clear error."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beaufort._core import remote
from beaufort.store import FaultyFileError, FileStore, Kind, StoreError, _remote, query
from beaufort.testing import STORE_CONTRACTS
from tests.commands import invoke
from tests.store.s3_server import FAULTS, KEY, SECRET, Proxy, Request
from tests.torture.commands import digits, suite
from tests.torture.stores import cell, make_predictions, rows_in_python, rows_in_sql


@pytest.fixture
def proxy(s3: str, s3_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy in front of the server; pauses are short, but long enough for a busy machine to respond."""
    monkeypatch.setattr(remote, "PAUSE_S", 0.001)
    monkeypatch.setattr(remote, "TIMEOUT_S", 300.0)
    with Proxy(s3_address) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        yield proxy


def now_and_then(fault: str, every: int = 4) -> Callable[[Request], str | None]:
    """A fault in every so many requests."""
    return lambda request: fault if request.number % every == 1 else None


def places(store: FileStore) -> list[Any]:
    return store.read(cell())["place"].to_pylist()


@pytest.mark.parametrize("contract", STORE_CONTRACTS)
def test_contracts(contract: str, s3: str) -> None:
    STORE_CONTRACTS[contract](FileStore(s3))


# Faults now and then: nobody notices.


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_now_and_then(fault: str, s3: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no response":
        monkeypatch.setattr(remote, "TIMEOUT_S", 2.0)
    proxy.faults = now_and_then(fault, 14 if fault == "no response" else 4)
    store = FileStore(s3)
    for start in (0, 10, 20):
        store.write(cell(), start, make_predictions(start, start + 10))
    assert store.missing(cell(), 40) == [(30, 40)]
    store.write(cell("other"), 0, make_predictions(0, 20))
    store.gather(cell())
    assert rows_in_python(store)[cell().fingerprint] == rows_in_python(local(store))[cell().fingerprint]
    assert query(store, "select sum(images)::int as n from cells").to_pylist() == [{"n": 50}]
    assert not store.verify()
    assert len(store.pieces()) == 2
    assert any(proxy.faults(request) for request in proxy.requests)


def local(store: FileStore) -> FileStore:
    """The same rows in memory, written at once."""
    other = FileStore(f"memory://{store.location.rpartition('/')[2]}")
    other.write(cell(), 0, make_predictions(0, 30))
    return other


# Faults always: a clear last word, and nothing half.


def impatient(location: str, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """A store with a timeout of half a second per response, and seven attempts."""
    with monkeypatch.context() as patch:
        patch.setattr(remote, "TIMEOUT_S", 0.5)
        return FileStore(location)


LAST_WORDS = {
    "error 500": "We encountered an error",
    "slow down": "reduce your request rate",
    "denied": "Access Denied",
    "no response": "imeout",
    "cut upload": "",
    "lost response": "",
}


@pytest.mark.parametrize("fault", LAST_WORDS)
def test_a_write_that_never_succeeds(
    fault: str, s3: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.faults = lambda request: fault if request.method == "PUT" else None
    store = impatient(s3, monkeypatch) if fault == "no response" else FileStore(s3)
    with pytest.raises(StoreError, match="s3://") as caught:
        store.write(cell(), 0, make_predictions(0, 10))
    message = str(caught.value)
    tries = 1 if fault == "denied" else remote.TRIES
    assert (
        tries <= len(proxy.requests) <= 2 * tries
    )  # a connection that is lost is made again once, further below
    assert ("7 times in" in message) == (fault != "denied")
    assert LAST_WORDS[fault] in message
    proxy.faults = lambda request: None
    store = FileStore(s3) if fault == "no response" else store
    kept = list(range(10)) if fault == "lost response" else []  # whole, or absent
    assert [p for pieces in store.listing().values() for p in pieces] == store.pieces()
    assert (places(store) if store.pieces() else []) == kept


@pytest.mark.parametrize("fault", ["error 500", "no response", "cut"])
def test_a_file_that_cannot_be_read_is_not_damaged(
    fault: str, s3: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileStore(s3).write(cell(), 0, make_predictions(0, 10))
    store = impatient(s3, monkeypatch) if fault == "no response" else FileStore(s3)
    proxy.faults = lambda request: fault if "/predictions/" in request.path else None
    with pytest.raises(FaultyFileError, match=r"cannot be read.*\(.*7 times.* s\b") as caught:
        store.read(cell())
    assert caught.value.finding.kind is Kind.unreadable
    assert [finding.kind for finding in store.collect()] == [Kind.unreadable]
    proxy.faults = lambda request: None
    assert places(FileStore(s3)) == list(range(10))  # it stayed where it was


@pytest.mark.parametrize("fault", ["error 500", "cut", "denied"])
def test_a_listing_that_fails_is_no_empty_store(fault: str, s3: str, proxy: Proxy) -> None:
    store = FileStore(s3)
    store.write(cell(), 0, make_predictions(0, 10))
    proxy.faults = lambda request: fault if request.lists else None
    for call in (store.listing, store.verify, lambda: query(store, "select 1"), store.check_exists):
        with pytest.raises(StoreError, match="cannot access"):
            call()


def test_a_listing_that_lags(s3: str, proxy: Proxy) -> None:
    """Files written by this process are known; listed files that are gone are looked up again."""
    proxy.lag = 3
    store = FileStore(s3)
    assert store.listing() == {}
    for start in (0, 10, 20):
        store.write(cell(), start, make_predictions(start, start + 10))
        assert store.missing(cell(), 30, store.listing()) == ([(start + 10, 30)] if start < 20 else [])
    store.gather(cell())
    assert places(store) == list(range(30))
    assert places(FileStore(s3)) == list(range(30))
    assert query(FileStore(s3), "select images from cells").to_pylist() == [{"images": 30}]


def test_a_listing_of_many_pages(s3: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories are listed in groups, page by page; a failed page is requested again."""
    monkeypatch.setattr(_remote, "_PAGE", 3)
    monkeypatch.setattr(_remote, "_GROUPS", 4)
    store = FileStore(s3)
    models = ["net", "net-1", "net-10", "net-11", "net2", "other", *(f"x{number}" for number in range(6))]
    paths = [
        f"predictions/model={one}/condition=c/{'0' * 32}-{n}-{n + 1}.parquet"
        for one in models
        for n in (0, 1)
    ]
    for path in paths:
        store.disk.write(path, b"content")
    here = FileStore(s3)  # which has written nothing
    before = len(proxy.requests)
    assert sorted(piece.path for piece in here.pieces()) == sorted(paths)
    requested = [request for request in proxy.requests[before:] if request.lists]
    assert (
        4 <= sum("prefix" in one.path and "delimiter=%2F" not in one.path for one in requested) < len(models)
    )
    proxy.faults = now_and_then("error 500", 3)
    assert sorted(piece.path for piece in here.pieces()) == sorted(paths)


_FILE = (
    "<Contents><Key>a/b &amp; c/{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
    "<ETag>&quot;{}&quot;</ETag><Size>{}</Size><Owner><ID>me</ID></Owner></Contents>"
)
_FOLDER = "<CommonPrefixes><Prefix>a/d/</Prefix></CommonPrefixes>"
_PAGES = {
    "files": _FILE.format(1, "x", 5) + _FILE.format("é", "y", 0),
    "files, then folders": _FILE.format(1, "x", 5) + _FOLDER,
    "a folder among files": _FILE.format(1, "x", 5) + _FOLDER + _FILE.format(2, "y", 6),
    "no file": _FOLDER,
}


def parsed_by_client(output: dict[str, Any]) -> dict[str, Any]:
    session = pytest.importorskip("botocore.session").get_session()
    shape = session.get_service_model("s3").operation_model("ListObjectsV2").output_shape
    parser = session.get_component("response_parser_factory").create_parser("rest-xml")
    found: dict[str, Any] = parser.parse(dict(output), shape)
    return found


@pytest.mark.parametrize("page", _PAGES)
def test_listing_page_equals_that_of_the_s3_client(page: str) -> None:
    truncated = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    body = f"<ListBucketResult>{truncated}{_PAGES[page]}</ListBucketResult>".encode()
    output: dict[str, Any] = {"body": body, "headers": {}, "status_code": 200}
    taken: dict[str, Any] = {}
    whole = parsed_by_client(output)
    remote._take_files(output, taken)
    assert (output["body"] != body) == bool(taken) == page.startswith("files")
    found = {**parsed_by_client(output), **taken}
    for facts in (*whole.get("Contents", ()), *found.get("Contents", ())):
        facts.pop("LastModified")  # the text here, a time there
        facts.pop("Owner", None)
    assert found == whole


@pytest.mark.parametrize("whole", [0, 1])
def test_a_truncated_page_is_rejected(whole: int) -> None:
    parsers = pytest.importorskip("botocore.parsers")
    file = _FILE.format(1, "x", 5)
    output: dict[str, Any] = {
        "body": f"<ListBucketResult>{whole * file}{file[:-30]}".encode(),
        "headers": {},
        "status_code": 200,
    }
    remote._take_files(output, {})
    with pytest.raises(parsers.ResponseParserError):
        parsed_by_client(output)


# Places


@pytest.mark.parametrize("way", ["file to s3", "s3 to file", "s3 to s3"])
def test_merging_between_any_two_places(way: str, s3: str, tmp_path: Path) -> None:
    source, target = (
        f"{s3}/{number}" if kind == "s3" else str(tmp_path / str(number))
        for number, kind in enumerate(way.split(" to "))
    )
    theirs, ours = FileStore(source), FileStore(target)
    for store, ranges in ((ours, ((0, 20), (20, 30))), (theirs, ((10, 30), (25, 40)))):
        for start, stop in ranges:
            store.write(cell(), start, make_predictions(start, stop))
    theirs.write(cell("other"), 0, make_predictions(0, 10))
    theirs.write_run({"suite": {}}, {"time": "2026"})
    damaged = theirs.write(cell("third"), 0, make_predictions(0, 10))
    theirs.disk.write(damaged.path, theirs.disk.read(damaged.path)[:-20])
    merged = ours.merge(theirs)
    assert [finding.path for finding in merged.left] == [damaged.path]
    assert places(ours) == list(range(40))
    assert len(ours.pieces()) == 2
    assert ours.runs() == theirs.runs()
    assert not ours.verify()
    assert ours.merge(theirs).copied == []
    rows_in_sql(ours)


def test_house_is_kept_in_a_bucket(s3: str) -> None:
    store = FileStore(s3)
    for start, stop in ((0, 40), (0, 20), (30, 60), (5, 15)):
        store.write(cell(), start, make_predictions(start, stop))
    damaged = next(piece for piece in store.pieces() if piece.start == 5)
    store.disk.write(damaged.path, b"nothing")
    assert len(store.collect()) == 3
    assert len(store.disk.files("quarantine")) == 2
    assert places(store) == list(range(60))
    assert not store.verify()
    store.collect(delete=True)
    assert not store.disk.files("quarantine")


def test_an_invalid_location_is_reported(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAUSE_S", 0.001)
    with pytest.raises(StoreError, match="is not a store"):
        FileStore(s3).check_exists()
    missing = FileStore("s3://no-such-bucket/results")
    with pytest.raises(StoreError, match="'no-such-bucket'"):
        missing.disk.check_place()
    with pytest.raises(StoreError, match=r"bucket does not exist"):
        missing.write(cell(), 0, make_predictions(0, 5))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    cut_off = FileStore(s3)
    for call in (cut_off.listing, cut_off.disk.check_place, cut_off.check_exists):
        with pytest.raises(StoreError, match=r"cannot access .*7 times in .*127\.0\.0\.1:9"):
            call()


# Credentials


@pytest.mark.parametrize(
    "url", [f"s3://{KEY}:{SECRET}@results/x", f"s3://{KEY}@results/x", f"s3://results/x?token={SECRET}"]
)
def test_a_url_with_credentials_is_rejected(url: str) -> None:
    with pytest.raises(StoreError, match="must not contain credentials") as caught:
        FileStore(url)
    assert SECRET not in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_invalid_url_is_rejected() -> None:
    with pytest.raises(StoreError, match="invalid URL") as caught:
        FileStore(f"s3://{KEY}:{SECRET}@[results/x")
    assert SECRET not in str(caught.value)


def test_missing_credentials_are_reported_at_once(
    s3: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(StoreError, match="Unable to locate credentials"):
        FileStore(s3).write(cell(), 0, make_predictions(0, 5))
    assert not proxy.requests


def test_credentials_are_kept_nowhere(s3: str, proxy: Proxy) -> None:
    store = FileStore(s3)
    store.write(cell(), 0, make_predictions(0, 10), {"command": ["beaufort", "run"]})
    store.write_run({"suite": {}}, {"time": "2026"})
    kept = [store.disk.read(path) for path in store.disk.files(".")]
    proxy.faults = lambda request: "denied"
    with pytest.raises(StoreError) as caught:
        store.read(cell())
    for text in (*kept, pickle.dumps(store), repr(store).encode(), str(caught.value).encode()):
        assert SECRET.encode() not in text
        assert KEY.encode() not in text


def test_a_store_travels_by_its_url(s3: str) -> None:
    store = FileStore(s3)
    store.write(cell(), 0, make_predictions(0, 10))
    assert places(pickle.loads(pickle.dumps(store))) == list(range(10))


# Whole commands


def test_a_run_with_everything_in_a_bucket(
    s3: str, tmp_path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run over a faulty network stores the same rows as in a local directory and predicts nothing twice."""
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    digits(tmp_path / "digits")
    suite(tmp_path / "small.yaml")
    for path in (tmp_path / "digits").iterdir():
        FileStore(f"{s3}/digits").disk.write(path.name, path.read_bytes())
    proxy.faults = now_and_then("error 500", 5)
    run = ("run", "--model", "demo:digits", "--suite", str(tmp_path / "small.yaml"), "--store")
    invoke(*run, str(tmp_path / "store"), "--data", str(tmp_path / "digits"))
    invoke(*run, f"{s3}/store", "--data", f"{s3}/digits")
    here, there = FileStore(tmp_path / "store"), FileStore(f"{s3}/store")
    assert rows_in_python(here) == rows_in_python(there)
    proxy.requests.clear()
    assert "stored" in invoke(*run, f"{s3}/store", "--data", f"{s3}/digits")
    assert not any(request.method == "PUT" and "predictions" in request.path for request in proxy.requests)
    assert "3 files, 0 problems" in invoke("results", "verify", f"{s3}/store")
    assert "digits/stripe@1" in invoke("results", "query", "--store", f"{s3}/store")
    invoke("results", "verify", f"{s3}/store", "--repair")
    assert "bucket not found: 'absent'" in invoke(
        *run, "s3://absent/x", "--data", str(tmp_path / "digits"), code=2
    )
