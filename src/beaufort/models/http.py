"""Models behind an address: images as PNG in JSON, logits back.

The request is a POST of `{"images": ["<base64 of a PNG>", …]}`, the answer
`{"logits": [[…], …], "version": "…"}`, a row an image in their order; `version` may be left out.
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
from beaufort.models._http_client import Client, NoAnswerError, Reply
from beaufort.models.network import Network
from beaufort.models.options import ModelOptions, make_spec
from beaufort.models.python import RAW_IMAGES
from beaufort.models.spec import ModelError, declared_weights

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_LONGEST_TIMEOUT_S = 3600.0
_MOST_RETRIES = 100
_BYTES_A_LOGIT, _BYTES_AN_IMAGE, _BYTES_BESIDES = 64, 1 << 19, 1 << 16
"""The most that an answer may have: an image's share where the number of classes is known, or is not."""
_EXCERPT = 200
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed; every other one of 5xx too."""


def load(
    address: str,
    *,
    version: str | None = None,
    token: str | None = None,
    timeout: float = 30.0,
    retries: int = 5,
    **options: Unpack[ModelOptions],
) -> Network:
    """A service that answers images with logits.

    Args:
        address: `http://…` or `https://…`.
        version: a word that changes whenever the service's predictions may. Without it the digest is
            `unknown`, and results are never taken from an earlier run. Where the responses name a
            version, it must be this one.
        token: the *name* of the environment variable that holds the bearer token. Neither is ever shown
            or kept.
        timeout: seconds that one request may take, from its first byte to the response's last.
        retries: how often a request is repeated after a refused connection, a timeout, a response that was
            cut, 429 or 5xx.
        **options: see `ModelOptions`; `max_batch` is the images in one request, 32 if not given. Of the
            preprocessing only sizes and channels can be set: images are resized before they are sent.
    """
    place = validate_address(address)
    validate_number("timeout", timeout, 0.001, _LONGEST_TIMEOUT_S)
    validate_integer("retries", retries, 0, _MOST_RETRIES)
    if token is not None and not (isinstance(token, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", token)):
        raise OptionError("token must be the name of an environment variable, not the token itself")
    named = None if version is None else str(version)
    spec = make_spec(
        options,
        default_name=f"{place.netloc}{place.path}".rstrip("/"),
        source=without_secrets(address),
        base=RAW_IMAGES,
        weights=declared_weights(named),
    )
    if (spec.preprocessing.dtype, spec.preprocessing.layout) != ("uint8", "NHWC"):
        raise OptionError(
            "a service gets 8-bit images, so only sizes and channels of the preprocessing can be set"
        )
    service = Service(address, token, timeout, retries, named, spec.classes)
    return Network(spec, service.classify, "remote", options.get("max_batch") or 32)


def validate_address(address: str) -> urllib.parse.SplitResult:
    """The parts of an address; an error for one that cannot be asked, or that holds a password."""
    wrong = OptionError(f"an address must be http://host/path or https://host/path, got {address!r:.200}")
    try:
        parts = urllib.parse.urlsplit(address)
        _ = parts.port  # looked at only when it is asked for
    except ValueError:
        raise wrong from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or not address.isprintable():
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise OptionError(
            "an address must have no name or password; give the name of an environment variable as token"
        )
    return parts


@dataclass(frozen=True)
class Service:
    """The other side of an address."""

    address: str = field(repr=False)
    token: str | None = field(repr=False)
    timeout: float
    retries: int
    version: str | None
    classes: int | None = None
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    key: str = "logits"
    """What an answer must have."""
    example: str = '{"logits": [[0.1, 2.3], …]}'
    """Such an answer."""

    @property
    def shown(self) -> str:
        """The address as it may be shown."""
        return without_secrets(self.address)

    def classify(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """The logits of uint8 images `(n, h, w, c)`."""
        body = json.dumps({"images": [_png(image) for image in images]}).encode()
        return self._logits(self.post(body, self._most(len(images))), len(images))

    def post(self, body: bytes, most: int) -> dict[str, Any]:
        """The values of an answer of at most so many bytes, after as many attempts as are allowed."""
        headers = self._headers()
        told = ""
        for attempt in range(self.retries + 1):
            asked = None
            try:
                answer = self._client.post(body, headers, most)
                if 200 <= answer.status < 300:
                    return self._values(answer, most)
                told, asked = self._refusal(answer), answer.headers.get("retry-after")
            except NoAnswerError as error:
                told = self._harmless(str(error))
            if attempt < self.retries:
                self._wait(attempt, asked, told)
        raise ModelError(f"{self.shown} gave no answer in {self.retries + 1} attempts; the last: {told}")

    @cached_property
    def _client(self) -> Client:
        try:
            return Client(self.address, self.timeout)
        except Exception as error:  # that of httpx2 for an invalid address shares no base with its others
            raise ModelError(f"{self.shown} cannot be asked ({self._harmless(str(error))})") from None

    def _most(self, count: int) -> int:
        """How many bytes an answer may have: much more would only fill the memory."""
        an_image = _BYTES_AN_IMAGE if self.classes is None else self.classes * _BYTES_A_LOGIT
        return _BYTES_BESIDES + count * an_image

    def _refusal(self, answer: Reply) -> str:
        """What a status says; an error if the next attempt would meet it too."""
        said = self._harmless(answer.content[:_EXCERPT].decode("utf-8", "replace").strip())
        told = f"status {answer.status}" + (f", {said}" if said else "")
        if answer.status not in _AGAIN and answer.status < 500:
            raise ModelError(f"{self.shown} refused the request: {told}")
        return told

    def _values(self, answer: Reply, most: int) -> dict[str, Any]:
        if not answer.whole:
            raise ModelError(f"{self.shown} must answer with at most {most:,} bytes, got more")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise ModelError(f"{self.shown} must not compress its answer")
        try:
            values = json.loads(answer.content)
        except (ValueError, RecursionError, MemoryError):
            if not {"content-length", "transfer-encoding"} & answer.headers.keys():
                raise NoAnswerError("an answer that ends too soon") from None  # nothing says how long it is
            values = None
        if not isinstance(values, dict) or self.key not in values:
            raise self._unexpected(answer.content)
        return values

    def _unexpected(self, content: bytes) -> ModelError:
        said = self._harmless(repr(content[:80]))
        return ModelError(f"{self.shown} must answer with JSON like {self.example}, got {said}")

    def _wait(self, attempt: int, asked: str | None, told: str) -> None:
        """As long as the service asks, or twice as long as before, with a random part."""
        seconds = _seconds(asked)
        if seconds is None:
            longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
            seconds = longest * random.uniform(0.5, 1)
        elif seconds > _LONGEST_WAIT_S:
            raise ModelError(f"{self.shown} asks to wait {seconds:.0f} s ({told}); try again then")
        self.sleep(seconds)

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "beaufort",
        }
        if self.token is not None:
            if not (secret := self._secret()).isascii() or not secret.isprintable() or not secret:
                raise ModelError(
                    f"the environment variable that the option token names must hold the token for "
                    f"{self.shown}; it is not set, or holds what no token can"
                )
            headers["Authorization"] = f"Bearer {secret}"
        return headers

    def _secret(self) -> str:
        return "" if self.token is None else os.environ.get(self.token, "").strip()

    def _harmless(self, text: str) -> str:
        """What a service said, without the token, which it may send back, and what steers a terminal."""
        secret = self._secret()
        return printable(without_secrets(text.replace(secret, "…") if secret else text))

    def _logits(self, answer: dict[str, Any], count: int) -> NDArray[np.float32]:
        rows = _numbers(answer["logits"])
        if rows is None:
            raise self._unexpected(json.dumps({"logits": answer["logits"]})[:80].encode())
        if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
            raise ModelError(
                f"{self.shown} must answer {count} images with {count} rows, got shape {rows.shape}"
            )
        if np.isnan(rows).any() or (rows == np.inf).any():
            raise ModelError(f"{self.shown} must answer with numbers, got NaN or infinity")
        named = answer.get("version")
        if self.version is not None and named is not None and str(named) != self.version:
            raise ModelError(
                f"{self.shown} must answer as version {self.version!r}, as which it was loaded, got "
                f"{self._harmless(repr(named)):.60}; answers are not mixed with those of another version"
            )
        return rows


def _numbers(rows: Any) -> NDArray[np.float32] | None:
    """A list of lists of numbers as an array; None if it is anything else."""
    try:
        found = np.array(rows)
        with np.errstate(over="ignore"):
            return found.astype(np.float32) if found.dtype.kind in "fiu" else None
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError):
        return None


def _png(image: NDArray[Any]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    pixels = image[..., 0] if image.shape[-1] == 1 else image
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _seconds(asked: str | None) -> float | None:
    """What a Retry-After header stands for: seconds, or a date."""
    if not asked:
        return None
    try:
        seconds = float(asked)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(asked).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
