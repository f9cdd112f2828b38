"""The files below many folders of a bucket, in few requests that are made side by side.

A request lists a thousand files at most, and the next one needs the answer to it. So folders are divided into
groups of a common prefix, which are listed at the same time: to list everything in a row would take as long
as all answers together, and to list each folder alone would take a request for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, takewhile
from typing import Any

from beaufort._core.remote import AT_ONCE, GONE, Remote, RemoteError

_PAGE = 1000
"""Files that S3 lists in a request, at most."""
_GROUPS = AT_ONCE // 2
"""Groups of folders, at least, if there are so many: enough to hide how long one answer takes."""


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
