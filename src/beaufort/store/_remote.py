"""The folder of a store wherever fsspec reaches, as in a bucket of an object store.

A file is put in one request, so that it is whole or absent: nothing is renamed, and nothing passing is left.
A listing may lag behind what was written. What this process wrote, and has not deleted, it lists in any case;
a file that is listed and gone is a `FileNotFoundError`, and whoever reads looks again.

On S3, the files below many folders are listed in few requests that are made side by side. A request lists a
thousand files at most, and the next one needs the answer to it, so folders are divided into groups of a
common prefix, which are listed at the same time: one listing of everything would take as long as all answers
together, and a listing of each folder would take a request for each.
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
"""What file systems call the facts that change with a file."""
_PAGE = 1000
"""Files that S3 lists in a request, at most."""
_GROUPS = AT_ONCE // 2
"""Groups of folders, at least, if there are so many: enough to hide how long one answer takes."""


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
        return self._asked(f"{path} of {self.location}", lambda: self._exists(self.full(path)))

    def _exists(self, full: str) -> bool:
        return bool(self._remote.fs.exists(full))

    def is_folder(self, path: str) -> bool:
        return self.exists(path)

    def is_empty(self) -> bool:
        return not self._asked(self.location, lambda: self._here(self._remote.root))

    def check_place(self) -> None:
        bucket = self._remote.root.partition("/")[0]
        if bucket and not self._asked(self.location, lambda: self._has(bucket)):
            raise StoreError(
                f"{self.location} cannot be a store: there is no bucket {bucket!r}; check its name, and the "
                "credentials and the endpoint in the environment"
            )

    def _has(self, bucket: str) -> bool:
        """Whether there is a bucket; s3fs's `exists` would take a network that is down for no bucket."""
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
            content: bytes = self._remote.ask(lambda: self._remote.fs.cat_file(self.full(path), start=start))
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
            state = [facts[key] for key in _STATE if key in facts]
            found[str(facts["name"])[prefix:]] = " ".join(map(str, state))
        return found

    def _below(self, full: str) -> list[dict[str, Any]]:
        """The facts about all files below a folder; its folders are listed side by side."""
        here = self._asked(self.location, lambda: self._here(full))
        found = [facts for facts in here if facts["type"] == "file"]
        folders = [str(facts["name"]).rstrip("/") for facts in here if facts["type"] == "directory"]
        if self._remote.s3:
            return found + self._told(self.location, lambda: list(list_folders(self._remote, folders)))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beaufort listing") as pool:
            for facts in pool.map(lambda one: self._asked(self.location, lambda: self._find(one)), folders):
                found.extend(facts)
        return found

    def _here(self, full: str) -> list[dict[str, Any]]:
        """What one folder has; nothing if it is not there."""
        self._remote.fs.invalidate_cache()
        try:
            return [facts for facts in self._remote.fs.ls(full, detail=True) if facts["name"] != full]
        except GONE:
            return []

    def _find(self, full: str) -> Iterable[dict[str, Any]]:
        """All files below a folder. A folder that vanishes meanwhile is looked for again."""
        try:
            return self._remote.find(full).values()
        except GONE as error:
            if self._exists(full):
                raise RemoteError(f"{full} changes while it is listed") from error
            return []

    # Changing

    def write(self, path: str, content: bytes) -> None:
        try:
            self._remote.put(self.full(path), content)
        except (*GONE, PermissionError, RemoteError) as error:
            raise StoreError(f"{path} cannot be written to {self.location}: {error}") from error
        with self._lock:
            self._written.add(path)

    def remove(self, path: str) -> None:
        self._changed(path, lambda: self._remote.fs.rm_file(self.full(path)))

    def move(self, path: str, folder: str) -> str:
        target = unused(f"{folder}/{path}", self.exists)
        self._changed(path, lambda: self._move(path, target))
        return target

    def _move(self, path: str, target: str) -> None:
        """A copy, then a deletion: a kill in between leaves both."""
        self._remote.fs.cp_file(self.full(path), self.full(target))
        self._remote.fs.rm_file(self.full(path))

    def _changed(self, path: str, change: Callable[[], object]) -> None:
        with self._lock:
            self._written.discard(path)
        try:
            self._remote.ask(change)
        except GONE:
            return
        except (PermissionError, RemoteError) as error:
            raise StoreError(f"{path} of {self.location} cannot be moved or deleted: {error}") from error

    def _asked(self, what: str, question: Callable[[], T]) -> T:
        return self._told(what, lambda: self._remote.ask(question))

    def _told(self, what: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except (PermissionError, RemoteError) as error:
            raise StoreError(f"{what} cannot be looked at: {error}") from error


def list_folders(remote: Remote, folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The facts about all files below some folders of one bucket, which are given by their full paths."""
    if not folders:
        return
    bucket = folders[0].partition("/")[0]
    prefixes = prefixes_of([f"{folder.partition('/')[2]}/" for folder in folders], _GROUPS)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beaufort listing") as pool:
        for found in pool.map(lambda prefix: list(_listed(remote, bucket, prefix)), prefixes):
            yield from found


def prefixes_of(names: Sequence[str], least: int) -> list[str]:
    """Prefixes that each name has one of; at least `least`, if there are so many names.

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
    """What all names begin with; they are sorted."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(names[0], names[-1], strict=False))
    return "".join(letter for letter, _ in same)


def _listed(remote: Remote, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    """Page by page; one that fails is asked for again, and not those before it."""
    asked = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": _PAGE}
    while True:
        page = remote.ask(partial(_page, remote, asked))
        for facts in page.get("Contents", ()):
            yield {"name": f"{bucket}/{facts['Key']}", "size": facts["Size"], **facts}
        if not page.get("IsTruncated"):
            return
        asked = {**asked, "ContinuationToken": page["NextContinuationToken"]}


def _page(remote: Remote, asked: Mapping[str, Any]) -> dict[str, Any]:
    try:
        page: dict[str, Any] = remote.fs.call_s3("list_objects_v2", **asked)
    except GONE as error:  # the bucket, which was there a moment ago
        raise RemoteError(f"{asked['Bucket']} changes while it is listed") from error
    return page
