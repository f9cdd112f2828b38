"""Files at a URL, through fsspec: asked for patiently, and credentials come from the environment alone.

A network and a server have bad moments: an error of theirs, a time-out, a connection that is cut. Whatever is
asked is asked again, after pauses that grow, and the last answer is told. What cannot get better by waiting
(no such file, no permission, no credentials) is told at once. Libraries below that would try again by
themselves are kept from it where they can be, so that tries do not multiply.
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
"""What says that a file is not there."""

TRIES = 7
PAUSE_S = 0.1
"""The first pause; each is twice as long as the one before, and up to half as long again."""
TIMEOUT_S = 30.0
"""How long one request may stay without an answer."""
AT_ONCE = 32
"""Requests at a time, where several can be made."""

_HOPELESS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "ParamValidationError")
"""Errors of the client of S3, by name, that no second try can change."""
_WHOLE = 5 << 29
"""Half of the 5 GiB that S3 takes in one request; larger uploads come in parts."""


class RemoteError(BeaufortError, OSError):
    """A place that did not answer as it should, however often it was asked."""


def is_url(text: str) -> bool:
    """Whether a text is a URL rather than a path.

    >>> is_url("s3://bucket/val"), is_url("data/val"), is_url("folder:data")
    (True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]*)*://", text) is not None


def check_no_secrets(location: str) -> None:
    """Raise an error if a URL has a password or a signature in it: URLs are shown, kept and passed on."""
    if not is_url(location):
        return
    try:
        parts = urlsplit(location)
    except ValueError as error:  # a bracket that is not closed
        raise RemoteError(f"{location} must be a URL, got none ({error})") from None
    if parts.password is not None or parts.query or (parts.scheme in _S3 and "@" in parts.netloc):
        raise RemoteError(
            f"a URL must not contain credentials or a query, got {location} with some; give credentials by "
            "the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE for s3"
        )


class Remote:
    """A place behind a URL; its files are asked for by their full paths."""

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
            raise RemoteError(f"{location} cannot be opened: {error}") from error
        self.root = str(root).rstrip("/")
        if hasattr(self.fs, "retries"):
            self.fs.retries = 1
        if (loop := getattr(self.fs, "loop", None)) is not None:
            loop.set_exception_handler(_leave_to_the_request)

    @property
    def s3(self) -> bool:
        """Whether it is a bucket of S3, or of what speaks as S3 does."""
        protocols = self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,)
        return bool(set(protocols) & set(_S3))

    def __reduce__(self) -> tuple[type[Remote], tuple[str]]:
        """As a URL: another process, on another machine, has an environment of its own."""
        return Remote, (self.location,)

    def ask(self, question: Callable[[], T]) -> T:
        """The answer; a `RemoteError` with the last word if there was none after several tries."""
        begin = time.monotonic()
        for left in reversed(range(TRIES)):
            try:
                return question()
            except (*GONE, PermissionError, BeaufortError):
                raise
            except Exception as error:  # what an object store's client raises need not be an OSError
                if not left or type(error).__name__ in _HOPELESS:
                    tries, seconds = TRIES - left, time.monotonic() - begin
                    times = f" {tries} times in {seconds:.0f} s" if tries > 1 else ""
                    raise RemoteError(f"asked{times}, the last answer was: {_reason(error)}") from error
                time.sleep(PAUSE_S * 2 ** (TRIES - 1 - left) * random.uniform(1, 1.5))
        raise AssertionError

    def find(self, full: str) -> dict[str, dict[str, Any]]:
        """The facts about all files below a folder; asked once, and an error if any part cannot be seen.

        Clients of object stores have a listing of their own. What fsspec offers to all others goes from
        folder to folder, and leaves out those that it cannot read unless it is told not to.
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
        """Put a file in one request, so that it is there whole or not at all."""
        options = {"chunksize": _WHOLE} if self.s3 else {}
        self.ask(lambda: self.fs.pipe_file(full, content, **options))


def _leave_to_the_request(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing of a connection that was cut: the request over it fails, and is told or made again."""
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


_S3 = ("s3", "s3a")


def _options(location: str) -> dict[str, Any]:
    if urlsplit(location).scheme not in _S3:
        return {}
    asked = hash(tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))
    return {
        "session": _session(os.getpid(), asked),
        "use_listings_cache": False,
        "max_concurrency": 1,  # else a file is read in parts, which may be parts of two versions
        "config_kwargs": {
            "connect_timeout": TIMEOUT_S,
            "read_timeout": TIMEOUT_S,
            "max_pool_connections": AT_ONCE,
            "retries": {"total_max_attempts": 1},
        },
    }


@lru_cache(maxsize=16)
def _session(process: int, environment: int) -> Any:
    """A session of the client of S3, for one process and one environment; to make one takes long.

    Times in answers stay text, as they are only compared: to parse them is most of the work of a listing.
    """
    from aiobotocore.session import AioSession

    session = AioSession()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    session.get_component("event_emitter").register_first("before-parse.s3.ListObjectsV2", _take_files)
    return session


_FACTS = frozenset(("Key", "LastModified", "ETag", "Size", "StorageClass"))


def _take_files(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Take the files out of a page of a listing before the client of S3 parses it.

    The client parses a page twice, and interprets each element by a model of the service, which takes several
    times as long. A page that is not as expected is left to it.
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
