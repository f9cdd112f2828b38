"""Chat models as classifiers, with services whose replies are known."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import BeaufortError, OptionError
from beaufort.cli import app
from beaufort.data.labels import LabelSpace
from beaufort.evaluation import RunOptions
from beaufort.models import (
    BudgetError,
    ChatClassifier,
    ModelError,
    as_model,
    load_model,
    prepare_torchvision,
    with_filter,
)
from beaufort.models.chat import OUTCOMES, OUTPUTS
from beaufort.models.name_matching import NameMatcher
from beaufort.results import compare, open_results, score_replies
from beaufort.suites import suite_from_corruptions
from tests.commands import shows
from tests.json_service import Reply
from tests.models.chat_service import NAMES, ChatService, class_of, gray_images

SUITE = suite_from_corruptions(["brightness"], [1, 3])


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatService]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = ChatService()
    yield running
    running.close()


@pytest.fixture
def load(service: ChatService, tmp_path: Path) -> Callable[..., Any]:
    def load(**options: Any) -> Any:
        return load_model(
            service.model, **{"classes": NAMES, "replies": tmp_path / "replies.sqlite", **options}
        )

    return load


def middle(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.eye(len(NAMES), dtype=np.float32)[[class_of(image) for image in images]] * 9


def outputs_of(model: Any, images: Any) -> list[str]:
    return [model.spec.class_names[place] for place in model(images).argmax(axis=1)]


def listed(request: dict[str, Any]) -> list[str]:
    question = request["messages"][0]["content"][0]["text"]
    return str(question).partition("nothing else: ")[2].rstrip(".").split(", ")


def test_the_named_class_is_predicted(service: ChatService, load: Any) -> None:
    images, labels = gray_images(20)
    model = load()
    assert outputs_of(model, images) == [NAMES[label] for label in labels]
    assert model.spec.class_names == (*NAMES, *OUTPUTS)
    assert all(sorted(listed(one)) == sorted(NAMES) for one in service.requests)
    assert len({tuple(listed(one)) for one in service.requests}) > 5  # random orders
    gray = images[..., :1]
    assert outputs_of(load(), gray) == [NAMES[label] for label in labels]


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("I'm sorry, I can't help with that.", "refused"),
        (Reply({"choices": [{"message": {"content": None, "refusal": "No."}}]}), "refused"),
        (Reply({"choices": [{"message": {}, "finish_reason": "content_filter"}]}), "refused"),
        (Reply({"error": {"code": "content_filter"}}, 400), "refused"),
        ("A zeppelin.", "unreadable"),
        ("", "unreadable"),
        (Reply({"choices": []}), "unreadable"),
        ("A cat or a dog.", "several"),
        ("A red fox.", "red fox"),
        ("DOGS!", "dog"),
    ],
)
def test_replies_without_a_prediction_are_outcomes(
    service: ChatService, load: Any, content: Any, outcome: str
) -> None:
    service.answer = lambda *_: content
    images, _ = gray_images(2)
    expected = f"({outcome})" if outcome in OUTCOMES else outcome
    assert outputs_of(load(), images) == [expected] * 2


def test_a_model_that_takes_the_first_name_has_a_position_bias(
    service: ChatService, load: Any, tmp_path: Path
) -> None:
    service.answer = lambda _, names: names[0]
    images, labels = gray_images(40)
    run = evaluate(load(), SUITE, (images, labels), tmp_path / "store", engine="local:1")
    (clean, *_) = score_replies(run.predictions[0])
    assert clean.position_bias is not None
    assert clean.position_bias.value == 1
    assert clean.position_bias.low > 0.8
    assert all(one.value == 0 for one in clean.outcomes.values())
    both = load(orders="both", name="both")
    run = evaluate(both, SUITE, (images, labels), tmp_path / "both")
    (clean, *_) = score_replies(run.predictions[0])
    assert clean.outcomes["inconsistent"].value == 1
    assert clean.position_bias is not None
    assert clean.position_bias.value == 1
    service.answer = lambda label, _: NAMES[label]
    honest = evaluate(load(orders="both", version="2"), SUITE, (images, labels), tmp_path / "honest")
    (clean, *_) = score_replies(honest.predictions[0])
    assert clean.outcomes["inconsistent"].value == 0
    assert clean.position_bias is not None
    assert clean.position_bias.value == 0
    assert honest.results[0].accuracy == 1


def test_bias_is_estimated_without_bias(service: ChatService, load: Any, tmp_path: Path) -> None:
    service.answer = lambda label, names: names[0] if label == 0 else NAMES[label]  # for a quarter of images
    run = evaluate(load(), SUITE, gray_images(200), tmp_path / "store")
    (clean, *_) = score_replies(run.predictions[0])
    assert clean.position_bias is not None
    assert clean.position_bias.low < 0.25 < clean.position_bias.high


def test_outcomes_are_visible_beside_ordinary_models(service: ChatService, load: Any, tmp_path: Path) -> None:
    service.answer = lambda label, _: "I cannot help with that." if label == 1 else NAMES[label]
    images, labels = gray_images(40)
    other = as_model(middle, classes=NAMES, name="middle", version="1")
    store = tmp_path / "store"
    run = evaluate([load(), other], SUITE, (images, labels), store)
    assert [one.accuracy for one in run.results if "@" not in one.condition] == [0.75, 1.0]
    assert any("tiny sent" in note for note in run.notes)
    results = open_results(store)
    (clean, *_) = score_replies(results)
    assert clean.outcomes["refused"].value == 0.25
    (difference, *_) = compare(results).differences
    assert difference.difference.n == 40
    run.report(tmp_path / "report.md")
    assert "| tiny | clean | 25.0 [" in (tmp_path / "report.md").read_text()
    run.report(tmp_path / "report.html")
    assert "Position bias" in (tmp_path / "report.html").read_text()
    shown = CliRunner().invoke(app, ["compare", "tiny", "middle", "--store", str(store)])
    assert shown.exit_code == 0, shown.output
    assert "refused" in shown.output
    for command in (["gate", "tiny", "--max", "mean_error=0.9"], ["query"], ["abstain", "tiny"]):
        result = CliRunner().invoke(app, [*command, "--store", str(store)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    before = len(service.requests)
    again = evaluate([load(), other], SUITE, (images, labels), store)
    assert all(one.reused for one in again.results)
    assert len(service.requests) == before


def test_order_follows_the_id_of_the_image(service: ChatService, load: Any, tmp_path: Path) -> None:
    evaluate(load(), SUITE, gray_images(4), tmp_path / "store", engine="local:1")
    orders = [tuple(listed(one)) for one in service.requests]
    assert sorted(orders[:4]) == sorted(orders[4:8]) == sorted(orders[8:])  # clean and both severities
    assert len(set(orders)) > 1
    service.requests.clear()
    evaluate(load(seed=1), SUITE, gray_images(4), tmp_path / "store", engine="local:1")
    assert {tuple(listed(one)) for one in service.requests} != set(orders)


def test_only_candidates_are_listed(service: ChatService, load: Any) -> None:
    images, labels = gray_images(24)
    ids = [f"{number}.png" for number in range(24)]
    two = load(candidates=2)
    assert two.spec.name == "tiny-2-way"
    logits = two.for_images(ids, labels, LabelSpace(len(NAMES) + len(OUTPUTS), outcomes=len(OUTPUTS)))(images)
    assert (logits.argmax(axis=1) == labels).all()
    assert {len(listed(one)) for one in service.requests} == {2}
    assert {name for one in service.requests for name in listed(one)} == set(NAMES)
    service.requests.clear()
    space = LabelSpace(len(NAMES) + len(OUTPUTS), ((1,), (0, 3)), outcomes=len(OUTPUTS))
    some = load().for_images(ids[:2], np.array([0, 1]), space)(images[[1, 3]])
    assert all(sorted(listed(one)) == ["cat", "dog", "fox"] for one in service.requests)
    columns = space.apply(some)
    assert columns.shape == (2, 2 + len(OUTPUTS))
    assert columns.argmax(axis=1).tolist() == [0, 1]
    service.answer = lambda *_: "a fox, or a cat"  # two outputs of one class
    assert space.apply(load(seed=2).for_images(ids[:1], np.array([1]), space)(images[:1])).argmax() == 1


def test_free_answers_with_synonyms(service: ChatService, load: Any, tmp_path: Path) -> None:
    (tmp_path / "more.json").write_text(json.dumps({"cat": ["Felis catus"]}))
    service.answer = lambda label, names: "A Felis-catus?" if label == 0 else NAMES[label]
    images, labels = gray_images(8)
    model = load(answer="free", synonyms=tmp_path / "more.json")
    assert outputs_of(model, images) == [NAMES[label] for label in labels]
    assert not any("cat" in one["messages"][0]["content"][0]["text"] for one in service.requests)
    run = evaluate(model, SUITE, (images, labels), tmp_path / "store")
    assert score_replies(run.predictions[0])[0].position_bias is None
    fixed = evaluate(load(orders="given", version="2"), SUITE, (images, labels), tmp_path / "fixed")
    assert score_replies(fixed.predictions[0])[0].position_bias is None
    with pytest.raises(OptionError, match="tiny is a chat model"):
        evaluate(model, SUITE, (images, labels), tmp_path / "timed", options=RunOptions(time=True))
    own = load(question="Which is it: {names}?")
    own(images[:1])
    assert service.requests[-1]["messages"][0]["content"][0]["text"].startswith("Which is it: ")
    assert own.spec.digest != load().spec.digest


def test_names_in_text() -> None:
    matcher = NameMatcher([["crane"], ["crane bird", "Grus"], ["alarm clock"]])
    assert matcher.named("Two CRANES") == (0,)
    assert matcher.named("a crane_bird") == (1,)
    assert matcher.named("grus, or an alarm-clock") == (1, 2)
    assert matcher.named("cranes' alarm") == (0,)
    assert matcher.named("") == ()


def test_slow_and_failing_services(service: ChatService, load: Any) -> None:
    images, labels = gray_images(16)
    service.delay_s = 0.05
    service.failures = [Reply(b"", 429, {"Retry-After": "0"}), Reply(b"", 503, {"Retry-After": "0"})]
    assert outputs_of(load(requests=4), images) == [NAMES[label] for label in labels]
    assert service.most_open == 4
    assert len(service.requests) == 18
    service.delay_s, service.requests[:] = 0.5, []
    with pytest.raises(ModelError, match=r"timed out after 0\.1 s"):
        load(timeout=0.1, retries=0, temperature=0.5)(images[:1])
    service.delay_s = 0
    service.failures = [Reply({"error": "unknown model"}, 404)]
    with pytest.raises(ModelError, match="status 404"):
        load(seed=5)(images[:1])
    start = time.monotonic()
    load(seed=6, per_minute=1200)(images[:5])
    assert time.monotonic() - start >= 4 * 0.05


def test_no_reply_is_paid_for_twice(service: ChatService, load: Any, tmp_path: Path) -> None:
    images, _ = gray_images(12)
    load()(np.concatenate([images, images]))
    assert len(service.requests) == 12
    load()(images)
    assert len(service.requests) == 12
    with sqlite3.connect(tmp_path / "replies.sqlite") as connection:
        assert connection.execute("SELECT requests, input_tokens FROM totals").fetchall() == [(12, 1200)]
    connection.close()
    load(version="2")(images)
    assert len(service.requests) == 24
    (tmp_path / "broken.sqlite").write_text("not a database, but text of some length")
    with pytest.raises(OptionError, match=r"cannot use .*broken\.sqlite"):
        load(replies=tmp_path / "broken.sqlite")


@pytest.mark.slow
def test_a_killed_run_continues(service: ChatService, tmp_path: Path) -> None:
    folder, classes = photo_folder(tmp_path, 60)
    service.delay_s = 0.03
    command = [
        *(sys.executable, "-m", "beaufort", "run", "--model", service.model, "--data", str(folder)),
        *("--corruption", "brightness", "--severity", "1", "--store", str(tmp_path / "store")),
        *("--classes", str(classes), "--set", f"replies={tmp_path / 'replies.sqlite'}"),
        *("--set", "requests=2"),
    ]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(service.requests) < 30 and time.monotonic() < until:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    paid = len(service.requests)
    assert 30 <= paid < 110
    service.delay_s = 0
    time.sleep(0.1)
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert second.returncode == 0, second.stderr
    assert len(service.requests) <= 120 + 2  # all but the two that were open when it was killed


@pytest.mark.slow
def test_processes_share_replies(service: ChatService, tmp_path: Path) -> None:
    folder, classes = photo_folder(tmp_path, 40)
    words = [
        *("run", "--model", service.model, "--data", str(folder), "--corruption", "brightness"),
        *("--severity", "1", "--store", str(tmp_path / "store"), "--classes", str(classes)),
        *("--set", f"replies={tmp_path / 'replies.sqlite'}", "--engine", "processes:2", "--json"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["results"][0]["accuracy"] == 1
    assert found["scores"][0]["replies"][0]["outcomes"]["refused"]["value"] == 0
    assert any(
        shows(note, "tiny", "80 requests", "8,000 input", "400 output tokens") for note in found["notes"]
    )
    assert len(service.requests) == 80


def test_budget(service: ChatService, load: Any) -> None:
    images, _ = gray_images(40)
    prices = (1000, 2000)  # 0.11 for each request
    with pytest.raises(BudgetError, match=r"budget of 2\.2"):
        load(prices=prices, budget=2.2, requests=1)(images)
    assert len(service.requests) == 20
    with pytest.raises(BudgetError, match="have cost"):
        load(prices=prices, budget=2.2)(images)
    assert len(service.requests) == 20
    model = load(prices=prices, budget=5)
    model(images)
    assert len(service.requests) == 40
    assert shows(model.cost_note(model.usage()), "cost", "requests", "4.4")
    service.answer = lambda *_: Reply({"choices": [{"message": {"content": "cat"}}]})
    with pytest.raises(ModelError, match="does not count tokens"):
        load(prices=prices, budget=99, seed=1)(images[:1])


def test_a_dry_run_sends_nothing(service: ChatService, tmp_path: Path) -> None:
    folder, classes = photo_folder(tmp_path, 8)
    words = [
        *("run", "--model", service.model, "--data", str(folder), "--corruption", "brightness"),
        *("--severity", "1", "--store", str(tmp_path / "store"), "--classes", str(classes), "--dry-run"),
        *("--set", f"replies={tmp_path / 'replies.sqlite'}", "--set", "orders=both"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert shows(result.output, "tiny", "at most 32 requests")
    assert not service.requests


def test_the_key_stays_secret(
    service: ChatService, load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOUSE_KEY", "open-sesame-123")
    service.answer = lambda label, _: (
        Reply({"choices": [{"message": {"content": "cat open-sesame-123"}}]})
        if label
        else Reply({"error": "content_filter for open-sesame-123"}, 400)
    )
    run = evaluate(load(token="HOUSE_KEY"), SUITE, gray_images(4), tmp_path / "store")
    assert service.keys == {"Bearer open-sesame-123"}
    run.report(tmp_path / "report.html")
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"open-sesame" not in path.read_bytes(), path
    assert "open-sesame" not in str(run)
    assert "HOUSE_KEY" not in json.dumps(load(token="HOUSE_KEY").spec.to_dict())
    with pytest.raises(BeaufortError, match="environment variable"):
        load(token="UNSET_KEY", seed=3)(gray_images(1)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 10}, "require class names"),
        ({"answer": "maybe"}, "maybe"),
        ({"orders": "random"}, "random"),
        ({"answer": "free", "orders": "both"}, "require answer=choice"),
        ({"candidates": 9}, "candidates"),
        ({"question": "What is it?"}, "must contain"),
        ({"question": "One of {names}?", "answer": "free"}, "must not contain"),
        ({"budget": 3}, "budget requires prices"),
        ({"prices": 3}, "two numbers"),
        ({"prices": (1, -1)}, "prices"),
        ({"synonyms": {"zebra": ["x"]}}, "unknown class 'zebra'"),
        ({"synonyms": {"cat": "tom"}}, "lists of names"),
        ({"classes": ["Cat", "cat"]}, "distinct names"),
        ({"device": "cuda"}, "device"),
    ],
)
def test_invalid_options(load: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BeaufortError, match=message):
        load(**options)


def test_image_filters_keep_the_order(service: ChatService, load: Any, tmp_path: Path) -> None:
    model = with_filter(load(), "equalize")
    run = evaluate(model, SUITE, gray_images(4), tmp_path / "store")
    assert len({tuple(listed(one)) for one in service.requests}) <= 4  # one for each id
    assert score_replies(run.predictions[0])[0].model == "tiny+equalize"


@pytest.mark.slow
def test_a_transformers_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    prepare_torchvision()
    from tests.mining.tiny import perturb_weights, save_tiny_llava

    save_tiny_llava(tmp_path / "llava")
    name = f"chat:transformers:{tmp_path / 'llava'}"
    options: dict[str, Any] = {"classes": NAMES, "replies": tmp_path / "replies.sqlite", "max_tokens": 4}
    model = load_model(name, **options)
    assert isinstance(model, ChatClassifier)
    assert model.spec.name == "llava"
    assert model.spec.reusable
    images, labels = gray_images(4)
    logits = model(images)
    assert set(logits.argmax(axis=1)) <= set(range(len(NAMES) + len(OUTCOMES)))
    assert model.usage().requests == 4
    assert model.usage().output_tokens > 0
    run = evaluate(model, SUITE, (images, labels), tmp_path / "store")
    assert score_replies(run.predictions[0])
    for weights in (tmp_path / "llava").glob("*.safetensors"):
        perturb_weights(weights)
    assert load_model(name, **options).spec.digest != model.spec.digest
    with pytest.raises(ModelError, match="chat:transformers:"):
        load_model(name.removeprefix("chat:"))


def photo_folder(tmp_path: Path, count: int) -> tuple[Path, Path]:
    images, labels = gray_images(count)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = tmp_path / "photos" / NAMES[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    (tmp_path / "names.txt").write_text("\n".join(sorted(NAMES)) + "\n")
    return tmp_path / "photos", tmp_path / "names.txt"
