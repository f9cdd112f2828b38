"""An OpenAI-compatible service whose replies are known: they follow from the gray level of each image."""

from __future__ import annotations

import base64
import io
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.json_service import JsonService, Reply

NAMES = ("cat", "dog", "red fox", "fox")


def gray_images(count: int, size: int = 32) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return distinct images whose brightness is their class, and their labels."""
    labels = np.arange(count) % len(NAMES)
    images = np.full((count, size, size, 3), 0, np.uint8)
    images[:] = (40 + 50 * labels)[:, None, None, None]
    images[np.arange(count), 0, 0, 0] = np.arange(count) // len(NAMES) % 256  # so that no two are equal
    return images, labels


def class_of(image: NDArray[np.uint8]) -> int:
    """Return the class that the brightness of an image, also of a corrupted one, is closest to."""
    return int(np.clip(round((float(np.median(image)) - 40) / 50), 0, len(NAMES) - 1))


class ChatService:
    """A service that replies with `answer(class, names in the question)`."""

    def __init__(self, answer: Callable[[int, list[str]], Any] | None = None) -> None:
        self.answer = answer or (lambda label, _: NAMES[label])
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.failures: list[Reply] = []
        self.delay_s = 0.0
        self.most_open = 0
        self._open = 0
        self._lock = threading.Lock()
        service = JsonService(self._reply)
        self.address, self.close = f"{service.url}/v1", service.close

    @property
    def model(self) -> str:
        """The model as `load_model` takes it."""
        return f"chat:{self.address}#tiny"

    def _reply(self, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        assert path == "/v1/chat/completions"
        with self._lock:
            self.requests.append(body)
            self.keys.add(headers.get("Authorization"))
            self._open += 1
            self.most_open = max(self.most_open, self._open)
            failure = self.failures.pop(0) if self.failures else None
        time.sleep(self.delay_s)
        with self._lock:
            self._open -= 1
        if failure is not None:
            return failure
        text, image = body["messages"][0]["content"]
        png = base64.b64decode(image["image_url"]["url"].partition(",")[2])
        listed = text["text"].partition("nothing else: ")[2].rstrip(".")
        names = listed.split(", ") if listed else []
        content = self.answer(class_of(np.asarray(Image.open(io.BytesIO(png)))), names)
        if isinstance(content, Reply):
            return content
        usage = {"prompt_tokens": 100, "completion_tokens": 5}
        return Reply({"choices": [{"message": {"content": content}}], "usage": usage})
