"""Two-way choices of vision-language models: the intended category, or another model's wrong favorite."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from beaufort._core.validation import validate_choice
from beaufort.data import Dataset
from beaufort.data.labels import Grouping
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining.chat_models import ChatModel
from beaufort.mining.export import open_set
from beaufort.mining.names import display_name, synonyms
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import OTHER, SetPredictions, predict_set

if TYPE_CHECKING:
    from beaufort.evaluation import Progress
    from beaufort.store import Store

ChoiceOutcome = Literal["right", "wrong", "both", "neither"]

SCORINGS = ("whole-words", "as-published")
"""Names as whole words, the longest first; or as parts of words, as in the evaluation of ImageNet-D."""

ORDERS = ("by-image", "both", "truth-first")
"""In which order the two names stand."""

_INSIDE = (("can opener", "pen"), ("drying rack for plates", "plate"))
"""Pairs that the published evaluation knows to contain each other; the longer name is tried first."""


@dataclass(frozen=True)
class TwoWayQuestion:
    """An image and two names."""

    image: str
    """Its id."""
    truth: str
    distractor: str
    truth_first: bool

    @property
    def text(self) -> str:
        """The question as a model reads it.

        >>> TwoWayQuestion("1.png", "cup", "t_shirt", truth_first=False).text
        'What is the main object in this image? Answer with one of these two: t shirt, cup.'
        """
        names = [display_name(self.truth), display_name(self.distractor)]
        if not self.truth_first:
            names.reverse()
        return f"What is the main object in this image? Answer with one of these two: {', '.join(names)}."

    @property
    def key(self) -> str:
        """The image and the order, which identify a question."""
        return f"{self.image} {'truth' if self.truth_first else 'distractor'} first"


@dataclass(frozen=True)
class ChoiceAnswer:
    """A question and its answer."""

    question: TwoWayQuestion
    answer: str


@dataclass(frozen=True)
class ChoiceScores:
    """Scores of a model in two-way choices; chance is 0.5."""

    images: int
    questions: int
    counts: Mapping[ChoiceOutcome, int]
    coverage: Estimate
    """Fraction of answers that name exactly one of the two."""
    accuracy: Estimate | None
    """Fraction right among the answers that name exactly one; None if none does."""
    right_when_first: Estimate | None
    """The same where the truth stands first."""
    right_when_second: Estimate | None
    position_bias: Estimate | None
    """How much more often the truth is named where it stands first; None unless both orders occur."""
    consistent: Estimate | None
    """Fraction of images with the same outcome in both orders, of those answered in both."""


ESTIMATES = {
    "accuracy": "accuracy",
    "coverage": "coverage",
    "right_when_first": "truth first",
    "right_when_second": "truth second",
    "position_bias": "position bias",
    "consistent": "same in both orders",
}
"""Attributes of `ChoiceScores`, and their names in tables."""


def make_questions(
    predictions: SetPredictions, favorites: str, *, orders: str = "by-image", seed: int = 0
) -> tuple[TwoWayQuestion, ...]:
    """Make one or two questions for each image.

    Args:
        predictions: with those of the model whose wrong favorites are the distractors.
        favorites: that model, usually a zero-shot one, which chooses among the categories alone.
        orders: `by-image`, a fair coin from the image's id and the seed; `both` orders; or `truth-first`, as
            ImageNet-D was published, which favors models that prefer the first.
        seed: seed of the coin.
    """
    validate_choice("order", orders, ORDERS)
    row = predictions.runners_up[predictions.row(favorites)]
    if (row == OTHER).any():
        image = predictions.ids[int((row == OTHER).argmax())]
        raise MiningError(
            f"{favorites} has no wrong category among its five best outputs for {image}; use a model that "
            "chooses among the categories alone"
        )
    questions = []
    for image, label, wrong in zip(predictions.ids, predictions.labels.tolist(), row.tolist(), strict=True):
        coin = sha256(f"{seed} {image}".encode()).digest()[0] % 2 == 0
        for first in {"both": (True, False), "truth-first": (True,)}.get(orders, (coin,)):
            truth, distractor = predictions.categories[label], predictions.categories[wrong]
            questions.append(TwoWayQuestion(image, truth, distractor, first))
    return tuple(questions)


def ask_questions(
    model: ChatModel,
    questions: Sequence[TwoWayQuestion],
    data: Dataset,
    path: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ChoiceAnswer, ...]:
    """Return the answers to all questions; those in a file are not asked again.

    Args:
        model: the vision-language model.
        questions: the questions.
        data: the images.
        path: a file of JSON lines for the answers, each on the disk before the next question. A file of
            another model, setting or question is rejected.
        progress: called with the number of answered questions and of all.
    """
    header = json.loads(json.dumps({"model": dict(model.facts), "data": data.digest()}))
    known = _known(path, header)
    for question in questions:
        if question.key in known and known[question.key].question != question:
            raise MiningError(f"{path} has another distractor for {question.image}; write to a new file")
    places = {one: place for place, one in enumerate(data.ids)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        if not file.tell():
            _append(file, header)
        for number, question in enumerate(questions):
            if question.key not in known:
                pixels = data[places[question.image]].image
                image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
                known[question.key] = ChoiceAnswer(question, model.answer(image, question.text))
                _append(file, {**asdict(question), "answer": known[question.key].answer})
            if progress is not None:
                progress(number + 1, len(questions))
    return tuple(known[question.key] for question in questions)


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
) -> tuple[ChoiceAnswer, ...]:
    """Ask a vision-language model about every image of a set.

    Args:
        location: as for `open_set`.
        model: the vision-language model.
        favorites: the model whose wrong favorites are the distractors, as for `predict_set`.
        path: as for `ask_questions`.
        store: where predictions of `favorites` are stored.
        orders: as for `make_questions`.
        labels: as for `predict_set`; those of the set by default.
        seed: as for `make_questions`.
        prediction_progress: as for `evaluate`.
        progress: as for `ask_questions`.
    """
    validate_choice("order", orders, ORDERS)  # before the model runs, which may take hours
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


def read_choices(path: Path, data: Dataset | None = None) -> tuple[str, tuple[ChoiceAnswer, ...]]:
    """Return the name of the model that a file has answers of, and the answers.

    Args:
        path: what `ask_questions` filled.
        data: the set that the answers must be about; any by default.
    """
    header, answers = _lines(path)
    try:
        name, digest = str(header["model"]["name"]), header["data"]
    except (KeyError, TypeError):
        raise MiningError(f"{path} is not a file of `beaufort mine ask`") from None
    if data is not None and digest != data.digest():
        raise MiningError(f"{path} is about other images than those of {data.name}")
    if data is not None and (other := {one.question.image for one in answers} - set(data.ids)):
        raise MiningError(f"{path} is about {min(other)!r}, which is not among the images of {data.name}")
    return name, answers


def score_choices(answers: Sequence[ChoiceAnswer], *, scoring: str = "whole-words") -> ChoiceScores:
    """Return accuracy with coverage, and the effect of the order of the two names.

    Args:
        answers: of one model.
        scoring: one of `SCORINGS`.
    """
    if not answers:
        raise MiningError("at least one answer is required")
    outcomes = [
        score_answer(one.answer, one.question.truth, one.question.distractor, scoring=scoring)
        for one in answers
    ]
    by_image: dict[str, dict[bool, ChoiceOutcome]] = {}
    for one, outcome in zip(answers, outcomes, strict=True):
        by_image.setdefault(one.question.image, {})[one.question.truth_first] = outcome
    # Whether an answer is right, by the order, where it names exactly one of the two.
    rows = [
        {first: outcome == "right" for first, outcome in row.items() if outcome in ("right", "wrong")}
        for row in by_image.values()
    ]
    paired = [row for row in rows if len(row) == 2]
    first, second = (_fraction(row[side] for row in rows if side in row) for side in (True, False))
    accuracies = [float(np.mean(list(row.values()))) for row in rows if row]
    return ChoiceScores(
        images=len(by_image),
        questions=len(answers),
        counts={name: outcomes.count(name) for name in ("right", "wrong", "both", "neither")},
        coverage=mean_interval(
            [len(some) / len(row) for some, row in zip(rows, by_image.values(), strict=True)]
        ),
        accuracy=mean_interval(accuracies) if accuracies else None,
        right_when_first=first,
        right_when_second=second,
        position_bias=mean_interval(
            [float(row[True]) - float(row[False]) for row in paired], low=-1.0, high=1.0
        )
        if paired
        else _difference(first, second),
        consistent=_fraction(row[True] == row[False] for row in paired),
    )


def _fraction(values: Iterable[bool]) -> Estimate | None:
    found = list(values)
    return clopper_pearson(sum(found), len(found)) if found else None


def _difference(first: Estimate | None, second: Estimate | None) -> Estimate | None:
    """Newcombe's interval of the difference of fractions of two groups of images."""
    if first is None or second is None:
        return None
    value = first.value - second.value
    below = float(np.hypot(first.value - first.low, second.high - second.value))
    above = float(np.hypot(first.high - first.value, second.value - second.low))
    return Estimate(value, value - below, value + above, first.n + second.n)


def score_answer(answer: str, truth: str, distractor: str, *, scoring: str = "whole-words") -> ChoiceOutcome:
    """Return which of two categories an answer names, by its name or a synonym.

    Args:
        answer: free text of a model.
        truth: the intended category.
        distractor: the other one.
        scoring: one of `SCORINGS`. With whole words a name inside a longer one that matched does not count.

    >>> score_answer("It is a can opener.", "can_opener", "pen")
    'right'
    >>> [score_answer("A pencil!", "pen", "bucket", scoring=scoring) for scoring in SCORINGS]
    ['neither', 'right']
    """
    text, names = answer.lower(), (_names(truth), _names(distractor))
    if validate_choice("scoring", scoring, SCORINGS) == "whole-words":
        right, wrong = _named(text, *names)
    else:
        shown = (display_name(truth), display_name(distractor))
        for pair in _INSIDE:
            if set(pair) == set(shown):  # the longer one first, and only if it is not there the other
                found = next((name for name in pair if name in text), None)
                return "neither" if found is None else "right" if found == shown[0] else "wrong"
        right, wrong = (any(name in text for name in some) for some in names)
    if right and wrong:
        return "both"
    return "right" if right else "wrong" if wrong else "neither"


def _names(category: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((display_name(category), *(name.lower() for name in synonyms(category)))))


def _named(text: str, first: Sequence[str], second: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a text has a name of each list; a longer name takes the words it covers."""
    found = [False, False]
    names = [(name, side) for side, names in enumerate((first, second)) for name in names]
    for name, side in sorted(names, key=lambda pair: -len(pair[0])):
        # whole words, also in the plural; spaces and hyphens are the same
        words = [re.escape(word) for word in re.split(r"[\s_-]+", name) if word]
        pattern = re.compile(r"(?<!\w)" + r"[\s_-]+".join(words) + r"(?:e?s)?(?!\w)")
        if pattern.search(text):
            found[side] = True
            if not any(other == name and own != side for other, own in names):
                text = pattern.sub(" \0 ", text)  # a word of its own that no name has
    return found[0], found[1]


# The file of answers


def _append(file: Any, values: Mapping[str, Any]) -> None:
    """Write a line, which is on the disk when this returns."""
    file.write(json.dumps(values, ensure_ascii=True).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _known(path: Path, header: Mapping[str, Any]) -> dict[str, ChoiceAnswer]:
    """Return the answers in a file; a line that a kill cut short is removed."""
    if not path.is_file():
        return {}
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    if not whole:
        return {}
    first, answers = _lines(path)
    if first != header:
        raise MiningError(
            f"{path} has answers of another model, setting or set: {json.dumps(first)}, now "
            f"{json.dumps(header)}; write to a new file"
        )
    return {one.question.key: one for one in answers}


def _lines(path: Path) -> tuple[Any, tuple[ChoiceAnswer, ...]]:
    """Return the header of a file, and its answers."""
    try:
        first, *rows = (json.loads(line) for line in path.read_bytes().splitlines())
        answers = tuple(map(_answer, rows))
        if len({one.question.key for one in answers}) < len(answers):
            raise ValueError("duplicate question")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MiningError(f"cannot read {path} as JSON lines of `beaufort mine ask`: {error!r}") from None
    return first, answers


def _answer(row: Mapping[str, Any]) -> ChoiceAnswer:
    texts = [row[name] for name in ("image", "truth", "distractor", "answer")]
    if not all(isinstance(text, str) for text in texts) or not isinstance(row["truth_first"], bool):
        raise TypeError("an answer must have strings, and true or false for the order")
    image, truth, distractor, answer = texts
    return ChoiceAnswer(TwoWayQuestion(image, truth, distractor, row["truth_first"]), answer)
