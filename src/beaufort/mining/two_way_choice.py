"""Two-way choices of vision-language models between the intended category and a distractor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from PIL import Image

from beaufort._core.validation import validate_choice
from beaufort.data import Dataset
from beaufort.data.labels import Grouping
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining.export import open_set
from beaufort.mining.names import display_name, synonyms
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import OTHER, SetPredictions, predict_set
from beaufort.models.chat_client import ChatModel, NoReply, reply_concurrently
from beaufort.models.name_matching import NameMatcher

if TYPE_CHECKING:
    from beaufort.evaluation import Progress
    from beaufort.store import Store

ChoiceOutcome = Literal["right", "wrong", "both", "neither", "refused", "unreadable"]
OUTCOMES: tuple[ChoiceOutcome, ...] = get_args(ChoiceOutcome)

SCORINGS = ("whole-words", "as-published")
"""Match names as whole words, the longest first; or as substrings, as in the evaluation of ImageNet-D."""

ORDERS = ("by-image", "both", "label-first")
"""Orders of the two names in a question."""

_NESTED = (("can opener", "pen"), ("drying rack for plates", "plate"))
"""Pairs of which the published evaluation matches the longer name first."""


@dataclass(frozen=True)
class TwoWayQuestion:
    """An image and two names."""

    image: str
    """Id of the image."""
    label: str
    """Intended category."""
    distractor: str
    label_first: bool

    @property
    def text(self) -> str:
        """The question as sent to a model.

        >>> TwoWayQuestion("1.png", "cup", "t_shirt", label_first=False).text
        'What is the main object in this image? Answer with one of these two: t shirt, cup.'
        """
        names = [display_name(self.label), display_name(self.distractor)]
        if not self.label_first:
            names.reverse()
        return f"What is the main object in this image? Answer with one of these two: {', '.join(names)}."

    @property
    def key(self) -> tuple[str, bool]:
        """The image and the order, which identify a question."""
        return self.image, self.label_first


@dataclass(frozen=True)
class ChoiceReply:
    """A question and a model's reply."""

    question: TwoWayQuestion
    reply: str
    problem: NoReply = ""
    """Why the model gave no reply, if it gave none; `reply` contains details then."""


@dataclass(frozen=True)
class ChoiceScores:
    """Scores of a model in two-way choices; chance is 0.5."""

    images: int
    questions: int
    counts: Mapping[ChoiceOutcome, int]
    coverage: Estimate
    """Fraction of replies that name exactly one of the two."""
    accuracy: Estimate | None
    """Fraction correct among replies that name exactly one; None if there are none."""
    right_when_first: Estimate | None
    """Accuracy where the label is first."""
    right_when_second: Estimate | None
    position_bias: Estimate | None
    """Difference between the two; None unless both orders occur."""
    consistent: Estimate | None
    """Fraction of images with the same outcome in both orders, among images with two usable replies."""


ESTIMATES = {
    "accuracy": "accuracy",
    "coverage": "coverage",
    "right_when_first": "label first",
    "right_when_second": "label second",
    "position_bias": "position bias",
    "consistent": "same in both orders",
}
"""Attributes of `ChoiceScores`, and their names in tables."""


def make_questions(
    predictions: SetPredictions, favorites: str, *, orders: str = "by-image", seed: int = 0
) -> tuple[TwoWayQuestion, ...]:
    """Return one or two questions for each image.

    Args:
        predictions: predictions of the model below, and perhaps of others.
        favorites: model whose best wrong category is the distractor, usually a zero-shot model, which
            chooses among the categories alone.
        orders: `by-image`, a fair coin from the id of the image and the seed; `both` orders; or
            `label-first`, as ImageNet-D was published, which favors models that prefer the first name.
        seed: seed of the coin.
    """
    validate_choice("order", orders, ORDERS)
    wrong = predictions.runners_up[predictions.row(favorites)]
    if (wrong == OTHER).any():
        image = predictions.ids[int((wrong == OTHER).argmax())]
        raise MiningError(
            f"the five most probable outputs of {favorites} for {image} contain no wrong category; "
            "use a model whose outputs are the categories, such as open_clip"
        )
    questions = []
    for image, *places in zip(predictions.ids, predictions.labels.tolist(), wrong.tolist(), strict=True):
        label, distractor = (predictions.categories[place] for place in places)
        coin = sha256(f"{seed} {image}".encode()).digest()[0] % 2 == 0
        for first in {"both": (True, False), "label-first": (True,)}.get(orders, (coin,)):
            questions.append(TwoWayQuestion(image, label, distractor, first))
    return tuple(questions)


def ask_questions(
    model: ChatModel,
    questions: Sequence[TwoWayQuestion],
    data: Dataset,
    path: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ChoiceReply, ...]:
    """Return a model's replies to all questions; replies in the file are reused.

    Args:
        model: the vision-language model.
        questions: the questions.
        data: the images.
        path: JSON Lines file, to which each reply is saved when it arrives. Refusals and unreadable replies
            are saved, too. A file of a different model, set or distractor is rejected.
        progress: called with the number of finished questions and of all.
    """
    header = json.loads(json.dumps({"format": _FORMAT, "model": dict(model.facts), "data": data.digest()}))
    replies = _existing_replies(path, header)
    for question in questions:
        if question.key in replies and replies[question.key].question != question:
            raise MiningError(f"{path} has another distractor for {question.image}; write to a new file")
    places = {one: place for place, one in enumerate(data.ids)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:

        def append(values: Mapping[str, Any]) -> None:
            file.write(json.dumps(values, ensure_ascii=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

        if not file.tell():
            append(header)

        def ask(question: TwoWayQuestion) -> ChoiceReply:
            pixels = data[places[question.image]].image
            image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
            reply = model.reply(image, question.text)
            return ChoiceReply(question, reply.text, reply.problem)

        missing = [question for question in questions if question.key not in replies]
        arriving = reply_concurrently(ask, missing, model.concurrency)
        for number, reply in enumerate(arriving, len(questions) - len(missing) + 1):
            question = reply.question
            values = (
                *(question.image, question.label, question.distractor),
                *(question.label_first, reply.reply),
            )
            row = dict(zip(_COLUMNS, values, strict=True))
            append({**row, "problem": reply.problem} if reply.problem else row)
            replies[question.key] = reply
            if progress is not None:
                progress(number, len(questions))
    return tuple(replies[question.key] for question in questions)


def ask_about_set(
    location: str,
    model: ChatModel,
    favorites: Any,
    path: Path,
    store: str | Path | Store,
    *,
    orders: str = "by-image",
    labels: Grouping | str | None = None,
    seed: int = 0,
    prediction_progress: Callable[[Progress], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ChoiceReply, ...]:
    """Ask a vision-language model about every image of a set, and return its replies.

    Predictions of `favorites`, the model for the distractors, go to the store. Other arguments are those of
    `open_set`, `make_questions`, `predict_set` and `ask_questions`.
    """
    validate_choice("order", orders, ORDERS)  # before models run, which may take hours
    mined = open_set(location)
    predictions = predict_set(
        [favorites],
        mined.data,
        store,
        labels=labels or mined.labels,
        convention="restricted",
        progress=prediction_progress,
    )
    questions = make_questions(predictions, predictions.models[0], orders=orders, seed=seed)
    return ask_questions(model, questions, mined.data, path, progress=progress)


def score_choices(replies: Sequence[ChoiceReply], *, scoring: str = "whole-words") -> ChoiceScores:
    """Return accuracy with coverage, and the effect of the order of the two names.

    Args:
        replies: replies of one model.
        scoring: one of `SCORINGS`.
    """
    if not replies:
        raise MiningError("at least one reply is required")
    by_image: dict[str, dict[bool, ChoiceOutcome]] = {}
    outcomes: list[ChoiceOutcome] = []
    for one in replies:
        question = one.question
        outcomes.append(
            one.problem or score_reply(one.reply, question.label, question.distractor, scoring=scoring)
        )
        by_image.setdefault(question.image, {})[question.label_first] = outcomes[-1]
    # Whether a reply is right, by order, where it names exactly one of the two.
    rows = [
        {first: outcome == "right" for first, outcome in row.items() if outcome in ("right", "wrong")}
        for row in by_image.values()
    ]
    pairs = [(row[True], row[False]) for row in rows if len(row) == 2]
    first, second = (_fraction(row[side] for row in rows if side in row) for side in (True, False))
    accuracies = [float(np.mean(list(row.values()))) for row in rows if row]
    bias = _difference(first, second)
    if pairs:
        bias = mean_interval([float(a) - float(b) for a, b in pairs], low=-1.0, high=1.0)
    return ChoiceScores(
        images=len(by_image),
        questions=len(replies),
        counts={name: outcomes.count(name) for name in OUTCOMES},
        coverage=mean_interval(
            [len(some) / len(row) for some, row in zip(rows, by_image.values(), strict=True)]
        ),
        accuracy=mean_interval(accuracies) if accuracies else None,
        right_when_first=first,
        right_when_second=second,
        position_bias=bias,
        consistent=_fraction(a == b for a, b in pairs),
    )


def _fraction(values: Iterable[bool]) -> Estimate | None:
    found = list(values)
    return clopper_pearson(sum(found), len(found)) if found else None


def _difference(first: Estimate | None, second: Estimate | None) -> Estimate | None:
    """Return Newcombe's interval of the difference of fractions of two groups of images."""
    if first is None or second is None:
        return None
    value = first.value - second.value
    below = float(np.hypot(first.value - first.low, second.high - second.value))
    above = float(np.hypot(first.high - first.value, second.value - second.low))
    return Estimate(value, value - below, value + above, first.n + second.n)


def score_reply(reply: str, label: str, distractor: str, *, scoring: str = "whole-words") -> ChoiceOutcome:
    """Return which of two categories a reply names, by name or synonym.

    Args:
        reply: free text of a model.
        label: the intended category.
        distractor: the other category.
        scoring: one of `SCORINGS`. With whole words, a name inside a longer matching name does not count.

    >>> score_reply("It is a can opener.", "can_opener", "pen")
    'right'
    >>> [score_reply("A pencil!", "pen", "bucket", scoring=scoring) for scoring in SCORINGS]
    ['neither', 'right']
    """
    text, names = reply.lower(), (_names(label), _names(distractor))
    if validate_choice("scoring", scoring, SCORINGS) == "whole-words":
        named = NameMatcher(names).named(text)
        right, wrong = 0 in named, 1 in named
    else:
        for pair in _NESTED:
            if set(pair) == {display_name(label), display_name(distractor)}:
                found = next((name for name in pair if name in text), None)
                return "neither" if found is None else "right" if found == display_name(label) else "wrong"
        right, wrong = (any(name in text for name in some) for some in names)
    if right and wrong:
        return "both"
    return "right" if right else "wrong" if wrong else "neither"


def _names(category: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((display_name(category), *(name.lower() for name in synonyms(category)))))


# The file of replies: a header, then a line for each

_FORMAT = 2
_COLUMNS = ("image", "label", "distractor", "label_first", "reply")
_EARLIER = {"label": "truth", "label_first": "truth_first", "reply": "answer"}
"""Names of columns in files of format 1, whose header has no format."""


def read_choices(path: Path, data: Dataset | None = None) -> tuple[str, tuple[ChoiceReply, ...]]:
    """Return the name of the model of a file, and its replies.

    Args:
        path: a file written by `ask_questions`.
        data: the set that the replies must be about; any by default.
    """
    header, replies = _read(path)
    try:
        name, digest = str(header["model"]["name"]), header["data"]
    except (KeyError, TypeError):
        raise MiningError(f"{path} is not a file of `beaufort mine ask`") from None
    if data is not None and digest != data.digest():
        raise MiningError(f"{path} has replies for other images than those of {data.name}")
    if data is not None and (other := {one.question.image for one in replies} - set(data.ids)):
        raise MiningError(f"{path} has a reply for {min(other)!r}, which is not an image of {data.name}")
    return name, replies


def _existing_replies(path: Path, header: Mapping[str, Any]) -> dict[tuple[str, bool], ChoiceReply]:
    """Return the replies in a file by question; an incomplete last line is removed."""
    if not path.is_file():
        return {}
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        os.truncate(path, complete)
    if not complete:
        return {}
    first, replies = _read(path)
    if {**first, "format": _FORMAT} != header:
        raise MiningError(
            f"{path} has replies of a different model, setting or set: {json.dumps(first)}, now "
            f"{json.dumps(header)}; write to a new file"
        )
    return {one.question.key: one for one in replies}


def _read(path: Path) -> tuple[Any, tuple[ChoiceReply, ...]]:
    """Return header and replies of a file."""
    try:
        header, *rows = (json.loads(line) for line in path.read_bytes().splitlines())
        if not isinstance(header, dict) or header.get("format", 1) not in (1, _FORMAT):
            raise ValueError(f"its format is not {_FORMAT} or earlier")
        replies = []
        for row in rows:
            image, label, distractor, label_first, reply = (
                row.get(name, row.get(_EARLIER.get(name))) for name in _COLUMNS
            )
            texts = (image, label, distractor, reply)
            if set(map(type, texts)) != {str} or not isinstance(label_first, bool):
                raise TypeError(f"{_COLUMNS[3]} must be true or false, and the other fields must be strings")
            question = TwoWayQuestion(image, label, distractor, label_first)
            problem = row.get("problem", "")
            if problem not in ("", "refused", "unreadable"):
                raise ValueError(f"unknown problem {problem!r}")
            replies.append(ChoiceReply(question, reply, problem))
        if len({one.question.key for one in replies}) < len(replies):
            raise ValueError("duplicate question")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MiningError(f"cannot read {path} as JSON lines of `beaufort mine ask`: {error!r}") from None
    return header, tuple(replies)
