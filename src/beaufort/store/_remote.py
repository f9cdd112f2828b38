"""The root folder of a store at a URL of fsspec, such as a bucket of an object store.

A file is uploaded in one request, so that it is complete or missing. Listings may lag behind: files that this
process wrote and did not delete are always listed, and a listed file that is missing is a `FileNotFoundError`
after which readers list again.

On S3, a request lists at most a thousand files, and the next request needs its response. Folders are
therefore divided into groups with a common prefix, which are listed concurrently: one listing of everything
would be sequential, and a listing of each folder would need a request per folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, takewhile
from threading import Lock
from typing import Any, TypeVar

from beaufort._core.files import unused
from beaufort._core.remote import AT_ONCE, GONE, Remote, RemoteError
from beaufort.store.findings import StoreError, unreadable

T = TypeVar("T")

_STATE = ("size", "mtime", "created", "LastModified", "ETag", "etag", "md5Hash", "content_settings")
"""Keys, in various file systems, of values that change with a file."""
_PAGE = 1000
"""Maximum number of files per listing request of S3."""
_GROUPS = AT_ONCE // 2
"""Minimum number of groups of folders, to hide the latency of requests."""


class RemoteDisk:
    """Files by their paths below a URL."""

    local = False
    at_once = AT_ONCE

    def __init__(self, location: str) -> None:
        self.location = location
        self._remote = Remote(location)
        self._written: set[str] = set()
        """Paths of files that this process wrote and did not delete."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[RemoteDisk], tuple[str]]:
        return RemoteDisk, (self.location,)

    def full(self, path: str) -> str:
        return f"{self._remote.root}/{path}"

    def exists(self, path: str) -> bool:
        return self._request(f"{path} of {self.location}", lambda: self._exists(self.full(path)))

    def _exists(self, full: str) -> bool:
        return bool(self._remote.fs.exists(full))

    def is_folder(self, path: str) -> bool:
        return self.exists(path)

    def is_empty(self) -> bool:
        return not self._request(self.location, lambda: self._here(self._remote.root))

    def check_place(self) -> None:
        bucket = self._remote.root.partition("/")[0]
        if bucket and not self._request(self.location, lambda: self._has(bucket)):
            raise StoreError(
                f"bucket not found: {bucket!r} of {self.location}; check its name, and the credentials and "
                "the endpoint in the environment"
            )

    def _has(self, bucket: str) -> bool:
        """Return whether a bucket exists; `exists` of s3fs returns False if the network is down."""
        try:
            self._remote.fs.info(bucket)
        except GONE:
            return False
        return True

    # Reading

    def read(self, path: str) -> bytes:
        return self._read(path, None)

    def tail(self, path: str, size: int) -> bytes:
        return self._read(path, -size)

    def _read(self, path: str, start: int | None) -> bytes:
        try:
            content: bytes = self._remote.call(lambda: self._remote.fs.cat_file(self.full(path), start=start))
            return content
        except GONE:
            with self._lock:
                self._written.discard(path)
            raise FileNotFoundError(path) from None
        except (PermissionError, RemoteError) as error:
            raise unreadable(self.location, path, error) from error

    # Listing

    def files(self, folder: str) -> dict[str, str]:
        prefix = len(self._remote.root) + 1
        with self._lock:
            found = {path: "?" for path in self._written if folder == "." or path.startswith(f"{folder}/")}
        for facts in self._below(self._remote.root if folder == "." else self.full(folder)):
            found[str(facts["name"])[prefix:]] = _state(facts)
        return found

    def entries(self, folder: str) -> dict[str, str | None]:
        full = self.full(folder)
        with self._lock:
            below = [path[len(folder) + 1 :] for path in self._written if path.startswith(f"{folder}/")]
        found = {path.partition("/")[0]: None if "/" in path else "?" for path in below}
        for facts in self._request(self.location, lambda: self._here(full)):
            name = str(facts["name"]).rstrip("/").rpartition("/")[2]
            found[name] = None if facts["type"] == "directory" else _state(facts)
        return found

    def _below(self, full: str) -> list[dict[str, Any]]:
        """Return information on all files below a folder; its folders are listed concurrently."""
        here = self._request(self.location, lambda: self._here(full))
        found = [facts for facts in here if facts["type"] == "file"]
        folders = [str(facts["name"]).rstrip("/") for facts in here if facts["type"] == "directory"]
        if self._remote.s3:
            return found + self._wrap_errors(self.location, lambda: list(list_folders(self._remote, folders)))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beaufort listing") as pool:
            for facts in pool.map(lambda one: self._request(self.location, lambda: self._find(one)), folders):
                found.extend(facts)
        return found

    def _here(self, full: str) -> list[dict[str, Any]]:
        """Return the entries of one folder; empty if it is missing."""
        self._remote.fs.invalidate_cache()
        try:
            return [facts for facts in self._remote.fs.ls(full, detail=True) if facts["name"] != full]
        except GONE:
            return []

    def _find(self, full: str) -> Iterable[dict[str, Any]]:
        """Return all files below a folder; listed again if it is removed in the meantime."""
        try:
            return self._remote.find(full).values()
        except GONE as error:
            if self._exists(full):
                raise RemoteError(f"{full} changed while it was listed") from error
            return []

    # Changing

    def write(self, path: str, content: bytes) -> None:
        try:
            self._remote.put(self.full(path), content)
        except (*GONE, PermissionError, RemoteError) as error:
            raise StoreError(f"cannot write {path} to {self.location}: {error}") from error
        with self._lock:
            self._written.add(path)

    def remove(self, path: str) -> None:
        self._changed(path, lambda: self._remote.fs.rm_file(self.full(path)))

    def move(self, path: str, folder: str) -> str:
        target = unused(f"{folder}/{path}", self.exists)
        self._changed(path, lambda: self._move(path, target))
        return target

    def _move(self, path: str, target: str) -> None:
        """Copy, then delete: a kill in between leaves both."""
        self._remote.fs.cp_file(self.full(path), self.full(target))
        self._remote.fs.rm_file(self.full(path))

    def _changed(self, path: str, change: Callable[[], object]) -> None:
        with self._lock:
            self._written.discard(path)
        try:
            self._remote.call(change)
        except GONE:
            return
        except (PermissionError, RemoteError) as error:
            raise StoreError(f"cannot move or delete {path} of {self.location}: {error}") from error

    def _request(self, what: str, request: Callable[[], T]) -> T:
        return self._wrap_errors(what, lambda: self._remote.call(request))

    def _wrap_errors(self, what: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except (PermissionError, RemoteError) as error:
            raise StoreError(f"cannot access {what}: {error}") from error


def _state(facts: Mapping[str, Any]) -> str:
    """Return a text that changes with a file."""
    return " ".join(str(facts[key]) for key in _STATE if key in facts)


def list_folders(remote: Remote, folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield information on all files below some folders of one bucket, given by their full paths."""
    if not folders:
        return
    bucket = folders[0].partition("/")[0]
    prefixes = prefixes_of([f"{folder.partition('/')[2]}/" for folder in folders], _GROUPS)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beaufort listing") as pool:
        for found in pool.map(lambda prefix: list(_listed(remote, bucket, prefix)), prefixes):
            yield from found


def prefixes_of(names: Sequence[str], least: int) -> list[str]:
    """Return prefixes such that each name has exactly one; at least `least` if there are enough names.

    >>> prefixes_of(["model=a1/", "model=a2/", "model=b/"], 2)
    ['model=a', 'model=b/']
    """
    groups = [sorted(names)]
    while len(groups) < least and len(largest := max(groups, key=len)) > 1:
        at = len(_common(largest)) + 1
        groups.remove(largest)
        groups += [list(some) for _, some in groupby(largest, key=lambda name: name[:at])]
    return sorted(map(_common, groups))


def _common(names: Sequence[str]) -> str:
    """Return the common prefix of sorted names."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(names[0], names[-1], strict=False))
    return "".join(letter for letter, _ in same)


def _listed(remote: Remote, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    """Yield the files of a prefix, page by page; only a failed page is requested again."""
    query = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": _PAGE}
    while True:
        page = remote.call(partial(_page, remote, query))
        for facts in page.get("Contents", ()):
            yield {"name": f"{bucket}/{facts['Key']}", "size": facts["Size"], **facts}
        if not page.get("IsTruncated"):
            return
        query = {**query, "ContinuationToken": page["NextContinuationToken"]}


def _page(remote: Remote, query: Mapping[str, Any]) -> dict[str, Any]:
    try:
        page: dict[str, Any] = remote.fs.call_s3("list_objects_v2", **query)
    except GONE as error:  # the bucket was removed
        raise RemoteError(f"{query['Bucket']} changed while it was listed") from error
    return page
