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
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from beaufort.errors import OptionError
from beaufort.models._digest import declared
from beaufort.models._errors import ModelError
from beaufort.models.network import Network
from beaufort.models.options import Changes, changed, class_list
from beaufort.models.python import AS_THEY_ARE
from beaufort.models.spec import ModelSpec

__all__ = ["load"]

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_MOST_BYTES = 1 << 28
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed; every other one of 5xx too."""


def load(
    address: str,
    *,
    classes: Any = None,
    version: str | None = None,
    token: str | None = None,
    timeout: float = 30.0,
    retries: int = 5,
    max_batch: int = 32,
    name: str | None = None,
    label_space: str | None = None,
    **changes: Unpack[Changes],
) -> Network:
    """A service that answers images with logits.

    Args:
        address: `http://…` or `https://…`.
        classes: how many, a list of names, or a text file of them.
        version: a word that changes whenever the service's answers may. Without it the digest is
            `unknown`, and results are never taken from an earlier run. Where the answers name a
            version, it must be this one.
        token: the *name* of the environment variable that holds the bearer token.
        timeout: seconds that one request may take.
        retries: how often a request is repeated after a refused connection, a timeout, 429 or 5xx.
        max_batch: images in one request.
        name: what tables call it; the address's host and path if not given.
        label_space: what the classes are.
        **changes: `input_size` and `resize`, if images are to be resized before they are sent.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise OptionError(f"the address {address!r} came; write http://host/path or https://host/path")
    if parts.username or parts.password:
        raise OptionError(
            "an address with a name or password came; give the name of an environment variable as token"
        )
    if timeout <= 0 or retries < 0:
        raise OptionError(
            f"timeout {timeout!r} and retries {retries!r} came; accepted are above 0 and from 0"
        )
    preprocessing = changed(AS_THEY_ARE, changes)
    if (preprocessing.dtype, preprocessing.layout) != ("uint8", "NHWC"):
        raise OptionError(
            "a service gets 8-bit images: of the preprocessing only sizes and channels can be set"
        )
    count, names = class_list(classes)
    shown = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    spec = ModelSpec(
        name=name or f"{parts.netloc}{parts.path}".rstrip("/"),
        source=shown,
        preprocessing=preprocessing,
        classes=count,
        class_names=names,
        label_space=label_space,
        weights=declared(version),
    )
    service = Service(address, shown, token, timeout, retries, version)
    return Network(spec, service.classify, "remote", max_batch)


class _Stay(urllib.request.HTTPRedirectHandler):
    """No redirects: a POST would become a GET, and the token would go to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class Service:
    """The other side of an address."""

    address: str
    shown: str
    token: str | None
    timeout: float
    retries: int
    version: str | None
    sleep: Callable[[float], None] = time.sleep

    def classify(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """The logits of uint8 images `(n, h, w, c)`."""
        body = json.dumps({"images": [_png(image) for image in images]}).encode()
        return self._logits(self._post(body), len(images))

    def _post(self, body: bytes) -> bytes:
        request = urllib.request.Request(self.address, body, self._headers(), method="POST")
        opener = urllib.request.build_opener(_Stay)
        told = ""
        for attempt in range(self.retries + 1):
            try:
                with opener.open(request, timeout=self.timeout) as answer:
                    content: bytes = answer.read(_MOST_BYTES + 1)
                if len(content) > _MOST_BYTES:
                    raise ModelError(f"{self.shown} answered with more than {_MOST_BYTES >> 20} MiB")
                return content
            except urllib.error.HTTPError as error:
                with error:
                    told = f"status {error.code}, {_excerpt(error)}"
                    asked = error.headers.get("Retry-After") if error.code in (429, 503) else None
                    if error.code not in _AGAIN and error.code < 500:
                        raise ModelError(f"{self.shown} refused the request: {told}") from None
            except (OSError, HTTPException) as error:  # a URLError, a timeout, a broken answer
                told, asked = str(getattr(error, "reason", None) or error or type(error).__name__), None
            if attempt < self.retries:
                self._wait(attempt, asked, told)
        raise ModelError(f"{self.shown} gave no answer in {self.retries + 1} attempts; the last: {told}")

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
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "beaufort"}
        if self.token is not None:
            secret = os.environ.get(self.token, "")
            if not secret.strip():
                raise ModelError(
                    f"the environment variable {self.token!r} is not set; it holds the token for {self.shown}"
                )
            headers["Authorization"] = f"Bearer {secret.strip()}"
        return headers

    def _logits(self, content: bytes, count: int) -> NDArray[np.float32]:
        try:
            answer = json.loads(content)
            rows = np.array(answer["logits"], np.float32)
        except (ValueError, TypeError, KeyError):
            raise ModelError(
                f'{self.shown} answered {content[:80]!r}; expected is JSON like {{"logits": [[0.1, 2.3], …]}}'
            ) from None
        if rows.ndim != 2 or len(rows) != count:
            raise ModelError(f"{self.shown} answered {count} images with logits of shape {rows.shape}")
        named = answer.get("version")
        if self.version is not None and named is not None and str(named) != str(self.version):
            raise ModelError(
                f"{self.shown} answers as version {named!r} and was loaded as {self.version!r}; answers "
                "are not mixed with those of another version"
            )
        return rows


def _png(image: NDArray[Any]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    pixels = image[..., 0] if image.shape[-1] == 1 else image
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _excerpt(error: urllib.error.HTTPError) -> str:
    try:
        return error.read(200).decode("utf-8", "replace").strip() or str(error.reason)
    except (OSError, HTTPException):
        return str(error.reason)


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
    except (TypeError, ValueError):
        return None
