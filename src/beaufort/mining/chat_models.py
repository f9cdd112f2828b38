"""Vision-language models: OpenAI-compatible services, and models of transformers."""

from __future__ import annotations

import base64
import contextlib
import inspect
import io
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, Protocol

from PIL import Image

from beaufort._core.optional import require
from beaufort._core.text import without_secrets
from beaufort._core.validation import validate_choice, validate_integer, validate_positive
from beaufort.mining.diffusion import DTYPES
from beaufort.mining.plan import MiningError
from beaufort.models.http import RejectedRequestError, Service, validate_address

_MAX_BYTES = 1 << 22
"""Largest response of a service."""


class NoChatReplyError(MiningError):
    """A question to which a model gives no usable reply, although others may have one."""

    def __init__(self, outcome: Literal["refused", "unreadable"], message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class ChatModel(Protocol):
    """A model that replies to questions about images."""

    concurrency: int
    """Largest number of concurrent calls of `reply`."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Everything that can change a reply, as plain values; at least `name`."""
        ...

    def reply(self, image: Image.Image, question: str) -> str:
        """Return the model's reply as free text; `NoChatReplyError` if there is none for this image."""
        ...


class HttpChatModel:
    """A model behind `ADDRESS/chat/completions`, as served by OpenAI, vLLM, llama.cpp, Ollama and others.

    Args:
        address: URL without `/chat/completions`, such as `http://127.0.0.1:8000/v1`.
        model: name of the model in the service.
        token: *name* of the environment variable with the key; neither is printed or stored.
        temperature: sampling temperature; 0 takes the most probable token.
        max_tokens: longest reply.
        timeout: time limit of a request in seconds.
        retries: number of repetitions after status 429 or 5xx, or a timeout.
        requests: number of concurrent requests.
        per_minute: largest number of requests per minute; unlimited by default.
        sleep: function that waits between attempts.
    """

    def __init__(
        self,
        address: str,
        model: str,
        *,
        token: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 64,
        timeout: float = 120.0,
        retries: int = 8,
        requests: int = 1,
        per_minute: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.concurrency = validate_integer("requests", requests, 1, 256)
        interval_s = 0.0 if per_minute is None else 60 / validate_positive("per_minute", per_minute)
        self._pace = _Pace(interval_s, sleep)
        url = f"{address.rstrip('/')}/chat/completions"
        validate_address(url)
        self._model, self._temperature, self._max_tokens = model, temperature, max_tokens
        self._address = without_secrets(address)
        self._service = Service(
            *(url, token, timeout, retries, None),
            sleep=self._pace.pause,
            key="choices",
            example='{"choices": [{"message": {"content": "a cup"}}]}',
            longest_wait_s=_LONGEST_WAIT_S,
        )

    @property
    def facts(self) -> Mapping[str, Any]:
        """Model, address and options."""
        return {
            "name": self._model,
            "address": self._address,
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
        }

    def reply(self, image: Image.Image, question: str) -> str:
        """Return the service's reply."""
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        content = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": url}}]
        request = {
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
        }
        self._pace.wait()
        try:
            values = self._service.post(json.dumps(request).encode(), _MAX_BYTES)
        except RejectedRequestError as error:
            if error.status in _REFUSALS and _POLICY.search(str(error)):
                raise NoChatReplyError("refused", str(error)) from None
            raise
        return _reply_of(values)


_LONGEST_WAIT_S = 600.0
_REFUSALS = frozenset({400, 403, 422, 451})
_POLICY = re.compile(
    r"content.?filter|policy|safety|moderation|blocked|inappropriate|prohibited|sensitive", re.I
)
"""Words of services that reject an image or a question because of its content."""


def _reply_of(values: Mapping[str, Any]) -> str:
    """Return the text of a chat completion."""
    choice: Any = None
    with contextlib.suppress(AttributeError, KeyError, IndexError, TypeError):
        choice = values["choices"][0]
        message = choice["message"]
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            raise NoChatReplyError("refused", refusal)
        content = message.get("content")
        if isinstance(content, list):  # parts, of which some services return several
            content = "".join(part["text"] for part in content if part.get("type") == "text")
        if isinstance(content, str) and content.strip():
            return content
    if isinstance(choice, dict) and choice.get("finish_reason") == "content_filter":
        raise NoChatReplyError("refused", "content_filter")
    raise NoChatReplyError("unreadable", json.dumps(values)[:1000])


class _Pace:
    """Spaces requests of several threads evenly, and lets all of them wait if the service asks one to."""

    def __init__(self, interval_s: float, sleep: Callable[[float], None]) -> None:
        self._interval_s, self._sleep = interval_s, sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next request is allowed."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._interval_s
        if start > now:
            self._sleep(start - now)

    def pause(self, seconds: float) -> None:
        """Wait before a request is repeated; new requests wait, too."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)
        self._sleep(seconds)


class TransformersChatModel:
    """A model of transformers that takes an image and text, such as LLaVA, with weights as safetensors.

    Args:
        model: folder of `save_pretrained`, or name on the hub. Code in the repository is not run.
        device: cpu, cuda or cuda:1.
        dtype: float32, float16 or bfloat16.
        max_tokens: longest reply; decoding is greedy.
    """

    concurrency = 1

    def __init__(
        self, model: str, *, device: str = "cpu", dtype: str = "float32", max_tokens: int = 64
    ) -> None:
        self._model, self._device, self._max_tokens = model, device, max_tokens
        self._dtype = validate_choice("dtype", dtype, DTYPES)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Model and options."""
        return {
            "name": self._model.rstrip("/").rpartition("/")[2],
            "model": self._model,
            "dtype": self._dtype,
            "temperature": 0.0,
            "max_tokens": self._max_tokens,
        }

    def reply(self, image: Image.Image, question: str) -> str:
        """Return the model's reply."""
        import torch

        processor, network = self._loaded
        content = [{"type": "image"}, {"type": "text", "text": question}]
        text = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )
        inputs = processor(images=image.convert("RGB"), text=text, return_tensors="pt")
        inputs = inputs.to(self._device, getattr(torch, self._dtype))
        with torch.inference_mode():
            tokens = network.generate(**inputs, do_sample=False, max_new_tokens=self._max_tokens)
        reply: str = processor.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        return reply.strip()

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        kinds = require("transformers", "transformers", what="vision-language models")
        import torch

        try:
            network = kinds.AutoModelForImageTextToText.from_pretrained(
                self._model,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=getattr(torch, self._dtype),
            )
            processor = kinds.AutoProcessor.from_pretrained(self._model, trust_remote_code=False)
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise MiningError(
                f"cannot load {self._model!r} as a model for images and text with safetensors: {reason:.300}"
            ) from None
        if not getattr(processor, "chat_template", None):
            raise MiningError(f"{self._model!r} has no chat template")
        return processor, network.to(self._device).eval()


def load_chat_model(text: str, **options: Any) -> ChatModel:
    """Return a model by its name: `transformers:FOLDER-OR-NAME`, or `http://…/v1#MODEL`.

    Args:
        text: name of the model.
        **options: options of `TransformersChatModel` or `HttpChatModel`.
    """
    model_class: Callable[..., ChatModel]
    kind, _, name = text.partition(":")
    address, _, model = text.rpartition("#")
    if kind == "transformers" and name:
        model_class, arguments = TransformersChatModel, [name]
    elif kind in ("http", "https") and address and model:
        model_class, arguments = HttpChatModel, [address, model]
    else:
        raise MiningError(f"model must be transformers:FOLDER-OR-NAME or http://HOST/v1#MODEL, got {text!r}")
    for option in options:
        validate_choice(f"option of {kind} models", option, list(inspect.signature(model_class).parameters))
    return model_class(*arguments, **options)
