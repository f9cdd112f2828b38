"""Asking a vision-language model: every answer on the disk before the next question; killed, it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beaufort.data import Dataset
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining.answer_scoring import ChoiceOutcome, score_answer
from beaufort.mining.chat import ChatModel
from beaufort.mining.plan import MiningError
from beaufort.mining.questions import TwoWayQuestion


@dataclass(frozen=True)
class ChoiceAnswer:
    """A question and what was said."""

    question: TwoWayQuestion
    answer: str


@dataclass(frozen=True)
class ChoiceScores:
    """How a model did at two-way choices; chance is a half."""

    images: int
    questions: int
    counts: Mapping[ChoiceOutcome, int]
    coverage: Estimate
    """Share of images with an answer that names exactly one of the two."""
    accuracy: Estimate | None
    """Share right among the answers that name exactly one; None if none does."""
    right_when_first: Estimate | None
    """The same where the truth stands first."""
    right_when_second: Estimate | None
    position_bias: Estimate | None
    """How much more often the truth is named where it stands first; None unless both orders occur."""
    consistent: Estimate | None
    """Share of images with the same answer in both orders, of those answered in both; None without such."""


def ask_questions(
    model: ChatModel,
    questions: Sequence[TwoWayQuestion],
    data: Dataset,
    path: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ChoiceAnswer, ...]:
    """The answers to all questions; those that a file has are not asked again.

    Args:
        model: who is asked.
        questions: what is asked.
        data: the images.
        path: a file of JSON lines that keeps the answers. One that another model, setting or question
            filled is refused.
        progress: told how many are answered, of how many.
    """
    header = json.loads(json.dumps({"model": dict(model.facts), "data": data.digest()}))
    known = _known(path, header)
    for question in questions:
        if question.key in known and known[question.key].question != question:
            raise MiningError(
                f"{path} must hold answers to the same questions, got another distractor for "
                f"{question.image}; write to a new file"
            )
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


def read_choices(path: Path, data: Dataset | None = None) -> tuple[str, tuple[ChoiceAnswer, ...]]:
    """The name of the model that a file has answers of, and the answers.

    Args:
        path: what `ask_questions` filled.
        data: the set that they must be answers to; any if not given.
    """
    header, answers = _lines(path)
    try:
        name, digest = str(header["model"]["name"]), header["data"]
    except (KeyError, TypeError):
        raise MiningError(f"answers must be as `beaufort mine ask` writes them, got {path}") from None
    if data is not None and digest != data.digest():
        raise MiningError(
            f"answers must be about the images of {data.name}, got those to other images in {path}"
        )
    if data is not None and (other := {one.question.image for one in answers} - set(data.ids)):
        raise MiningError(f"answers must be about the images of {data.name}, got {min(other)!r} in {path}")
    return name, answers


def score_choices(answers: Sequence[ChoiceAnswer], *, scoring: str = "whole-words") -> ChoiceScores:
    """Accuracy with coverage, and what the order of the two names does.

    Args:
        answers: of one model.
        scoring: one of `SCORINGS`.
    """
    if not answers:
        raise MiningError("there must be at least one answer, got none")
    outcomes = [
        score_answer(one.answer, one.question.truth, one.question.distractor, scoring=scoring)
        for one in answers
    ]
    by_image: dict[str, dict[bool, ChoiceOutcome]] = {}
    for one, outcome in zip(answers, outcomes, strict=True):
        by_image.setdefault(one.question.image, {})[one.question.truth_first] = outcome
    named = [[o == "right" for o in row.values() if o in ("right", "wrong")] for row in by_image.values()]
    sides = [_side(by_image.values(), first) for first in (True, False)]
    return ChoiceScores(
        images=len(by_image),
        questions=len(answers),
        counts={name: outcomes.count(name) for name in ("right", "wrong", "both", "neither")},
        coverage=mean_interval(
            [len(some) / len(row) for some, row in zip(named, by_image.values(), strict=True)]
        ),
        accuracy=_mean([float(np.mean(some)) for some in named if some]),
        right_when_first=sides[0],
        right_when_second=sides[1],
        position_bias=_bias(list(by_image.values()), sides),
        consistent=_consistent(by_image.values()),
    )


def _mean(values: Sequence[float]) -> Estimate | None:
    return mean_interval(values) if values else None


def _side(rows: Any, first: bool) -> Estimate | None:
    told = [row[first] == "right" for row in rows if row.get(first) in ("right", "wrong")]
    return clopper_pearson(sum(told), len(told)) if told else None


def _bias(rows: Sequence[Mapping[bool, str]], sides: Sequence[Estimate | None]) -> Estimate | None:
    """Of images asked in both orders the paired difference; otherwise Newcombe's of two groups of images."""
    paired = [
        float(row[True] == "right") - float(row[False] == "right")
        for row in rows
        if all(row.get(first) in ("right", "wrong") for first in (True, False))
    ]
    if paired:
        return mean_interval(paired, low=-1.0, high=1.0)
    first, second = sides
    if first is None or second is None:
        return None
    value = first.value - second.value
    below = float(np.hypot(first.value - first.low, second.high - second.value))
    above = float(np.hypot(first.high - first.value, second.value - second.low))
    return Estimate(value, value - below, value + above, first.n + second.n)


def _consistent(rows: Any) -> Estimate | None:
    both = [row for row in rows if all(row.get(first) in ("right", "wrong") for first in (True, False))]
    return clopper_pearson(sum(row[True] == row[False] for row in both), len(both)) if both else None


def _append(file: Any, values: Mapping[str, Any]) -> None:
    """A line, on the disk when this returns."""
    file.write(json.dumps(values, ensure_ascii=True).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _known(path: Path, header: Mapping[str, Any]) -> dict[str, ChoiceAnswer]:
    """The answers that a file has; a line that a kill cut short is taken away."""
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
            f"{path} must hold answers of one model with one setting to one set, got {json.dumps(first)} "
            f"where {json.dumps(header)} is asked; write to a new file"
        )
    return {one.question.key: one for one in answers}


def _lines(path: Path) -> tuple[Any, tuple[ChoiceAnswer, ...]]:
    """What a file says about itself, and its answers."""
    try:
        first, *rows = (json.loads(line) for line in path.read_bytes().splitlines())
        answers = tuple(map(_answer, rows))
        if len({one.question.key for one in answers}) < len(answers):
            raise ValueError("a question is there twice")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MiningError(
            f"answers must be JSON lines as `beaufort mine ask` writes them, got {path} ({error!r})"
        ) from None
    return first, answers


def _answer(row: Mapping[str, Any]) -> ChoiceAnswer:
    texts = [row[name] for name in ("image", "truth", "distractor", "answer")]
    if not all(isinstance(text, str) for text in texts) or not isinstance(row["truth_first"], bool):
        raise TypeError("an answer has texts, and true or false for the order")
    image, truth, distractor, answer = texts
    return ChoiceAnswer(TwoWayQuestion(image, truth, distractor, row["truth_first"]), answer)
