"""Vision-language models: OpenAI-compatible services, and models of transformers."""

from __future__ import annotations

import base64
import inspect
import io
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from PIL import Image

from beaufort._core.optional import require
from beaufort._core.text import without_secrets
from beaufort._core.validation import validate_choice
from beaufort.mining.diffusion import DTYPES
from beaufort.mining.plan import MiningError
from beaufort.models.http import Service, validate_address

_MAX_BYTES = 1 << 22
"""Largest response of a service."""


class ChatModel(Protocol):
    """A model that replies to questions about images."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Everything that can change a reply, as plain values; at least `name`."""
        ...

    def reply(self, image: Image.Image, question: str) -> str:
        """Return the model's reply as free text."""
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
        retries: int = 5,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        url = f"{address.rstrip('/')}/chat/completions"
        validate_address(url)
        self._model, self._temperature, self._max_tokens = model, temperature, max_tokens
        self._address = without_secrets(address)
        more: dict[str, Any] = {} if sleep is None else {"sleep": sleep}
        self._service = Service(
            *(url, token, timeout, retries, None),
            key="choices",
            example='{"choices": [{"message": {"content": "a cup"}}]}',
            **more,
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
        values = self._service.post(json.dumps(request).encode(), _MAX_BYTES)
        try:
            reply = values["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            reply = None
        if not isinstance(reply, str):
            raise MiningError(f"{self._service.shown} did not return JSON like {self._service.example}")
        return reply


class TransformersChatModel:
    """A model of transformers that takes an image and text, such as LLaVA, with weights as safetensors.

    Args:
        model: folder of `save_pretrained`, or name on the hub. Code in the repository is not run.
        device: cpu, cuda or cuda:1.
        dtype: float32, float16 or bfloat16.
        max_tokens: longest reply; decoding is greedy.
    """

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
