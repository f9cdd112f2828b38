"""Two-way choices: questions to models, parsing of replies, and the effect of the order."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Dataset
from beaufort.mining import (
    ChoiceReply,
    MiningError,
    TwoWayQuestion,
    ask_questions,
    make_questions,
    open_generated,
    predict_set,
    read_choices,
    score_choices,
    score_reply,
)
from beaufort.mining.names import display_name, synonyms
from beaufort.models import ChatReply, HttpChatModel, ModelError, load_chat_model
from tests.json_service import JsonService, Reply
from tests.mining.world import middle


@pytest.mark.parametrize(
    ("output", "expected", "distractor", "ours", "published"),
    [
        ("A chair.", "chair", "bucket", "right", "right"),
        ("It's a bucket", "chair", "bucket", "wrong", "wrong"),
        ("Chairs and buckets", "chair", "bucket", "both", "both"),
        ("I cannot tell", "chair", "bucket", "neither", "neither"),
        ("The CELL PHONE", "cellphone", "bucket", "right", "right"),
        ("a television set", "tv", "bucket", "right", "right"),
        ("a can opener", "can_opener", "pen", "right", "right"),
        ("a can opener", "pen", "can_opener", "wrong", "wrong"),
        ("a drying rack for plates", "plate", "drying_rack_for_plates", "wrong", "wrong"),
        ("a wheelbarrow", "wheel", "chair", "neither", "right"),
        ("an alarm clock", "alarm_clock", "wall clock", "right", "right"),
        ("a t-shirt", "t_shirt", "skirt", "right", "right"),
        ("a bicycle wheel", "wheel", "bicycle", "right", "both"),
        ("soup_bowl", "soup_bowl", "chair", "right", "neither"),
        ("matches", "matchstick", "chair", "right", "right"),
        ("an iron (for clothes)", "iron_for_clothes", "chair", "right", "right"),
        ("", "chair", "bucket", "neither", "neither"),
    ],
)
def test_parsing_replies(output: str, expected: str, distractor: str, ours: str, published: str) -> None:
    assert score_reply(output, expected, distractor) == ours
    assert score_reply(output, expected, distractor, scoring="as-published") == published
    swapped = {"right": "wrong", "wrong": "right"}
    assert score_reply(output, distractor, expected) == swapped.get(ours, ours)


def test_names_and_synonyms_are_the_published_ones(shared: Path) -> None:
    names = json.loads((shared / "data/imagenet_d/category_index_and_name.json").read_text())
    others = json.loads((shared / "data/imagenet_d/vqa_answer_synonyms.json").read_text())
    for category, (_, shown) in names.items():
        plain = shown.replace("_", " ").replace("-", " ").replace("/", " or ").lower()
        assert display_name(category) == plain
        assert synonyms(category) == tuple(others.get(plain, ()))


def test_scorings_are_named() -> None:
    with pytest.raises(UnknownNameError, match="'loose'"):
        score_reply("", "a", "b", scoring="loose")


def replied(*rows: tuple[str, bool, str]) -> list[ChoiceReply]:
    return [
        ChoiceReply(TwoWayQuestion(image, "chair", "bucket", first), message)
        for image, first, message in rows
    ]


def test_coverage_stands_beside_accuracy() -> None:
    output = ["chair"] * 6 + ["bucket"] * 2 + ["chair or bucket", "dunno"]
    found = score_choices(replied(*((str(i), i % 2 == 0, text) for i, text in enumerate(output))))
    nothing = {"refused": 0, "unreadable": 0}
    assert found.counts == {"right": 6, "wrong": 2, "both": 1, "neither": 1, **nothing}
    assert found.accuracy is not None
    assert found.accuracy.value == 0.75
    assert found.coverage.value == 0.8
    assert found.consistent is None
    silent = score_choices(replied(("1", True, "?")))
    assert silent.accuracy is None
    assert silent.coverage.value == 0


def test_a_model_that_takes_the_first_has_a_position_bias() -> None:
    both = [(str(i), first, "chair" if first else "bucket") for i in range(20) for first in (True, False)]
    found = score_choices(replied(*both))
    assert found.images == 20
    assert found.accuracy is not None
    assert found.position_bias is not None
    assert found.consistent is not None
    assert found.accuracy.value == 0.5
    assert found.position_bias.value == 1
    assert found.consistent.value == 0
    once = score_choices(replied(*(row for i, row in enumerate(both) if i % 4 in (0, 3))))
    assert once.position_bias is not None
    assert once.position_bias.value == 1
    assert once.position_bias.low > 0.5
    assert score_choices(replied(*both[::2])).position_bias is None


class Stub:
    """An OpenAI-compatible service that replies by the pixel in the center of the image."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.troubles: list[int] = []
        self.odd: list[Reply] = []
        self.together: threading.Barrier | None = None
        service = JsonService(self._respond)
        self.address, self.close = f"{service.url}/v1", service.close

    def _respond(self, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        if self.troubles:
            return Reply(b"", self.troubles.pop(0))
        if self.odd:
            return self.odd.pop(0)
        if self.together is not None:
            self.together.wait()
        self.requests.append({"path": path, **body})
        self.keys.append(headers.get("Authorization"))
        text, image = body["messages"][0]["content"]
        content = base64.b64decode(image["image_url"]["url"].partition(",")[2])
        pixel = np.asarray(Image.open(io.BytesIO(content)))[16, 16]
        names = text["text"].rpartition(": ")[2].rstrip(".").split(", ")
        return Reply({"choices": [{"message": {"content": f"The {names[int(pixel.sum()) % 2]}."}}]})


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Stub()
    yield running
    running.close()


@pytest.fixture
def set_and_questions(images: Path, tmp_path: Path) -> tuple[Dataset, tuple[TwoWayQuestion, ...]]:
    data, _ = open_generated(images)
    return data, make_questions(predict_set([middle()], data, tmp_path / "store"), "middle")


def test_distractors_are_the_wrong_favorites(images: Path, tmp_path: Path) -> None:
    data, _ = open_generated(images)
    predictions = predict_set([middle()], data, tmp_path / "store")
    questions = make_questions(predictions, "middle")
    for place, one in enumerate(questions):
        assert one.label == predictions.categories[predictions.labels[place]] != one.distractor
        if predictions.failed[0, place]:
            assert one.distractor == predictions.categories[predictions.predicted[0, place]]
    first = [one.label_first for one in questions]
    assert 15 < sum(first) < 45  # a coin for each image
    assert first == [one.label_first for one in make_questions(predictions, "middle")]
    assert first != [one.label_first for one in make_questions(predictions, "middle", seed=1)]
    assert len(make_questions(predictions, "middle", orders="both")) == 120
    assert all(one.label_first for one in make_questions(predictions, "middle", orders="label-first"))
    with pytest.raises(UnknownNameError, match="'random'"):
        make_questions(predictions, "middle", orders="random")


def test_a_service(
    stub: Stub, set_and_questions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, questions = set_and_questions
    monkeypatch.setenv("HOUSE_KEY", "open-sesame-123")
    model = load_chat_model(f"{stub.address}#tiny-vlm", token="HOUSE_KEY", sleep=lambda _: None)
    stub.troubles = [503, 429]
    path = tmp_path / "replies.jsonl"
    predicted = ask_questions(model, questions, data, path)
    assert len(stub.requests) == len(questions) == 60
    assert stub.requests[0]["path"] == "/v1/chat/completions"
    assert stub.requests[0]["model"] == "tiny-vlm"
    assert set(stub.keys) == {"Bearer open-sesame-123"}
    assert "sesame" not in path.read_text()
    for one in predicted:
        pixel = data[list(data.ids).index(one.question.image)].image[16, 16]
        assert (int(pixel.sum()) % 2 == 0) == (
            (score_reply(one.reply, one.question.label, one.question.distractor) == "right")
            == one.question.label_first
        )
    name, again = read_choices(path)
    assert name == "tiny-vlm"
    assert again == predicted


def test_a_killed_query_can_be_repeated(stub: Stub, set_and_questions: Any, tmp_path: Path) -> None:
    data, questions = set_and_questions
    model = load_chat_model(f"{stub.address}#tiny-vlm")
    path = tmp_path / "replies.jsonl"
    whole = ask_questions(model, questions, data, path)
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(text[:31]) + text[31][:20])
    stub.requests.clear()
    assert ask_questions(model, questions, data, path) == whole
    assert len(stub.requests) == 30
    other = load_chat_model(f"{stub.address}#other")
    with pytest.raises(MiningError, match="different model"):
        ask_questions(other, questions, data, path)
    changed = [TwoWayQuestion(questions[0].image, "cup", "spoon", questions[0].label_first)]
    with pytest.raises(MiningError, match=f"another distractor for {questions[0].image}"):
        ask_questions(model, changed, data, path)
    path.write_text("{}\nnothing\n")
    with pytest.raises(MiningError, match="as JSON lines"):
        read_choices(path)


def test_replies_of_format_1_are_read_and_completed(
    stub: Stub, set_and_questions: Any, tmp_path: Path
) -> None:
    data, questions = set_and_questions
    model = load_chat_model(f"{stub.address}#tiny-vlm")
    path = tmp_path / "replies.jsonl"
    whole = ask_questions(model, questions, data, path)
    header, *rows = map(json.loads, path.read_text().splitlines())
    del header["format"]
    names = {"label": "truth", "label_first": "truth_first", "reply": "answer"}
    earlier = [{names.get(key, key): value for key, value in row.items()} for row in rows[:20]]
    path.write_text("".join(json.dumps(one) + "\n" for one in (header, *earlier)))
    assert read_choices(path, data)[1] == whole[:20]
    stub.requests.clear()
    assert ask_questions(model, questions, data, path) == whole
    assert len(stub.requests) == len(questions) - 20


def test_damaged_replies(stub: Stub, set_and_questions: Any, tmp_path: Path) -> None:
    data, questions = set_and_questions
    path = tmp_path / "replies.jsonl"
    ask_questions(load_chat_model(f"{stub.address}#tiny-vlm"), questions, data, path)
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    for more, message in (
        (lines[1], "duplicate question"),
        (json.dumps({**row, "reply": None}), "must be strings"),
        (json.dumps({**row, "label": 5}), "must be strings"),
        (json.dumps({**row, "label_first": "no"}), "must be strings"),
        ("[" * 100_000, "recursion"),
        (json.dumps({**row, "image": "elsewhere.png"}), r"'elsewhere\.png'"),
    ):
        path.write_text("\n".join([*lines, more]) + "\n")
        with pytest.raises(MiningError, match=message):
            read_choices(path, data)


REFUSAL = {"error": {"code": "content_filter", "message": "Your request was blocked by our policy."}}
ODD = {
    "refused": [
        Reply(REFUSAL, 400),
        Reply({"choices": [{"message": {"content": None, "refusal": "I cannot help with this."}}]}),
        Reply({"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}),
    ],
    "unreadable": [
        Reply({"choices": [{"message": {"content": None}}]}),
        Reply({"choices": []}),
        Reply({"choices": [{"message": None}]}),
        Reply({"choices": [{"message": {"content": [{"type": "text"}]}}]}),
    ],
}


def test_refusals_and_unreadable_replies_are_outcomes(
    stub: Stub, set_and_questions: Any, tmp_path: Path
) -> None:
    data, questions = set_and_questions
    model = load_chat_model(f"{stub.address}#tiny", retries=0)
    stub.odd = [one for some in ODD.values() for one in some]
    path = tmp_path / "replies.jsonl"
    replies = ask_questions(model, questions, data, path)
    assert [one.problem for one in replies[:7]] == ["refused"] * 3 + ["unreadable"] * 4
    assert "policy" in replies[0].reply
    assert not any(one.problem for one in replies[7:])
    assert len(stub.requests) == 53
    assert read_choices(path)[1] == replies
    scores = score_choices(replies)
    assert (scores.counts["refused"], scores.counts["unreadable"]) == (3, 4)
    assert scores.coverage.value == pytest.approx(53 / 60)
    stub.requests.clear()
    assert ask_questions(model, questions, data, path) == replies
    assert not stub.requests
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "cup"}]
    stub.odd = [Reply({"choices": [{"message": {"content": parts}}]})]
    assert model.reply(Image.new("RGB", (32, 32)), "?") == ChatReply("a cup")


def test_other_rejected_requests_end_it_and_keep_replies(
    stub: Stub, set_and_questions: Any, tmp_path: Path
) -> None:
    data, questions = set_and_questions
    model = load_chat_model(f"{stub.address}#tiny", retries=0, requests=4)
    path = tmp_path / "replies.jsonl"
    ask_questions(model, questions[:20], data, path)
    stub.odd = [Reply({"error": {"message": "unknown model"}}, 404)]
    with pytest.raises(ModelError, match="status 404"):
        ask_questions(model, questions, data, path)
    assert 20 <= len(read_choices(path)[1]) < 30
    assert len(ask_questions(model, questions, data, path)) == 60


def test_concurrent_requests(stub: Stub, set_and_questions: Any, tmp_path: Path) -> None:
    data, questions = set_and_questions
    one_by_one = ask_questions(load_chat_model(f"{stub.address}#tiny"), questions, data, tmp_path / "a.jsonl")
    stub.together = threading.Barrier(4, timeout=20)  # passes only if four requests are open
    seen: list[int] = []
    replies = ask_questions(
        load_chat_model(f"{stub.address}#tiny", requests=4),
        questions,
        data,
        tmp_path / "b.jsonl",
        progress=lambda done, of: seen.append(done),
    )
    assert replies == one_by_one
    assert seen == list(range(1, 61))


def test_rate_limits(stub: Stub) -> None:
    waited: list[float] = []
    model = HttpChatModel(stub.address, "tiny", per_minute=60, sleep=waited.append)
    image = Image.new("RGB", (32, 32))
    for _ in range(3):
        model.reply(image, "a: b, c.")
    assert waited == [pytest.approx(1, abs=0.3), pytest.approx(2, abs=0.3)]
    waited.clear()
    model = HttpChatModel(stub.address, "tiny", sleep=waited.append)
    stub.odd = [Reply({}, 429, {"Retry-After": "120"})]
    model.reply(image, "a: b, c.")
    assert waited == [120]
    model.reply(image, "a: b, c.")  # a new request waits, too
    assert waited[1] == pytest.approx(120, abs=5)


def test_services_that_do_not_respond(stub: Stub) -> None:
    image = Image.new("RGB", (32, 32))
    model = HttpChatModel(stub.address, "tiny", retries=1, sleep=lambda _: None)
    stub.troubles = [500, 500]
    with pytest.raises(ModelError, match="2 attempts"):
        model.reply(image, "a: b, c.")
    stub.troubles = [401]
    with pytest.raises(ModelError, match="status 401"):
        model.reply(image, "a: b, c.")
    for text in ("gpt", "transformers:", "http://127.0.0.1/v1"):
        with pytest.raises(OptionError, match=r"transformers:FOLDER-OR-NAME.* http"):
            load_chat_model(text)


def test_the_command(stub: Stub, images: Path, tmp_path: Path) -> None:
    def call(*words: str) -> Any:
        command = ["mine", "ask", f"mined:{images}", str(tmp_path / "replies.jsonl"), *words]
        more = ["--favorites", "python:tests.mining.world:middle", "--store", str(tmp_path / "store")]
        return CliRunner().invoke(app, [*command, *more])

    for option in ("--scoring", "--orders"):
        assert call("--model", f"{stub.address}#tiny", option, "other").exit_code == 2
        assert not stub.requests  # the error comes before the first request
    result = call("--model", f"{stub.address}#tiny", "--orders", "both")
    assert result.exit_code == 0, result.output
    assert "60 images, 120 questions" in result.output
    assert "position bias" in result.output
    assert call("--model", "nothing").exit_code == 2
    evaluated = CliRunner().invoke(
        app,
        ["mine", "evaluate", f"mined:{images}", "--model", "python:tests.mining.world:middle",
         "--store", str(tmp_path / "store"), "--output", str(tmp_path / "out"),
         "--choices", str(tmp_path / "replies.jsonl")],
    )  # fmt: skip
    assert evaluated.exit_code == 0, evaluated.output
    assert "Two-way choice" in (tmp_path / "out" / "index.html").read_text()


def test_a_tiny_llava(set_and_questions: Any, tmp_path: Path) -> None:
    """The real loading and generating code of transformers, on random weights."""
    pytest.importorskip("transformers", reason="transformers is not installed; the extra transformers has it")
    from tests.mining.tiny import save_tiny_llava

    data, questions = set_and_questions
    save_tiny_llava(tmp_path / "llava")
    model = load_chat_model(f"transformers:{tmp_path / 'llava'}", max_tokens=5)
    predicted = ask_questions(model, questions[:3], data, tmp_path / "replies.jsonl")
    assert len(predicted) == 3
    again = load_chat_model(f"transformers:{tmp_path / 'llava'}", max_tokens=5)
    assert ask_questions(again, questions[:3], data, tmp_path / "again.jsonl") == predicted
    facts: Mapping[str, Any] = model.facts
    assert facts["name"] == "llava"
    for weights in (tmp_path / "llava").rglob("*.safetensors"):
        weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(ModelError, match="with safetensors"):
        load_chat_model(f"transformers:{tmp_path / 'llava'}").reply(Image.new("RGB", (32, 32)), "?")
