"""Every format has the values of the scores, and can be parsed."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from beaufort._core.errors import UnknownNameError
from beaufort.metrics.stats import Estimate
from beaufort.report import FORMATS, to_card, to_csv, to_json, to_latex, to_markdown, to_text
from beaufort.report.latex import escape_latex
from beaufort.results import Scores
from beaufort.suites import get_suite
from tests.commands import shows

EVIL = "<script>alert(1)</script>"


def tenths(estimate: Estimate) -> tuple[str, str, str]:
    return tuple(f"{100 * value:.1f}" for value in (estimate.value, estimate.low, estimate.high))  # type: ignore[return-value]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_has_the_numbers(scores: Scores) -> None:
    lines = to_markdown(scores).splitlines()
    tables = [line for line in lines if line.startswith("|")]
    head, _, *rows = tables[: 2 + len(scores.models)]
    assert cells(head) == ["Place", "Tie group", "Model", "Mean accuracy ↑", "Clean accuracy ↑"]
    for line, model in zip(rows, scores.models, strict=True):
        value, low, high = tenths(model.metrics["mean_accuracy"])
        assert cells(line)[2:4] == [model.model, f"{value} [{low}, {high}]"]
    head, _, clean, *errors = tables[2 + len(scores.models) :]
    assert cells(head) == ["Corruption", *(model.model for model in scores.models)]
    assert cells(clean)[0] == "clean"
    for line, name in zip(errors, scores.suite.corruptions, strict=True):
        assert cells(line)[0] == name.replace("_", " ")
        for cell, model in zip(cells(line)[1:], scores.models, strict=True):
            value, low, high = tenths(model.corruptions[name])
            assert cell == f"{value} [{low}, {high}]"
    assert len({len(cells(line)) for line in errors}) == 1


def test_many_models_are_rows(make: SimpleNamespace) -> None:
    names = [f"net{i}" for i in range(9)]
    text = to_markdown(make.scored(make.results_of(names, make.suite, 30)))
    head = [line for line in text.splitlines() if line.startswith("| Model")][-1]
    assert cells(head) == ["Model", "clean", "gaussian noise", "fog", "contrast"]


def test_the_baseline_is_named(digits: tuple[Scores, object], scores: Scores) -> None:
    with_baseline, without = to_markdown(digits[0]), to_markdown(scores)
    assert "Relative mCE vs Conv1 ↓" in with_baseline
    assert "Baseline: Conv1 (`conv1`), as published." in with_baseline
    assert "No baseline." in without
    assert "vs Conv1" in to_latex(digits[0])
    stored = to_markdown(make_stored(scores))
    assert "mCE vs bad" in stored
    assert shows(stored, "Baseline: bad", "store")


def make_stored(scores: Scores) -> Scores:
    from beaufort.results import score

    return score(scores.results, baseline="bad", resamples=200)


def test_latex_is_balanced_and_escaped(make: SimpleNamespace, tmp_path: Path) -> None:
    names = ["a_b & 50% #1 {x} \\y ~^ $z$", EVIL]
    text = to_latex(make.scored(make.results_of(names, make.suite, 30)))
    plain = re.sub(r"\\[\\{}$&%#_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert "$z$" not in text
    assert "_" not in plain.replace("tab:beaufort", "")
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 2
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    widths = [len(re.findall(r"(?<!\\)&", line)) for line in rows]
    assert len(set(widths[:3])) == len(set(widths[3:])) == 1
    if shutil.which("pdflatex"):
        head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
        (tmp_path / "t.tex").write_text(f"{head}{text}\\end{{document}}", encoding="utf-8")
        subprocess.run(["pdflatex", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True, capture_output=True)


def test_latex_has_the_numbers(alone: Scores) -> None:
    value, low, high = tenths(alone.models[0].headline)
    assert f"middling & {value} {{\\scriptsize [{low}, {high}]}}" in to_latex(alone)
    assert escape_latex("a\nb\x00") == "a b?"


def test_csv_has_every_number(scores: Scores) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(scores))))
    found = {
        (row["model"], row["corruption"], row["severity"], row["metric"], row["condition"]): row
        for row in rows
    }
    assert len(found) == len(rows)
    for model in scores.models:
        for name, estimate in model.metrics.items():
            check(found[model.model, "", "", name, ""], estimate)
        for name, estimate in model.corruptions.items():
            check(found[model.model, name, "", "error", ""], estimate)
        for condition, estimate in model.conditions.items():
            severity = "" if condition.severity is None else str(condition.severity)
            key = model.model, condition.corruption or "", severity
            check(found[*key, "accuracy", str(condition)], estimate)
            check(found[*key, "accuracy5", str(condition)], model.top5[condition])
        check(found[model.model, "*", "5", "ece", ""], model.calibration["5"].ece)
        for metric in ("confidence", "nll", "brier", "entropy"):
            check(found[model.model, "*", "5", metric, ""], getattr(model.calibration["5"], metric))
        row = found[model.model, "*", "5", "raw_ece", ""]
        assert (float(row["value"]), row["low"], row["n"]) == (model.calibration["5"].raw_ece, "", "60")


def check(row: dict[str, str], estimate: Estimate) -> None:
    got = tuple(float(row[key]) for key in ("value", "low", "high"))
    assert got == (estimate.value, estimate.low, estimate.high)
    assert int(row["n"]) == estimate.n


def test_json_is_what_harness_users_know(alone: Scores) -> None:
    found = json.loads(to_json(alone))
    model = alone.models[0]
    group = found["results"]["small"]
    assert group["alias"] == "small"
    assert group["acc,none"] == model.metrics["mean_accuracy"].value
    assert group["acc_low,none"] == model.metrics["mean_accuracy"].low
    predictions = alone.results.predictions("middling")
    damaged = [row for row, condition in enumerate(predictions.conditions) if not condition.clean]
    fractions = predictions.correct[damaged].mean(axis=0)
    assert group["acc_stderr,none"] == pytest.approx(fractions.std(ddof=1) / math.sqrt(60))
    task = found["results"]["small/fog@3"]
    accuracy = next(value for condition, value in model.conditions.items() if str(condition) == "toys/fog@3")
    assert (task["acc,none"], task["acc_high,none"]) == (accuracy.value, accuracy.high)
    assert task["acc_stderr,none"] == pytest.approx(math.sqrt(accuracy.value * (1 - accuracy.value) / 59))
    assert found["results"]["small/clean"]["acc,none"] == model.clean.value  # type: ignore[union-attr]
    assert found["results"]["small/fog"]["error,none"] == model.corruptions["fog"].value
    assert set(found["group_subtasks"]["small"]) == found["results"].keys() - {"small"}
    assert found["higher_is_better"]["small/fog@3"] == {"acc": True, "acc5": True}
    assert found["higher_is_better"]["small/fog"] == {"error": False}
    assert found["n-samples"]["small"] == {"original": 60, "effective": 60}
    assert found["versions"]["small"] == 1
    assert found["config"]["model"] == "middling"
    assert found["configs"]["small"]["dataset_digest"] == alone.results.setting.data
    assert found["git_hash"] == "abc1234"
    assert found["date"] == 1767323045.0


def test_json_of_several_models_is_a_list_of_the_same(scores: Scores, alone: Scores) -> None:
    models = json.loads(to_json(scores))["models"]
    assert [one["config"]["model"] for one in models] == [model.model for model in scores.models]
    single = json.loads(to_json(alone))
    assert all(one.keys() == single.keys() for one in models)


def test_json_has_ratios_where_there_is_a_baseline(digits: tuple[Scores, object]) -> None:
    model = digits[0].models[0]
    found = json.loads(to_json(digits[0]))["models"][0]
    assert found["results"]["mnist-c"]["relative_mce,none"] == model.metrics["relative_mce"].value
    fog = found["results"]["mnist-c/fog"]
    assert fog["ce,none"] == model.ce["fog"].value
    assert "acc,none" in fog  # one published severity: the corruption is the condition
    assert found["configs"]["mnist-c"]["baseline"]["name"] == "conv1"


def test_card_is_a_model_index(scores: Scores) -> None:
    text = to_card(scores)
    _, front, rest = text.split("---\n", 2)
    index = yaml.safe_load(front)["model-index"]
    assert [one["name"] for one in index] == [model.model for model in scores.models]
    result = index[0]["results"][0]
    assert result["task"]["type"] == "image-classification"
    assert result["dataset"]["type"] == "small"
    first = result["metrics"][0]
    estimate = scores.models[0].headline
    assert first["type"] == "mean_accuracy"
    assert first["value"] == round(100 * estimate.value, 2)
    assert first["args"] == {
        "low": round(100 * estimate.low, 2),
        "high": round(100 * estimate.high, 2),
        "level": 0.95,
        "n": 60,
    }
    assert "## Robustness" in rest


def test_card_has_percent_only_for_fractions(scores: Scores) -> None:
    model = scores.models[0]
    moved = replace(model, metrics={**model.metrics, "top5_distance": Estimate(1.5, 1.25, 2.0, 60)})
    alone = replace(scores, models=(moved,), ranking=scores.ranking[:1])
    front = to_card(alone).split("---\n", 2)[1]
    _, number, _ = yaml.safe_load(front)["model-index"][0]["results"][0]["metrics"]
    assert (number["value"], number["args"]["low"], number["args"]["high"]) == (1.5, 1.25, 2.0)
    assert "%" not in number["name"]


@pytest.mark.parametrize("kind", FORMATS)
def test_names_are_text(kind: str, make: SimpleNamespace) -> None:
    names = [EVIL, 'a "b" | c\nd', "=1+1", "---"]
    text = to_text(make.scored(make.results_of(names, make.suite, 30)), kind)
    if kind in ("html", "md"):
        assert EVIL not in text
    if kind == "csv":
        found = {row["model"] for row in csv.DictReader(io.StringIO(text, newline=""))}
        assert found == {EVIL, 'a "b" | c\nd', "'=1+1", "'---"}  # no formulas for a spreadsheet
    if kind == "json":
        assert {one["config"]["model"] for one in json.loads(text)["models"]} == set(names)
    if kind == "card":
        front = text.removeprefix("---\n").partition("\n---\n\n")[0]
        assert {one["name"] for one in yaml.safe_load(front)["model-index"]} == set(names)
        assert EVIL not in text.partition("## Robustness")[2]


@pytest.mark.parametrize("kind", FORMATS)
def test_equal_scores_give_equal_bytes(kind: str, make: SimpleNamespace) -> None:
    texts = {
        to_text(make.scored(make.results_of(["b", "a"], get_suite("imagenet-c"), 20)), kind) for _ in range(2)
    }
    assert len(texts) == 1


def test_unknown_format_error_suggests_near_formats(scores: Scores) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'latex'"):
        to_text(scores, "latx")
