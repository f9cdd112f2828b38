"""Files at a URL, accessed through fsspec; credentials come from the environment only.

A request that fails because of the network or the server is repeated with growing pauses, and the last error
is reported. Errors that retrying cannot fix (no such file, no permission, no credentials) are raised at once.
Retries of the libraries below are turned off where possible, so that they do not multiply.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from xml.etree import ElementTree

from beaufort._core.errors import BeaufortError, MissingExtraError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")

GONE = (FileNotFoundError, NotADirectoryError)
"""Errors for a missing file."""

TRIES = 7
PAUSE_S = 0.1
"""The first pause; it doubles each time, plus up to 50 % at random."""
TIMEOUT_S = 30.0
"""Timeout of one request."""
AT_ONCE = 32
"""Number of concurrent requests."""

_HOPELESS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "ParamValidationError")
"""Errors of the S3 client, by name, that retrying cannot fix."""
_WHOLE = 5 << 29
"""Half of the 5 GiB that S3 accepts in one request; larger uploads are split."""


class RemoteError(BeaufortError, OSError):
    """A remote request that failed after all retries."""


def is_url(text: str) -> bool:
    """Return whether a text is a URL rather than a path.

    >>> is_url("s3://bucket/val"), is_url("data/val"), is_url("folder:data")
    (True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]*)*://", text) is not None


def check_no_secrets(location: str) -> None:
    """Raise an error if a URL contains a password or a signature, because URLs are shown and stored."""
    if not is_url(location):
        return
    try:
        parts = urlsplit(location)
    except ValueError as error:  # a bracket that is not closed
        raise RemoteError(f"invalid URL {location}: {error}") from None
    if parts.password is not None or parts.query or (parts.scheme in _S3 and "@" in parts.netloc):
        raise RemoteError(
            f"the URL {location} must not contain credentials or a query; pass credentials in the "
            "environment, for S3 as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE"
        )


class Remote:
    """A file system behind a URL; its files are addressed by full path."""

    def __init__(self, location: str) -> None:
        import fsspec

        check_no_secrets(location)
        self.location = location
        try:
            self.fs, root = fsspec.core.url_to_fs(location, **_options(location))
        except ImportError as error:
            hint = "pip install 'beaufort[s3]'" if urlsplit(location).scheme in _S3 else str(error)
            raise MissingExtraError(f"{location} needs a package that is not installed: {hint}") from None
        except (ValueError, OSError) as error:
            raise RemoteError(f"cannot open {location}: {error}") from error
        self.root = str(root).rstrip("/")
        if hasattr(self.fs, "retries"):
            self.fs.retries = 1
        if (loop := getattr(self.fs, "loop", None)) is not None:
            loop.set_exception_handler(_leave_to_the_request)

    @property
    def s3(self) -> bool:
        """Whether it is S3 or a compatible service."""
        protocols = self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,)
        return bool(set(protocols) & set(_S3))

    def __reduce__(self) -> tuple[type[Remote], tuple[str]]:
        """Pickle only the URL: another process has its own environment."""
        return Remote, (self.location,)

    def call(self, request: Callable[[], T]) -> T:
        """Return the result of a request, which is repeated if it fails; `RemoteError` after the last try."""
        begin = time.monotonic()
        for left in reversed(range(TRIES)):
            try:
                return request()
            except (*GONE, PermissionError, BeaufortError):
                raise
            except Exception as error:  # what an object store's client raises need not be an OSError
                if not left or type(error).__name__ in _HOPELESS:
                    tries, seconds = TRIES - left, time.monotonic() - begin
                    times = f" {tries} times in {seconds:.0f} s" if tries > 1 else ""
                    raise RemoteError(f"the request failed{times}: {_reason(error)}") from error
                time.sleep(PAUSE_S * 2 ** (TRIES - 1 - left) * random.uniform(1, 1.5))
        raise AssertionError

    def find(self, full: str) -> dict[str, dict[str, Any]]:
        """Return the facts about all files below a folder, without retries; fail if any part is unreadable.

        Object stores list directly. The generic walk of fsspec skips unreadable folders by default.
        """
        from fsspec import AbstractFileSystem
        from fsspec.asyn import AsyncFileSystem

        kind, asynchronous = type(self.fs), isinstance(self.fs, AsyncFileSystem)
        walks = kind._find is AsyncFileSystem._find if asynchronous else kind.find is AbstractFileSystem.find
        found: dict[str, dict[str, Any]] = self.fs.find(
            full, detail=True, **({"on_error": "raise"} if walks else {})
        )
        return found

    def put(self, full: str, content: bytes) -> None:
        """Upload a file in one request, so that it is stored completely or not at all."""
        options = {"chunksize": _WHOLE} if self.s3 else {}
        self.call(lambda: self.fs.pipe_file(full, content, **options))


def _leave_to_the_request(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Do not log lost connections: the request itself fails and is repeated or reported."""
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


_S3 = ("s3", "s3a")


def _options(location: str) -> dict[str, Any]:
    if urlsplit(location).scheme not in _S3:
        return {}
    environment = hash(tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))
    return {
        "session": _session(os.getpid(), environment),
        "use_listings_cache": False,
        "max_concurrency": 1,  # otherwise a file is read in parts, possibly of two versions
        "config_kwargs": {
            "connect_timeout": TIMEOUT_S,
            "read_timeout": TIMEOUT_S,
            "max_pool_connections": AT_ONCE,
            "retries": {"total_max_attempts": 1},
        },
    }


@lru_cache(maxsize=16)
def _session(process: int, environment: int) -> Any:
    """Return a session of the S3 client for one process and environment; creating one is slow.

    Timestamps stay text, as they are only compared: parsing them is most of the work of a listing.
    """
    from aiobotocore.session import AioSession

    session = AioSession()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    session.get_component("event_emitter").register_first("before-parse.s3.ListObjectsV2", _take_files)
    return session


_FACTS = frozenset(("Key", "LastModified", "ETag", "Size", "StorageClass"))


def _take_files(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Extract the files from a page of a listing before the S3 client parses it.

    The client parses a page twice and validates each element against a service model, which takes several
    times as long. It still handles pages of an unexpected form.
    """
    body: bytes = response_dict["body"]
    start, stop = body.find(b"<Contents>"), body.rfind(b"</Contents>") + len(b"</Contents>")
    if response_dict["status_code"] != 200 or start < 0:
        return
    try:
        files = list(map(_file_facts, ElementTree.fromstring(b"<Page>" + body[start:stop] + b"</Page>")))
    except (ElementTree.ParseError, KeyError, ValueError):
        return
    response_dict["body"] = body[:start] + body[stop:]
    customized_response_dict["Contents"] = files


def _file_facts(file: ElementTree.Element) -> dict[str, Any]:
    if file.tag != "Contents":
        raise ValueError(file.tag)  # a folder among the files
    facts = {fact.tag: fact.text or "" for fact in file if fact.tag in _FACTS}
    return {**facts, "Key": facts["Key"], "Size": int(facts["Size"])}  # a KeyError without one of them


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if text else type(error).__name__)[:300]
