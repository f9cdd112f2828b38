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
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from PIL import Image

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.text import encodable, without_secrets
from beaufort._core.validation import validate_choice, validate_integer, validate_positive
from beaufort.models.http import RejectedRequestError, Service, validate_address
from beaufort.models.spec import ModelError, declared_weights, digest_of_files

_MAX_BYTES = 1 << 22
"""Largest response of a service."""

DTYPES = ("float32", "float16", "bfloat16")

NoReply = Literal["", "refused", "unreadable"]
"""Why a model gave no reply; empty if it gave one."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ChatReply:
    """A model's reply to a question about an image."""

    text: str
    """The reply, or details on why there is none."""
    problem: NoReply = ""
    input_tokens: int = 0
    """Number of tokens that the service counted; 0 if it does not count them."""
    output_tokens: int = 0


class ChatModel(Protocol):
    """A model that replies to questions about images."""

    concurrency: int
    """Largest number of concurrent calls of `reply`."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The name, the place and the options, as plain values; at least `name`."""
        ...

    @property
    def weights(self) -> str:
        """Identity of the weights: a digest, or what the user declares."""
        ...

    def reply(self, image: Image.Image, question: str) -> ChatReply:
        """Return the model's reply, or why it gives none for this image."""
        ...


def reply_concurrently(
    ask: Callable[[_Item], _Result], items: Iterable[_Item], requests: int
) -> Iterator[_Result]:
    """Yield results as they arrive; after an error, only those of items that were already sent."""
    if requests == 1:
        yield from map(ask, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(requests) as pool:
        sent = {pool.submit(ask, item) for item in islice(waiting, requests)}
        error: BaseException | None = None
        while sent:
            done, sent = wait(sent, return_when=FIRST_COMPLETED)
            for future in done:
                if problem := future.exception():
                    error = error or problem
                    continue
                yield future.result()
                if error is None:
                    sent |= {pool.submit(ask, item) for item in islice(waiting, 1)}
        if error is not None:
            raise error


class HttpChatModel:
    """A model behind `ADDRESS/chat/completions`, as served by OpenAI, vLLM, llama.cpp, Ollama and others.

    Args:
        address: URL without `/chat/completions`, such as `http://127.0.0.1:8000/v1`.
        model: name of the model in the service.
        version: identity of the weights, which changes whenever replies may change; by default, the name and
            the address identify them.
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
        version: str | None = None,
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
        self._version = None if version is None else declared_weights(str(version))
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

    @property
    def weights(self) -> str:
        """The version, or the name and the address."""
        return self._version or f"declared:{self._model} at {self._address}"

    def reply(self, image: Image.Image, question: str) -> ChatReply:
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
                return ChatReply(str(error), "refused")
            raise
        text, problem = _text_of(values)
        return ChatReply(encodable(self._service.without_token(text)), problem, *_tokens_of(values))


_LONGEST_WAIT_S = 600.0
_REFUSALS = frozenset({400, 403, 422, 451})
_POLICY = re.compile(
    r"content.?filter|policy|safety|moderation|blocked|inappropriate|prohibited|sensitive", re.I
)
"""Words of services that reject an image or a question because of its content."""


def _text_of(values: Mapping[str, Any]) -> tuple[str, NoReply]:
    """Return the text of a chat completion, and why there is none."""
    choice: Any = None
    with contextlib.suppress(AttributeError, KeyError, IndexError, TypeError):
        choice = values["choices"][0]
        message = choice["message"]
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            return refusal, "refused"
        content = message.get("content")
        if isinstance(content, list):  # parts, of which some services return several
            content = "".join(part["text"] for part in content if part.get("type") == "text")
        if isinstance(content, str) and content.strip():
            return content, ""
    if isinstance(choice, dict) and choice.get("finish_reason") == "content_filter":
        return "content_filter", "refused"
    return json.dumps(values)[:1000], "unreadable"


def _tokens_of(values: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of input and output tokens of a chat completion; 0 if they are missing."""
    usage = values.get("usage")
    if not isinstance(usage, dict):
        return 0, 0
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    first, second = (one if type(one) is int and 0 <= one < 1 << 40 else 0 for one in counts)
    return first, second


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
        version: as for `HttpChatModel`; by default, the digest of the files in the folder, or the commit on
            the hub, identifies the weights.
    """

    concurrency = 1

    def __init__(
        self,
        model: str,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        max_tokens: int = 64,
        version: str | None = None,
    ) -> None:
        self._model, self._device, self._max_tokens = model, device, max_tokens
        self._version = None if version is None else declared_weights(str(version))
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

    @cached_property
    def weights(self) -> str:
        """The version, the digest of the folder, or the commit on the hub."""
        if self._version is not None:
            return self._version
        if (folder := Path(self._model)).is_dir():
            files = sorted(one for one in folder.iterdir() if one.suffix in _FILES)
            return digest_of_files(files)
        return f"declared:{self._model}@{getattr(self._loaded[1].config, '_commit_hash', None)}"

    def reply(self, image: Image.Image, question: str) -> ChatReply:
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
        count = inputs["input_ids"].shape[1]
        text = processor.decode(tokens[0, count:], skip_special_tokens=True).strip()
        return ChatReply(text, "", count, int(tokens.shape[1]) - count)

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
            raise ModelError(
                f"cannot load {self._model!r} as a model for images and text with safetensors: {reason:.300}"
            ) from None
        if not getattr(processor, "chat_template", None):
            raise ModelError(f"{self._model!r} has no chat template")
        return processor, network.to(self._device).eval()


_FILES = frozenset({".safetensors", ".json", ".model", ".txt", ".jinja"})
"""Suffixes of the files of a model that can change its replies."""


def load_chat_model(text: str, **options: Any) -> ChatModel:
    """Return a chat model by its name: `chat:transformers:FOLDER-OR-NAME`, or `chat:http://…/v1#MODEL`.

    Args:
        text: name of the model; `chat:` may be omitted.
        **options: options of `TransformersChatModel` or `HttpChatModel`.
    """
    model_class: Callable[..., ChatModel]
    text = text.removeprefix("chat:")
    kind, _, name = text.partition(":")
    address, _, model = text.rpartition("#")
    if kind == "transformers" and name:
        model_class, arguments = TransformersChatModel, [name]
    elif kind in ("http", "https") and address and model:
        model_class, arguments = HttpChatModel, [address, model]
    else:
        raise OptionError(f"model must be transformers:FOLDER-OR-NAME or http://HOST/v1#MODEL, got {text!r}")
    for option in options:
        validate_choice(f"option of {kind} models", option, list(inspect.signature(model_class).parameters))
    return model_class(*arguments, **options)
