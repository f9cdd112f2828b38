"""Models behind a URL: images as PNG in JSON, logits in return.

The request is a POST of `{"images": ["<base64 of a PNG>", …]}`, the response
`{"logits": [[…], …], "version": "…"}`, one row per image in the same order; `version` is optional.
"""

from __future__ import annotations

import base64
import email.utils
import io
import json
import math
import os
import random
import re
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.text import printable, without_secrets
from beaufort._core.validation import validate_integer, validate_number
from beaufort.models._http_client import Client, NoResponseError, Response
from beaufort.models.network import Network
from beaufort.models.options import ModelOptions, make_spec
from beaufort.models.python import RAW_IMAGES
from beaufort.models.spec import ModelError, declared_weights

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_BYTES_PER_LOGIT, _BYTES_PER_IMAGE, _BYTES_BESIDES = 64, 1 << 19, 1 << 16
"""Limits on the size of a response, which could fill the memory; per image if the classes are unknown."""
_RETRIED = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may succeed."""


def load(
    address: str,
    *,
    version: str | None = None,
    token: str | None = None,
    timeout: float = 30.0,
    retries: int = 5,
    **options: Unpack[ModelOptions],
) -> Network:
    """Return a model behind a URL.

    Args:
        address: `http://…` or `https://…`.
        version: a string that changes whenever predictions may change. Without it, results are never reused.
            If responses contain a version, it must be this one.
        token: *name* of the environment variable with the bearer token. Neither is printed or stored.
        timeout: seconds for one request, including the whole response.
        retries: how often a request is repeated after a connection error, a timeout, an incomplete response,
            408, 425, 429 or 5xx.
        **options: see `ModelOptions`; `max_batch` is the number of images per request, 32 by default. Of the
            preprocessing, only sizes and channels can be set: images are resized before they are sent.
    """
    parts = validate_address(address)
    validate_number("timeout", timeout, 0.001, 3600)
    validate_integer("retries", retries, 0, 100)
    named = token is None or (isinstance(token, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", token))
    if not named:
        raise OptionError("token must be the name of an environment variable, not the token itself")
    version = None if version is None else str(version)
    spec = make_spec(
        options,
        default_name=f"{parts.netloc}{parts.path}".rstrip("/"),
        source=without_secrets(address),
        base=RAW_IMAGES,
        weights=declared_weights(version),
    )
    if (spec.preprocessing.dtype, spec.preprocessing.layout) != ("uint8", "NHWC"):
        raise OptionError(
            "only sizes and channels can be set for a model behind a URL, which gets 8-bit images"
        )
    service = Service(address, token, timeout, retries, version, spec.classes)
    return Network(spec, service.classify, "remote", options.get("max_batch") or 32)


def validate_address(address: str) -> urllib.parse.SplitResult:
    """Return the parts of a valid URL without name and password."""
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.scheme.lower() in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not address.isprintable():
        raise OptionError(f"address must be http://host/path or https://host/path, got {address!r:.200}")
    if parts.username is not None or parts.password is not None:
        raise OptionError("address must not contain a name or password; use the option token")
    return parts


class RejectedRequestError(ModelError):
    """A request that a service rejected, so that repeating it would not help."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Service:
    """A service with JSON requests and responses."""

    address: str = field(repr=False)
    token: str | None = field(repr=False)
    timeout: float
    retries: int
    version: str | None
    classes: int | None = None
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    key: str = "logits"
    """Required key of a response."""
    example: str = '{"logits": [[0.1, 2.3], …]}'
    """Example of a response, for error messages."""
    longest_wait_s: float = _LONGEST_WAIT_S
    """Longest wait before a request is repeated."""

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return without_secrets(self.address)

    def classify(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the logits of uint8 images `(n, h, w, c)`."""
        body = json.dumps({"images": [_png(image) for image in images]}).encode()
        per_image = _BYTES_PER_IMAGE if self.classes is None else self.classes * _BYTES_PER_LOGIT
        values = self.post(body, _BYTES_BESIDES + len(images) * per_image)
        try:
            with np.errstate(over="ignore"):
                rows = np.array(values["logits"])
                logits = rows.astype(np.float32)
        except (ValueError, TypeError, OverflowError, RecursionError, MemoryError):
            raise self._unexpected(json.dumps(values)[:80].encode()) from None
        if rows.dtype.kind not in "fiu" or rows.ndim != 2 or len(rows) != len(images) or not rows.shape[1]:
            raise self._error(f"returned logits of shape {rows.shape} for {len(images)} images")
        if np.isnan(logits).any() or (logits == np.inf).any():
            raise self._error("returned logits that are NaN or infinite")
        version = values.get("version")
        if self.version is not None and version is not None and str(version) != self.version:
            raise self._error(
                f"responded as version {self._clean(repr(version)):.60} instead of {self.version!r}; "
                "predictions of different versions are not mixed"
            )
        return logits

    def post(self, body: bytes, limit: int) -> dict[str, Any]:
        """Return the JSON values of a response of at most `limit` bytes, repeating failed requests."""
        headers = self._headers()
        problem = ""
        for attempt in range(self.retries + 1):
            retry_after = None
            try:
                response = self._client.post(body, headers, limit)
                if 200 <= response.status < 300:
                    return self._values(response, limit)
                text = self._clean(response.content[:200].decode("utf-8", "replace").strip())
                problem = f"status {response.status}" + (f", {text}" if text else "")
                if response.status not in _RETRIED and response.status < 500:
                    raise RejectedRequestError(
                        f"{self.shown} rejected the request: {problem}", response.status
                    )
                retry_after = response.headers.get("retry-after")
            except NoResponseError as error:
                problem = self._clean(str(error))
            if attempt < self.retries:
                self._wait(attempt, retry_after, problem)
        raise self._error(f"did not respond in {self.retries + 1} attempts; last error: {problem}")

    @cached_property
    def _client(self) -> Client:
        try:
            return Client(self.address, self.timeout)
        except Exception as error:  # that of httpx2 for an invalid address has no other base
            raise self._error(f"is not a valid address: {self._clean(str(error))}") from None

    def _values(self, response: Response, limit: int) -> dict[str, Any]:
        if not response.complete:
            raise self._error(f"returned more than {limit:,} bytes")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise self._error("returned a compressed response; turn compression off")
        try:
            values = json.loads(response.content)
        except (ValueError, RecursionError, MemoryError):
            if not {"content-length", "transfer-encoding"} & response.headers.keys():
                raise NoResponseError("incomplete response") from None  # no header states its length
            values = None
        if not isinstance(values, dict) or self.key not in values:
            raise self._unexpected(response.content)
        return values

    def _unexpected(self, content: bytes) -> ModelError:
        return self._error(
            f"did not return JSON like {self.example}; the response is {self._clean(repr(content[:80]))}"
        )

    def _error(self, problem: str) -> ModelError:
        return ModelError(f"{self.shown} {problem}")

    def _wait(self, attempt: int, retry_after: str | None, problem: str) -> None:
        """Wait as long as the service requests, or twice as long as before with a random part."""
        seconds = _seconds(retry_after)
        if seconds is None:
            seconds = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt) * random.uniform(0.5, 1)
        elif seconds > self.longest_wait_s:
            raise self._error(f"requested a retry only after {seconds:.0f} s ({problem})")
        self.sleep(seconds)

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "beaufort",
        }
        if self.token is not None:
            secret = self._secret()
            if not secret or not secret.isascii() or not secret.isprintable():
                raise self._error("requires a token in the environment variable named by the option token")
            headers["Authorization"] = f"Bearer {secret}"
        return headers

    def _secret(self) -> str:
        return "" if self.token is None else os.environ.get(self.token, "").strip()

    def without_token(self, text: str) -> str:
        """Remove the token, which a service may send back."""
        secret = self._secret()
        return text.replace(secret, "…") if secret else text

    def _clean(self, text: str) -> str:
        """Remove the token and control characters."""
        return printable(without_secrets(self.without_token(text)))


def _png(image: NDArray[Any]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    pixels = image[..., 0] if image.shape[-1] == 1 else image
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError, IndexError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
