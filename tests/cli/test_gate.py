"""`beaufort gate` and `power` as a person types them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.store import FileStore
from tests.commands import shows

Fill = Callable[..., FileStore]


def invoke(*arguments: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    result = CliRunner().invoke(app, list(arguments), env=env)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def store(fill: Fill) -> str:
    return fill("s", {"good": 0.9, "bad": 0.8, "twin": 0.9}).location


def test_three_decisions_have_three_exit_codes(store: str) -> None:
    passed = invoke("gate", "good", "--reference", "bad", "--store", store)
    assert passed.splitlines()[-1] == "gate: passed (300 images, 95 % intervals)"
    assert re.search(r"good has \d+\.\d\d points higher mean accuracy than bad \[", passed)
    failed = invoke("gate", "bad", "--reference", "good", "--store", store, code=1)
    assert "gate: failed" in failed
    assert re.search(
        r"^failed: Mean accuracy at most 1 point worse .*: bad has \d+\.\d\d points lower mean accuracy",
        failed,
        re.M,
    )
    unknown = invoke("gate", "good", "--reference", "twin", "--store", store, code=3)
    assert "gate: undecided" in unknown
    assert re.search(r"about [\d,]+ images would be needed", unknown)


def test_exit_code_of_an_undecided_gate(store: str, tmp_path: Path) -> None:
    words = ("gate", "good", "--reference", "twin", "--store", store)
    for value, code in (("exit-3", 3), ("pass", 0), ("fail", 1)):
        junit = tmp_path / f"{value}.xml"
        text = invoke(*words, "--undecided", value, "--junit", str(junit), code=code)
        assert "gate: undecided" in text
        root = ElementTree.parse(junit).getroot()
        assert root.get("failures") == ("0" if value == "pass" else "1")
        assert (root.find(".//skipped") is not None) == (value == "pass")
    assert "'maybe'" in invoke(*words, "--undecided", "maybe", code=2)
    enough = re.search(r"--max-drop ([\d.]+) passes", text)
    assert enough is not None
    assert "gate: passed" in invoke(*words, "--max-drop", enough[1])


def test_a_missing_reference_is_named(store: str, tmp_path: Path) -> None:
    text = invoke("gate", "good", "--reference", "nobody", "--store", store, code=2)
    assert "reference not found: nobody" in text
    (tmp_path / "empty").mkdir()
    text = invoke("gate", "good", "--reference", str(tmp_path / "empty"), "--store", store, code=2)
    assert "reference not found" in text
    assert "directory without predictions" in " ".join(text.split())


def test_the_summary_names_versions_and_corruptions(store: str, tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    words = ("gate", "good", "--reference", "bad", "--store", store, "--github-summary")
    invoke(*words, env={"GITHUB_STEP_SUMMARY": str(file)})
    text = file.read_text(encoding="utf-8")
    assert "- good: " in text
    assert "- bad: " in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and "[" in line]
    assert any(line.startswith("| clean |") for line in rows)
    assert any(line.startswith("| fog |") and line.count("[") == 3 for line in rows)


def test_the_old_rule_is_kept_by_name(store: str) -> None:
    text = invoke("gate", "good", "--reference", "twin", "--store", store, "--rule", "significance")
    assert "gate: passed" in text
    assert "not more than allowed" in text
    facts = json.loads(invoke("gate", "good", "--store", store, "--require", "clean=50", "--json"))
    floor = ["--require", f"clean={100 * facts['checks'][0]['value']:.2f}", "--rule", "significance"]
    text = invoke("gate", "good", "--reference", "twin", "--store", store, *floor, code=3)
    assert shows(text, "undecided", "clean accuracy")  # the rule is for the drop alone
    failed = invoke("gate", "bad", "--reference", "good", "--store", store, "--rule", "significance", code=1)
    assert "significant" in failed
    assert "rule 'x'" in invoke("gate", "good", "--store", store, "--rule", "x", code=2)


def test_floors_need_no_reference(store: str) -> None:
    text = invoke("gate", "good", "--store", store, "--require", "50,clean=50,worst=50")
    assert len(re.findall(r"^passed: ", text, re.M)) == 3
    text = invoke("gate", "good", "--store", store, "--require", "clean=50", "--require", "99", code=1)
    assert shows(text, "failed", "Mean accuracy", "at least 99 %")
    text = invoke("gate", "good", "--store", store, "--metric", "mce", "--require", "900")
    assert "passed: mCE at most 900 %" in text
    invoke("gate", "good", "--store", store, "--require", "clean=101", code=2)
    assert "one of reference" in invoke("gate", "good", "--store", store, code=2)


def test_a_model_against_itself(store: str) -> None:
    text = invoke("gate", "good", "--reference", "good", "--store", store, "--max-drop", "0")
    assert "the same mean accuracy" in text
    assert "at most 0 points worse" in text


def test_a_model_against_itself_in_another_store(store: str, tmp_path: Path) -> None:
    copytree(store, tmp_path / "copy")
    text = invoke("gate", "good", "--reference", f"{tmp_path}/copy::good", "--store", store)
    assert "the same mean accuracy" in text
    text = invoke("gate", "good", "--reference", f"{tmp_path}/copy::twin", "--store", store, code=3)
    assert "undecided" in text


def test_one_image(fill: Fill) -> None:
    one = fill("one", {"net": 9.0}, images=1).location
    text = invoke("gate", "--store", one, "--require", "clean=90", code=3)
    assert "100.00 % [2.50, 100.00]" in text
    assert "(1 image, 95 % intervals)" in text


def test_undecidable_gate_exits_with_two(fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = fill("new", {"net": 0.9}).location
    other = fill("other", {"net": 0.9}, seed=3).location
    assert "seeds 0 and 3" in invoke("gate", "--store", new, "--reference", other, code=2)
    missing = str(tmp_path / "nothing")
    assert "no predictions" in invoke("gate", "--store", missing, "--require", "clean=1", code=2)
    assert "no predictions" in invoke("gate", "--store", new, "--reference", "memory://nothing-here", code=2)
    assert "no.csv" in invoke(
        "gate", "--store", new, "--require", "clean=1", "--cluster-by", "no.csv:x", code=2
    )
    unwritable = str(tmp_path / "no" / "folder" / "\0")
    invoke("gate", "--store", new, "--require", "clean=1", "--junit", unwritable, code=2)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake of the program")

    monkeypatch.setattr("beaufort.results.gate_parts", broken)
    crashed = CliRunner().invoke(app, ["gate", "--store", new, "--require", "clean=1"])
    assert crashed.exit_code == 2
    assert "a mistake of the program" in crashed.output


@pytest.mark.parametrize("damage", [b"", b"PAR1 and nothing else PAR1", None])
def test_a_damaged_store_ends_with_two(fill: Fill, damage: bytes | None) -> None:
    store = fill("s", {"net": 0.9})
    for path in sorted(Path(store.location).rglob("*.parquet")):
        content = path.read_bytes()
        half = len(content) // 2
        path.write_bytes(content[:half] + b"\0" * 40 + content[half + 40 :] if damage is None else damage)
    invoke("gate", "--store", store.location, "--require", "clean=1", code=2)


def test_json_has_every_check(store: str) -> None:
    text = invoke(
        "gate", "good", "--reference", "twin", "--store", store, "--require", "clean=50", "--json", code=3
    )
    facts = json.loads(text)
    assert (facts["decision"], facts["metric"], facts["images"]) == ("undecided", "mean_accuracy", 300)
    drop, clean = facts["checks"]
    assert (drop["name"], drop["decision"], drop["limit"], drop["bound"]) == (
        "drop",
        "undecided",
        0.01,
        "most",
    )
    assert drop["low"] < drop["value"] < drop["high"]
    assert drop["images_needed"] > 300
    assert (clean["decision"], clean["images_needed"]) == ("passed", None)


def test_junit_is_not_green_where_nothing_is_known(store: str, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    invoke(
        *(
            "gate",
            "good",
            "--reference",
            "twin",
            "--store",
            store,
            "--require",
            "clean=50",
            "--junit",
            str(file),
        ),
        code=3,
    )
    root = ElementTree.parse(file).getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    drop, clean = root.iter("testcase")
    failure = drop.find("failure")
    assert failure is not None
    assert failure.get("type") == "undecided"
    assert clean.find("failure") is None


def test_names_are_only_text(fill: Fill, tmp_path: Path) -> None:
    store = fill("s", {"<b>|a\x1b[31m": 0.9}).location
    summary, junit = tmp_path / "summary.md", tmp_path / "gate.xml"
    env = {"GITHUB_STEP_SUMMARY": str(summary)}
    text = invoke(
        *("gate", "--store", store, "--require", "clean=50", "--github-summary", "--junit", str(junit)),
        env=env,
    )
    assert "\x1b" not in text
    case = next(ElementTree.parse(junit).getroot().iter("testcase"))
    assert case.get("classname", "").startswith("beaufort.gate.<b>|a")
    assert "\\<b\\>\\|a" in summary.read_text(encoding="utf-8")


def test_github_summary_is_appended(store: str, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    arguments = ("gate", "bad", "--reference", "good", "--store", store, "--github-summary")
    invoke(*arguments, code=1, env={"GITHUB_STEP_SUMMARY": str(summary)})
    lines = summary.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["before", "### ❌ Robustness gate: failed"]
    assert any(line.startswith("| failed | Mean accuracy at most 1 point worse") for line in lines)
    assert "GITHUB_STEP_SUMMARY" in invoke(*arguments, code=2, env={"GITHUB_STEP_SUMMARY": ""})


def columns(folder: Path, images: int, size: int) -> str:
    rows = (f"digit/{i},{'ab'[i % 2]},{i // size}" for i in range(images))
    path = folder / "digits.csv"
    path.write_text("\n".join(["id,camera,patient", *rows]), encoding="utf-8")
    return str(path)


def test_clusters(store: str, tmp_path: Path) -> None:
    file = columns(tmp_path, 300, 30)
    arguments = ("gate", "bad", "--reference", "good", "--store", store)
    text = invoke(*arguments, "--cluster-by", f"{file}:patient", code=3)
    assert shows(text, "300 images", "10 clusters", "95 %")
    assert re.search(r"about [\d,]+ clusters would be needed", text)
    assert "did you mean 'patient'" in invoke(*arguments, "--cluster-by", f"{file}:patients", code=2)


def test_power_from_accuracies() -> None:
    text = invoke(
        "power", "--suite", "imagenet-c", "--assume", "accuracy=40", "--drop", "3", "--probability", "90"
    )
    first, fails, passes = text.splitlines()
    assert first.startswith("imagenet-c@1, mCE, at most 1 point worse; from the stated accuracy, ")
    assert re.match(r"about [\d,]+ images: a gate fails a model 3 points worse, with .* 90 %", fails)
    assert re.match(r"about [\d,]+ images: a gate passes a model as good as the reference", passes)
    strict = invoke(
        "power", "--suite", "cifar10-c", "--assume", "accuracy=70", "--drop", "1", "--max-drop", "0"
    )
    assert "no number of images" in strict
    assert "--max-drop" in invoke(
        "power", "--suite", "cifar10-c", "--assume", "accuracy=70", "--drop", "1", code=2
    )
    assert "requires --suite" in invoke("power", "--assume", "accuracy=70", "--drop", "2", code=2)


def test_power_prints_the_given_units() -> None:
    stated = ("power", "--suite", "cifar10-c", "--assume")
    assert "got 0.5 and 1 points" in invoke(*stated, "accuracy=70", "--drop", "0.5", code=2)
    assert "between 0 and 100, got 100" in invoke(*stated, "accuracy=100", "--drop", "2", code=2)
    sure = invoke(*stated, "accuracy=70", "--drop", "2", "--probability", "100", code=2)
    assert "got 100" in sure


def test_power_from_a_store(store: str, tmp_path: Path) -> None:
    two = json.loads(
        invoke("power", "good", "--reference", "twin", "--store", store, "--drop", "3", "--json")
    )
    assert shows(two["source"], "good", "twin", "300 images")
    assert two["to_fail"] > 300
    one = json.loads(invoke("power", "good", "--store", store, "--drop", "3", "--json"))
    assert "accuracy of good" in one["source"]
    file = columns(tmp_path, 300, 5)
    text = invoke(
        *("power", "good", "--reference", "twin", "--store", store, "--drop", "5"),
        "--cluster-by",
        f"{file}:patient",
    )
    assert re.search(r"about [\d,]+ clusters \(about [\d,]+ images\)", text)
    assert "--assume" in invoke(
        "power", "good", "--assume", "accuracy=50", "--suite", "mnist-c", "--drop", "2", code=2
    )
    assert "clean in --assume" in invoke(
        "power", "good", "--store", store, "--assume", "clean=50", "--drop", "2", code=2
    )


def test_groups_and_training_runs_in_compare_and_report(store: str, tmp_path: Path) -> None:
    file = columns(tmp_path, 300, 30)
    options = (
        "--group-by",
        f"{file}:camera",
        "--cluster-by",
        f"{file}:patient",
        "--training-runs",
        "net=good,twin",
    )
    text = invoke("compare", "good", "twin", "bad", "--store", store, *options)
    assert shows(text, "95 %", "10 clusters")
    assert "worst group: " in text
    assert "net, 2 training runs:" in text
    facts = json.loads(invoke("compare", "good", "twin", "--store", store, *options, "--json"))
    assert facts["clusters"] == 10
    assert set(facts["groups"]["good"]["accuracies"]) == {"a", "b"}
    assert facts["seeds"][0]["models"] == ["good", "twin"]
    markdown = invoke("report", store, "--format", "md", *options)
    assert "| worst group | " in markdown
    assert "| net | Mean accuracy ↑ | " in markdown
    rows = invoke("report", store, "--format", "csv", *options)
    assert re.search(r"^good,,\*,,group_accuracy,0\.\d+,0\.\d+,0\.\d+,10,a,all,[^,]+$", rows, re.M)
    assert re.search(r"^net,,,,seeds_mean_accuracy_sd,0\.\d+,,,10,,all,[^,]+$", rows, re.M)
    whole = json.loads(invoke("report", store, "--format", "json", *options))
    assert whole["seeds"][0]["name"] == "net"
    assert whole["models"][0]["groups"]["worst_name"] in ("a", "b")
    page = tmp_path / "page.html"
    invoke("report", store, "-o", str(page), *options)
    html = page.read_text(encoding="utf-8")
    assert '<section id="parts"><h2>Groups and training runs</h2>' in html
    assert '<a href="#parts">Groups and training runs</a>' in html


def test_invalid_seeds_are_reported(store: str) -> None:
    for text, message in (
        ("net", "NAME=MODEL"),
        ("net=good", "at least two"),
        ("net=good,god", "did you mean 'good'"),
    ):
        assert message in invoke("compare", "good", "bad", "--store", store, "--training-runs", text, code=2)
    twice = ("--training-runs", "net=good,bad", "--training-runs", "net=good,bad")
    assert "twice" in invoke("compare", "good", "bad", "--store", store, *twice, code=2)


def test_names_of_groups_are_only_text(fill: Fill, tmp_path: Path) -> None:
    store = fill("s", {"net": 0.9}, images=30).location
    path = tmp_path / "x.csv"
    path.write_text("id,x\n" + "".join(f"digit/{i},<script>{i % 2}\n" for i in range(30)), encoding="utf-8")
    page = tmp_path / "page.html"
    invoke("report", store, "-o", str(page), "--group-by", f"{path}:x")
    assert "<script>1" not in page.read_text(encoding="utf-8")
    assert "&lt;script&gt;1" in page.read_text(encoding="utf-8")


def test_power_of_several_datasets() -> None:
    """A gate checks each dataset of a suite separately, because their images are different."""
    stated = ("--assume", "accuracy=40", "--drop", "3", "--json")
    parts = json.loads(invoke("power", "--suite", "imagenet-a", "--assume", "clean=90", *stated))["parts"]
    assert [one["suite"] for one in parts] == ["imagenet-val-imagenet-a@1", "imagenet-a@1"]
    assert parts[0]["to_fail"] < parts[1]["to_fail"]  # models with an accuracy of 90 % differ less
    assert "the stated accuracies" in parts[0]["source"]
    assert "the stated accuracy," in parts[1]["source"]
    text = invoke("power", "--suite", "imagenet-a", "--assume", "accuracy=40", "--drop", "3")
    assert text.count("about 4,300 images: a gate fails") == 2
    rejected = invoke(
        "power", "--suite", "imagenet-a", "--assume", "accuracy=40", "--drop", "3", "--seed", "1", code=2
    )
    assert "--seed" in rejected
