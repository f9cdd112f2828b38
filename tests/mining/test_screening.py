"""Pre-screening before the review, with checks whose results are known, and its errors."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import BeaufortError
from beaufort.cli import app
from beaufort.metrics.stats import clopper_pearson
from beaufort.mining import (
    MiningError,
    ScreenedImage,
    Screening,
    export_set,
    open_generated,
    predict_set,
    read_screening,
    screen_images,
    screening_errors,
    select,
    write_review_list,
    write_selection_report,
)
from beaufort.mining.review import Review, ReviewRules, create_review, decisions, open_review
from beaufort.mining.screening import perceptual_hash
from tests.json_service import JsonService, Reply
from tests.mining.world import bold, judge, middle

RANKER = "python:tests.mining.world:middle"


@pytest.fixture
def kept(images: Path, tmp_path: Path) -> Path:
    """The folder with a list of all images that one of two models gets wrong, and a selection of them."""
    data, made = open_generated(images)
    predictions = predict_set([bold(), middle()], data, tmp_path / "store")
    found = select(predictions, made, ["bold", "middle"], rule="1-of-2")
    write_selection_report(found, tmp_path / "selection")
    write_review_list(found, images / "kept.csv", controls=2)
    return images


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def review_of(folder: Path, path: Path, reject: str) -> Review:
    create_review(path, folder / "screened.csv", rules=ReviewRules(votes=1))
    review = open_review(path)
    judge(review, ("ann",), reject)
    return review


def test_images_are_ranked_by_similarity(kept: Path, tmp_path: Path) -> None:
    found = screen_images(kept, model=RANKER, top=1, hash_bits=None, audit=3)
    data, _ = open_generated(kept)
    predicted = predict_set([middle()], data, tmp_path / "store")
    right = dict(zip(predicted.ids, ~predicted.failed[0], strict=True))
    assert {one.file: one.passed for one in found.images} == {
        one.file: right[one.file] for one in found.images
    }
    assert {one.rank == 1 for one in found.images if one.passed} == {True}
    assert sum(one.audited for one in found.images) == 3
    listed = rows(kept / "screened.csv")
    assert [one["role"] for one in listed].count("control-valid") == 2
    reviewed = [one["file"] for one in listed if not one["role"]]
    assert reviewed == [one.file for one in found.images if one.passed or one.audited]
    assert read_screening(kept).images == found.images
    assert screen_images(kept, model=RANKER, top=3, hash_bits=None).removed("similarity") == 0
    other = screen_images(kept, model=RANKER, top=1, hash_bits=None, audit=3, seed=1)
    assert [one.audited for one in other.images] != [one.audited for one in found.images]


def test_near_duplicates(kept: Path) -> None:
    first, second, *_ = (one for one in rows(kept / "kept.csv") if not one["role"])
    assert first["category"] == second["category"]
    pixels = np.asarray(Image.open(kept / first["file"]).convert("RGB")).astype(np.int16)
    noisy = np.clip(pixels + np.random.default_rng(0).integers(-3, 4, pixels.shape), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(kept / second["file"])
    found = screen_images(kept, audit=0)
    by_file = {one.file: one for one in found.images}
    assert by_file[second["file"]].duplicate_of == first["file"]
    assert by_file[second["file"]].removed_by == "duplicate"
    assert by_file[first["file"]].passed
    rng = np.random.default_rng(1)
    different = [perceptual_hash(rng.integers(0, 256, (40, 60, 3), np.uint8)) for _ in range(20)]
    apart = [(a ^ b).bit_count() for i, a in enumerate(different) for b in different[:i]]
    assert min(apart) > 10
    large = np.kron(pixels[..., 0], np.ones((3, 3))).astype(np.uint8)
    bits = perceptual_hash(np.stack([large] * 3, axis=-1)) ^ perceptual_hash(
        np.stack([pixels[..., 0].astype(np.uint8)] * 3, axis=-1)
    )
    assert bits.bit_count() <= 4  # the hash does not depend on the size


class YesNo:
    """A chat service that says whether the center of an image has the color of the category."""

    def __init__(self) -> None:
        self.requests = 0
        self.content: Any = None
        service = JsonService(self._reply)
        self.model, self.close = f"chat:{service.url}/v1#judge", service.close

    def _reply(self, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        self.requests += 1
        text, image = body["messages"][0]["content"]
        png = base64.b64decode(image["image_url"]["url"].partition(",")[2])
        self.question = text["text"]
        center = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))[14:18, 14:18].mean(axis=(0, 1))
        category = ("cup", "leaf", "kite")[int(center.argmax())]
        content = self.content or ("Yes." if category in text["text"] else "No, it does not.")
        return Reply({"choices": [{"message": {"content": content}}]})


@pytest.fixture
def judge_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[YesNo]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = YesNo()
    yield running
    running.close()


def test_labels_are_checked_by_a_chat_model(kept: Path, judge_service: YesNo, tmp_path: Path) -> None:
    options = {"replies": tmp_path / "replies.sqlite"}
    found = screen_images(kept, chat=judge_service.model, hash_bits=None, chat_options=options)
    assert {one.reply for one in found.images} <= {"yes", "no"}
    assert all(one.passed == (one.reply == "yes") for one in found.images)
    asked = judge_service.requests
    assert 0 < asked <= len(found.images)
    assert "recognize? Answer with yes or no." in judge_service.question
    again = screen_images(kept, chat=judge_service.model, hash_bits=None, chat_options=options)
    assert again.images == found.images
    assert judge_service.requests == asked
    assert "judge sent 0 requests" in again.notes[0]
    judge_service.content = "I cannot say yes or no."
    options = {"replies": tmp_path / "other.sqlite"}
    unclear = screen_images(kept, chat=judge_service.model, hash_bits=None, chat_options=options)
    assert {one.reply for one in unclear.images} == {"unreadable"}
    assert all(one.passed for one in unclear.images)  # no decision removes no image


def test_embeddings(kept: Path, tiny_clip: tuple[str, Any]) -> None:
    name, _ = tiny_clip
    found = screen_images(
        kept, model=name, embedding=0.999999, hash_bits=None, model_options={"device": "cpu"}
    )
    assert all(one.rank in (1, 2, 3) and one.similarity is not None for one in found.images)
    assert all(-1 <= (one.similarity or 0) <= 1 for one in found.images)
    loose = screen_images(kept, model=name, embedding=0.01, hash_bits=None, model_options={"device": "cpu"})
    assert loose.removed("duplicate") > found.removed("duplicate")


def test_errors_against_the_review(kept: Path, tmp_path: Path) -> None:
    found = screen_images(kept, model=RANKER, top=2, hash_bits=None, audit=10_000)
    review = review_of(kept, tmp_path / "all.review", "leaf")
    errors = screening_errors(found, review)
    accepted = {one.file for one in decisions(review) if one.decision == "accepted"}
    passed = [one.file in accepted for one in found.images if one.passed]
    removed = [one.file in accepted for one in found.images if not one.passed]
    assert errors.precision == clopper_pearson(sum(passed), len(passed))
    assert errors.recall.value == pytest.approx(sum(passed) / (sum(passed) + sum(removed)))
    assert errors.recall.low < errors.recall.value < errors.recall.high
    parts = {(one.check, one.kind): one for one in errors.parts}
    assert parts["similarity", ""].images == parts["similarity", ""].reviewed == len(removed)
    assert sum(one.images for (_, kind), one in parts.items() if kind) == len(found.images)
    shown = CliRunner().invoke(app, ["mine", "screen", str(kept), "--review", str(tmp_path / "all.review")])
    assert shown.exit_code == 0, shown.output
    assert "precision" in shown.output
    review.close()


def test_unaudited_images_are_not_exported(kept: Path, tmp_path: Path) -> None:
    found = screen_images(kept, model=RANKER, top=1, hash_bits=None, audit=20)
    assert sum(not one.passed for one in found.images) > 1
    review = review_of(kept, tmp_path / "some.review", "leaf")
    accepted = sum(one.decision == "accepted" for one in decisions(review))
    count = export_set(tmp_path / "set", kept, tmp_path / "selection" / "selection.csv", review=review)
    assert count == accepted > 0
    table = pq.read_table(tmp_path / "set" / "metadata.parquet")
    passed = {one.file for one in found.images if one.passed}
    for file, result in zip(table["file_name"].to_pylist(), table["screening"].to_pylist(), strict=True):
        assert (result == "passed") == (file in passed)
    assert "automatic checks" in (tmp_path / "set" / "DATASHEET.md").read_text()
    review.close()


def test_recall_is_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a simulation with a known recall, the interval contains it in at least 95 % of cases."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        passed = rng.random(300) < 0.6
        good = rng.random(300) < np.where(passed, 0.8, 0.3)
        audited = ~passed & (rng.random(300) < 0.3)
        screening = Screening(
            tuple(
                ScreenedImage(f"a/{i}", "x", "cup", "" if ok else "label", bool(also))
                for i, (ok, also) in enumerate(zip(passed, audited, strict=True))
            ),
            {},
        )
        decided = [
            type(
                "Decision",
                (),
                {"file": f"a/{i}", "sha256": "x", "decision": "accepted" if yes else "rejected"},
            )
            for i, yes in enumerate(good)
            if passed[i] or audited[i]
        ]
        monkeypatch.setattr("beaufort.mining.screening.decisions", lambda _, decided=decided: decided)
        errors = screening_errors(screening, None)  # type: ignore[arg-type]
        share = passed.mean()
        truth = share * 0.8 / (share * 0.8 + (1 - share) * 0.3)
        inside += errors.recall.low <= truth <= errors.recall.high
    assert inside >= 95


def test_the_command(kept: Path, judge_service: YesNo, tmp_path: Path) -> None:
    words = ["mine", "screen", str(kept), "--model", RANKER, "--model", judge_service.model]
    options = ["--set", "top=2", "--set", f"replies={tmp_path / 'r.sqlite'}", "--set", "hash_bits=none"]
    result = CliRunner().invoke(app, [*words, *options])
    assert result.exit_code == 0, result.output
    assert "removed by" in result.output
    assert "beaufort review create" in result.output
    for more, message in (
        (["--model", RANKER], "once"),
        (["--set", "tops=3"], "tops"),
    ):
        failed = CliRunner().invoke(app, ["mine", "screen", str(kept), "--model", RANKER, *more])
        assert failed.exit_code == 2
        assert message in failed.output


def test_invalid_screenings(kept: Path) -> None:
    with pytest.raises(MiningError, match="no check is chosen"):
        screen_images(kept, hash_bits=None)
    with pytest.raises(MiningError, match=r"requires.* open_clip"):
        screen_images(kept, embedding=0.9)
    with pytest.raises(BeaufortError, match="top"):
        screen_images(kept, model=RANKER, top=0)
    with pytest.raises(MiningError, match=r"kept\.csv not found"):
        screen_images(kept / "background")
    screen_images(kept)
    file = next(one.file for one in read_screening(kept).images if one.passed)
    text = (kept / "screening.csv").read_text()
    (kept / "screening.csv").write_text(text.replace(",0,", ",maybe,", 1))
    with pytest.raises(MiningError, match="line 2"):
        read_screening(kept)
    assert file
