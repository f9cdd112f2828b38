"""Vision-language models as classifiers: they are asked for the class of each image.

The outputs are the classes and, after them, `OUTPUTS`: the outcomes of replies that name no class, and marks
of the position of the chosen name in the question. A class that is named has the logit 0 and other classes
-inf, so that the five most probable outputs are the prediction, the mark, and outcomes.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.arrays import Bytes, Images, checked_pixels, on_host
from beaufort._core.catalog import cache_folder
from beaufort._core.errors import OptionError
from beaufort._core.files import read_json
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice, validate_integer, validate_number, validate_positive
from beaufort.data.labels import LabelSpace
from beaufort.models._reply_file import ReplyFile, Usage
from beaufort.models.chat_client import ChatModel, ChatReply, load_chat_model, reply_concurrently
from beaufort.models.name_matching import NameMatcher
from beaufort.models.options import class_list, make_spec
from beaufort.models.python import RAW_IMAGES
from beaufort.models.spec import Logits, ModelError, ModelSpec

OUTCOMES = ("refused", "unreadable", "several", "inconsistent")
"""Replies without a prediction: the model or its service refuses; no class is named; more than one is; or the
replies to both orders differ."""

HALVES = ("first half", "second half", "neither half")
"""Where the chosen name stood in the question; for both orders, in both questions."""

OUTPUTS = tuple(f"({name})" for name in (*OUTCOMES, *HALVES))
"""Names of the outputs after the classes."""

_REFUSED, _UNREADABLE, _SEVERAL, _INCONSISTENT = range(len(OUTCOMES))
_MARK, _LEAST = -50.0, -60.0
"""Logits of a mark, and of the outcomes that did not occur."""

ANSWERS = ("choice", "free")
ORDERS = ("by-image", "both", "given")

_QUESTIONS = {
    "choice": "What is the main object in this image? Answer with exactly one of these names and nothing "
    "else: {names}.",
    "free": "What is the main object in this image? Answer with its name and nothing else.",
}
_NAMES = "{names}"
_DECLINES = re.compile(
    r"\b(can(no|')t|can not|unable to|won't|not able to|refuse to) (\w+ )?"
    r"(help|assist|answer|identify|classify|comply|determine|provide|tell|say|see|do that)|as an ai\b|"
    r"\bi'?m sorry\b",
    re.I,
)
"""Words of models that decline to answer; counted only if a reply names no class."""
_IDENTITY = ("address", "model")
"""Facts of a chat model that its weights stand for."""


class ChatOptions(TypedDict, total=False):
    """Options of `ModelOptions` that chat models have."""

    name: str | None
    classes: Any
    label_space: str | None
    input_size: int | Sequence[int] | None
    resize: int | Sequence[int] | None
    interpolation: str


class BudgetError(ModelError):
    """The next request might cost more than what is left of the budget."""


def load(
    text: str,
    *,
    answer: str = "choice",
    candidates: int | None = None,
    orders: str = "by-image",
    seed: int = 0,
    question: str | None = None,
    synonyms: str | Path | Mapping[str, Sequence[str]] | None = None,
    budget: float | None = None,
    prices: Sequence[float] | None = None,
    replies: str | Path | None = None,
    version: str | None = None,
    token: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    requests: int | None = None,
    per_minute: float | None = None,
    device: str | None = None,
    dtype: str | None = None,
    **options: Unpack[ChatOptions],
) -> ChatClassifier:
    """Return a vision-language model as a classifier.

    Args:
        text: `http://HOST/v1#MODEL` for an OpenAI-compatible service, or `transformers:FOLDER-OR-NAME`.
        answer: `choice` lists the names of the classes in the question; `free` does not, and finds names and
            synonyms in the reply.
        candidates: number of names in a question: the label and a random choice of others; all by default.
        orders: order of the names: `by-image`, random by the id of the image; `both`, the random order and
            its reverse, in two requests; or `given`, the order of the classes.
        seed: seed of random orders and candidates.
        question: text of the question; with `answer=choice`, it contains `{names}`.
        synonyms: other names of classes that count in replies: a mapping, or a JSON file of it.
        budget: stop before the model's requests cost more than this, over all runs; in the currency of
            `prices`.
        prices: price of a million input tokens, and of a million output tokens.
        replies: file that keeps all replies; `replies.sqlite` in the cache directory by default.
        version: identity of the weights; by default, the name and the address of a service, or the digest of
            the files in a folder.
        token: *name* of the environment variable with the key of a service. Neither is printed or stored.
        temperature: sampling temperature of a service; 0 by default.
        max_tokens: longest reply; 64 by default.
        timeout: seconds for one request; 120 by default.
        retries: how often a request is repeated after 408, 425, 429, 5xx, or no response; 8 by default.
        requests: number of concurrent requests; 8 by default.
        per_minute: largest number of requests per minute.
        device: of transformers: cpu, cuda or cuda:1.
        dtype: of transformers: float32, float16 or bfloat16.
        **options: see `ModelOptions`; images can be resized before they are sent. The
            option `classes` is required: names, a text file of them, or a known list.
    """
    validate_choice("answer", answer, ANSWERS)
    validate_choice("orders", orders, ORDERS)
    if answer == "free" and (orders != "by-image" or candidates is not None):
        raise OptionError("orders and candidates require answer=choice")
    count, names = class_list(options.get("classes"))
    if names is None or count is None or count < 2:
        raise OptionError("chat models require class names: classes=imagenet-1k, a list or a text file")
    if candidates is not None:
        validate_integer("candidates", candidates, 2, count)
    if question is not None and question.count(_NAMES) != (answer == "choice"):
        rule = "contain" if answer == "choice" else "not contain"
        raise OptionError(f"question must {rule} {_NAMES} with answer={answer}, got {question!r:.80}")
    asker = open_chat(
        text,
        budget=budget,
        prices=prices,
        replies=replies,
        version=version,
        token=token,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout=timeout,
        retries=retries,
        requests=requests,
        per_minute=per_minute,
        device=device,
        dtype=dtype,
    )
    classes = _names_of_classes(names, synonyms)
    asked = _Questions(
        question or _QUESTIONS[answer], answer == "choice", candidates, orders, validate_integer("seed", seed)
    )
    default_name = asker.name + ("" if candidates is None else f"-{candidates}-way")
    spec_options: Any = {**options, "classes": (*names, *OUTPUTS)}
    spec = make_spec(
        spec_options,
        default_name=default_name,
        source=f"chat:{text}",
        base=RAW_IMAGES,
        weights=asker.chat.weights,
        details={
            "chat": {**asker.facts, **vars(asked)},
            "class_names": [list(some) for some in classes],
            "outcomes": list(OUTPUTS),
        },
    )
    return ChatClassifier(spec, asked, classes, asker, NameMatcher(classes))


def open_chat(
    text: str,
    *,
    budget: float | None = None,
    prices: Sequence[float] | None = None,
    replies: str | Path | None = None,
    requests: int | None = None,
    **options: Any,
) -> ChatAsker:
    """Return a chat model whose replies are kept; arguments are those of `load`, None for the default."""
    money = _Money.of(budget, prices)
    if requests is None and not text.removeprefix("chat:").startswith("transformers:"):
        requests = 8
    given = {name: value for name, value in {**options, "requests": requests}.items() if value is not None}
    chat = load_chat_model(text, **given)
    kept = ReplyFile(Path(replies) if replies is not None else cache_folder() / "replies.sqlite")
    facts = {name: value for name, value in chat.facts.items() if name not in _IDENTITY}
    return ChatAsker(chat, kept, facts, money)


def _names_of_classes(
    names: Sequence[str], synonyms: str | Path | Mapping[str, Sequence[str]] | None
) -> tuple[tuple[str, ...], ...]:
    """Return the name of each class in questions, followed by its synonyms.

    Of a name such as `tench, Tinca tinca`, the first part is the name.
    """
    others: Any = synonyms or {}
    if isinstance(synonyms, str | Path):
        others = read_json(Path(synonyms), OptionError)
    if not isinstance(others, Mapping) or not all(
        isinstance(some, list | tuple) and all(isinstance(one, str) for one in some)
        for some in others.values()
    ):
        raise OptionError('synonyms must be an object of lists of names by class, as {"sofa": ["couch"]}')
    if unknown := [name for name in others if name not in names]:
        raise OptionError(f"unknown class {unknown[0]!r} in synonyms; classes are {', '.join(names[:5])} …")
    found = []
    for name in names:
        first, *rest = filter(None, (part.strip() for part in name.replace("_", " ").split(",")))
        found.append(tuple(dict.fromkeys((first, *rest, *others.get(name, ())))))
    shown = [some[0].casefold() for some in found]
    if twice := next((name for name in shown if shown.count(name) > 1), None):
        raise OptionError(f"two classes have the name {twice!r}; chat models require distinct names")
    return tuple(found)


@dataclass(frozen=True)
class _Money:
    """Prices of tokens, and the budget."""

    budget: float | None = None
    prices: tuple[float, float] | None = None

    @classmethod
    def of(cls, budget: float | None, prices: Sequence[float] | None) -> _Money:
        if prices is None:
            if budget is not None:
                raise OptionError("budget requires prices, such as prices=2.5,10")
            return cls()
        if isinstance(prices, str | int | float) or len(prices) != 2:
            raise OptionError(
                f"prices must be two numbers, per million input and output tokens, got {prices!r:.60}"
            )
        first, second = (validate_number("prices", price, 0) for price in prices)
        return cls(None if budget is None else validate_positive("budget", budget), (first, second))

    def cost(self, usage: Usage) -> float:
        """Return the cost of some requests; 0 without prices."""
        first, second = self.prices or (0.0, 0.0)
        return (usage.input_tokens * first + usage.output_tokens * second) / 1e6


@dataclass(frozen=True)
class _Questions:
    """How questions are asked; all fields change predictions."""

    question: str
    choice: bool
    candidates: int | None
    orders: str
    seed: int

    def listings(self, image: str, allowed: Sequence[int], right: Sequence[int], names: Names) -> Listings:
        """Return the classes in the order of each question about an image.

        Args:
            image: id of the image.
            allowed: classes that a reply may name.
            right: those of them that the label stands for.
            names: names of all classes.
        """
        if not self.choice:
            return (tuple(allowed),)
        listed = list(allowed)
        if self.candidates is not None and self.candidates < len(listed):
            by_draw = sorted(listed, key=lambda place: self._draw("candidates", image, names[place][0]))
            label = next((place for place in by_draw if place in set(right)), None)
            others = [place for place in by_draw if place not in set(right)]
            chosen = {*([] if label is None else [label]), *others[: self.candidates - (label is not None)]}
            listed = [place for place in listed if place in chosen]
        if self.orders != "given":
            listed.sort(key=lambda place: self._draw("order", image, names[place][0]))
        return (tuple(listed), tuple(reversed(listed))) if self.orders == "both" else (tuple(listed),)

    def _draw(self, purpose: str, image: str, name: str) -> bytes:
        return sha256(f"{self.seed}\0{purpose}\0{image}\0{name}".encode()).digest()

    def text(self, listing: Sequence[int], names: Names) -> str:
        """Return the question that lists some classes."""
        return self.question.replace(_NAMES, ", ".join(names[place][0] for place in listing))


Names = Sequence[Sequence[str]]
Listings = tuple[tuple[int, ...], ...]
_Asked = tuple[str, NDArray[np.uint8], str]
"""Key, image and question."""


@dataclass(eq=False)
class ChatAsker:
    """Asks questions that the file of replies does not have, within the budget."""

    chat: ChatModel
    kept: ReplyFile
    facts: Mapping[str, Any]
    """Name and options of the model."""
    money: _Money
    _open: int = 0
    """Number of requests that are not answered yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.facts["name"])

    @cached_property
    def identity(self) -> str:
        """All that replies depend on beside the image and the question."""
        return json.dumps({**self.facts, "weights": self.chat.weights}, sort_keys=True)

    def key(self, image: NDArray[np.uint8], question: str) -> str:
        """Return the digest of everything that a reply depends on."""
        head = f"{self.identity}\0{question}\0{image.shape}\0".encode()
        return sha256(head + np.ascontiguousarray(image).tobytes()).hexdigest()

    def usage(self) -> Usage:
        """Return the requests and tokens of the model, over all runs with the same file of replies."""
        return self.kept.usage(self.identity)

    def cost_note(self, before: Usage) -> str:
        """Return a sentence on requests, tokens and cost since `before`."""
        usage, money = self.usage(), self.money
        new = Usage(*(now - then for now, then in zip(usage, before, strict=True)))
        return (
            f"{self.name} sent {counted(new.requests, 'request')} ({new.input_tokens:,} input and "
            f"{new.output_tokens:,} output tokens)"
            + ("" if money.prices is None else f" at a cost of {money.cost(new):.4g}{self.total(usage)}")
        )

    def total(self, usage: Usage) -> str:
        """Return the cost of all requests so far, as the end of a sentence; empty without prices."""
        cost = self.money.cost(usage)
        return "" if self.money.prices is None else f"; cost of all its requests so far: {cost:.4g}"

    def ask(self, asked: Sequence[_Asked]) -> dict[str, ChatReply]:
        """Return the replies by key."""
        found = self.kept.find(list(dict.fromkeys(key for key, _, _ in asked)))
        missing = {key: (key, image, text) for key, image, text in asked if key not in found}
        arriving = reply_concurrently(self._ask_one, missing.values(), self.chat.concurrency)
        return {**found, **dict(arriving)}

    def _ask_one(self, asked: _Asked) -> tuple[str, ChatReply]:
        key, image, text = asked
        with self._lock:
            self._check_budget()
            self._open += 1
        try:
            picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
            reply = self.chat.reply(picture, text)
            self.kept.add(key, self.identity, reply)
        finally:
            with self._lock:
                self._open -= 1
        if self.money.budget is not None and not (reply.problem or reply.input_tokens):
            raise ModelError(f"the service of {self.name} does not count tokens, so budget cannot be used")
        return key, reply

    def _check_budget(self) -> None:
        """Raise an error if the open requests and another one, at the mean cost, may exceed the budget."""
        if self.money.budget is None:
            return
        usage = self.kept.usage(self.identity)
        spent = self.money.cost(usage)
        expected = spent / usage.requests if usage.requests else 0.0
        if spent + (self._open + 1) * expected > self.money.budget:
            raise BudgetError(
                f"the requests of {self.name} have cost {spent:.4g}, and another one might exceed the budget "
                f"of {self.money.budget:g}; all replies are stored; raise budget to continue"
            )


@dataclass(frozen=True, eq=False)
class ChatClassifier:
    """A `Model` that asks a chat model for the class of each image."""

    spec: ModelSpec
    _questions: _Questions
    _names: Names
    _asker: ChatAsker
    _matcher: NameMatcher
    _about: tuple[tuple[str, ...], NDArray[np.int64], LabelSpace] | None = None
    """Ids, labels and label space of the images of the next call."""

    @property
    def device(self) -> str:
        """The device, or `remote`."""
        return str(getattr(self._asker.chat, "device", "remote"))

    def for_images(self, ids: Sequence[str], labels: NDArray[np.int64], space: LabelSpace) -> ChatClassifier:
        """Return the model for a call with images of these ids and labels.

        The ids determine the order of the names; only classes of the label space are listed. Without them,
        the pixels determine the order, and all classes are listed.
        """
        return replace(self, _about=(tuple(ids), labels, space))

    def usage(self) -> Usage:
        """Return the requests and tokens of this model, over all runs with the same file of replies."""
        return self._asker.usage()

    def cost_note(self, before: Usage) -> str:
        """Return a sentence on requests, tokens and cost since `before`."""
        return self._asker.cost_note(before)

    def expected_note(self, predictions: int) -> str:
        """Return a sentence on the number of requests for so many predictions, and their cost."""
        usage, money = self.usage(), self._asker.money
        requests = predictions * (2 if self._questions.orders == "both" else 1)
        cost = requests * money.cost(usage) / max(1, usage.requests)
        about = f", about {cost:.4g} at the mean cost so far" if cost else ""
        many = counted(requests, "request")
        return f"{self._asker.name} needs at most {many}{about}{self._asker.total(usage)}"

    def __call__(self, images: Images) -> Logits:
        """Return float32 logits `(n, classes + OUTPUTS)` of uint8 images `(n, h, w, 1 or 3)`."""
        pixels = self.spec.preprocessing.fit(
            on_host(checked_pixels(images, "a chat model gets 8-bit images"))
        )
        listings = list(self._listings(pixels))
        texts = [[self._questions.text(one, self._names) for one in some] for some in listings]
        keys = [
            [self._asker.key(image, text) for text in some] for image, some in zip(pixels, texts, strict=True)
        ]
        asked = [
            (key, image, text)
            for image, mine, some in zip(pixels, keys, texts, strict=True)
            for key, text in zip(mine, some, strict=True)
        ]
        replies = self._asker.ask(asked)
        logits = np.full((len(pixels), len(self._names) + len(OUTPUTS)), -np.inf, np.float32)
        logits[:, len(self._names) :] = _LEAST - np.arange(len(OUTPUTS))
        for row, mine, some in zip(logits, keys, listings, strict=True):
            self._fill(row, [self._result(replies[key], one) for key, one in zip(mine, some, strict=True)])
        return logits

    def _listings(self, pixels: Bytes) -> Iterator[Listings]:
        """Yield the classes of the questions about each image."""
        every = range(len(self._names))
        if self._about is None:
            for image in pixels:
                yield self._questions.listings(sha256(image.tobytes()).hexdigest(), every, (), self._names)
            return
        ids, labels, space = self._about
        members = space.outputs
        allowed: Sequence[int] = every
        if members is not None and space.convention == "restricted":
            allowed = sorted(place for some in members for place in some)
        for image, label in zip(ids, labels.reshape(len(ids), -1), strict=True):
            valid = [int(one) for one in label if one >= 0]
            right = valid if members is None else [place for one in valid for place in members[one]]
            yield self._questions.listings(image, allowed, right, self._names)

    def _result(self, reply: ChatReply, listing: tuple[int, ...]) -> tuple[int | None, int]:
        """Return the class that a reply names with the half of the list, or None with an outcome."""
        if reply.problem:
            return None, _REFUSED if reply.problem == "refused" else _UNREADABLE
        named = [place for place in self._matcher.named(reply.text) if place in set(listing)]
        if not named:
            return None, _REFUSED if _DECLINES.search(reply.text) else _UNREADABLE
        if len({self._column(place) for place in named}) > 1:
            return None, _SEVERAL
        position, half = listing.index(named[0]), len(listing) // 2
        if half <= position < len(listing) - half:
            return named[0], 0
        return named[0], 1 if position < half else -1

    def _column(self, place: int) -> int:
        """Return the class of the dataset that an output stands for."""
        space = None if self._about is None else self._about[2]
        return place if space is None or space.identity else space.columns.get(place, -1 - place)

    def _fill(self, row: NDArray[np.float32], results: Sequence[tuple[int | None, int]]) -> None:
        """Write the logits of the results of one image: a single one, or one for each order."""
        first = len(self._names)
        failed = next((outcome for place, outcome in results if place is None), None)
        if failed is not None:
            row[first + failed] = 0
            return
        places = [place for place, _ in results if place is not None]
        if self._questions.choice and self._questions.orders != "given":
            preference = sum(half for _, half in results)
            mark = 0 if preference > 0 else 1 if preference < 0 else 2
            row[first + len(OUTCOMES) + mark] = _MARK
        if len({self._column(place) for place in places}) == 1:
            row[places[0]] = 0
        else:
            row[first + _INCONSISTENT] = 0
            row[places] = -1
