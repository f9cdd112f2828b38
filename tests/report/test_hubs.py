"""Exports for hubs: each is valid for its published schema, and no number is rounded.

The schemas are described here in our own words: Every Eval Ever 0.2.2 (`eval.schema.json` and
`instance_level_eval.schema.json`), and Hugging Face's pages about evaluation results.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from beaufort._core.errors import UnknownNameError
from beaufort.report import export_every_eval_ever, export_huggingface
from beaufort.results import Scores, open_results, publish, score
from tests.commands import invoke
from tests.conftest import fill_store
from tests.report.test_board import SUITE

TEXT, NUMBER, WHOLE, FLAG = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))
TEXTS = {"type": "object", "additionalProperties": TEXT}


def shape(required: str, optional: str = "", *, closed: bool = False, **types: Any) -> dict[str, Any]:
    """The schema of an object: its keys, all texts unless another type is given."""
    names = [*required.split(), *optional.split()]
    return {
        "type": "object",
        "required": required.split(),
        "properties": {name: types.get(name, TEXT) for name in names},
        "additionalProperties": not closed,
    }


def one_of(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


def many(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


SOURCE = {
    "oneOf": [
        shape("dataset_name source_type url", "additional_details", source_type=one_of("url"),
              url={**many(TEXT), "minItems": 1}, additional_details=TEXTS),
        shape("dataset_name source_type", "hf_repo hf_split samples_number sample_ids additional_details",
              source_type=one_of("hf_dataset"), samples_number=WHOLE, sample_ids=many(TEXT),
              additional_details=TEXTS),
        shape("dataset_name source_type", "additional_details", source_type=one_of("other"),
              additional_details=TEXTS),
    ]
}  # fmt: skip
METRIC = {
    **shape(
        "lower_is_better",
        "evaluation_description metric_id metric_name metric_kind metric_unit score_type min_score max_score",
        lower_is_better=FLAG,
        score_type=one_of("binary", "continuous", "levels"),
        min_score=NUMBER,
        max_score=NUMBER,
    ),
    "if": {"required": ["score_type"], "properties": {"score_type": {"const": "continuous"}}},
    "then": {"required": ["min_score", "max_score"]},
}
INTERVAL = shape(
    "lower upper",
    "confidence_level method",
    lower=NUMBER,
    upper=NUMBER,
    confidence_level={**NUMBER, "minimum": 0, "maximum": 1},
)
RESULT = shape(
    "evaluation_name source_data metric_config score_details",
    "evaluation_result_id evaluation_timestamp",
    source_data=SOURCE,
    metric_config=METRIC,
    score_details=shape(
        "score",
        "details uncertainty",
        score=NUMBER,
        details=TEXTS,
        uncertainty=shape(
            "", "confidence_interval num_samples", confidence_interval=INTERVAL, num_samples=WHOLE
        ),
    ),
)
RECORD = shape(
    "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library "
    "evaluation_results",
    "evaluation_timestamp detailed_evaluation_results",
    closed=True,
    source_metadata=shape(
        "source_type source_organization_name evaluator_relationship",
        "source_name source_organization_url source_organization_logo_url additional_details",
        source_type=one_of("documentation", "evaluation_run"),
        evaluator_relationship=one_of("first_party", "third_party", "collaborative", "other"),
        additional_details=TEXTS,
    ),
    model_info=shape("name id", "developer inference_platform additional_details", additional_details=TEXTS),
    eval_library=shape("name version", "additional_details", additional_details=TEXTS),
    evaluation_results=many(RESULT),
    detailed_evaluation_results=shape(
        "",
        "format file_path hash_algorithm checksum total_rows",
        format=one_of("jsonl", "json"),
        hash_algorithm=one_of("sha256", "md5"),
        total_rows=WHOLE,
    ),
)
INSTANCE = shape(
    "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input "
    "answer_attribution evaluation output",  # a single turn needs its output
    "evaluation_result_id sample_hash",
    closed=True,
    interaction_type=one_of("single_turn", "multi_turn", "agentic"),
    input=shape("raw reference", "formatted choices", reference=many(TEXT)),
    output=shape("raw", "reasoning_trace", raw=many(TEXT)),
    answer_attribution=many(
        shape(
            "turn_idx source extracted_value extraction_method is_terminal", turn_idx=WHOLE, is_terminal=FLAG
        )
    ),
    evaluation=shape("score is_correct", "num_turns", score=NUMBER, is_correct=FLAG, num_turns=WHOLE),
)
BENCHMARK = shape(
    "name description evaluation_framework tasks",
    tasks={**many(shape("id config split", closed=True)), "minItems": 1},
    closed=True,
)
ENTRIES = many(
    shape(
        "dataset value",
        "verifyToken date source notes",
        closed=True,
        dataset=shape("id task_id", "revision", closed=True),
        value=NUMBER,
        source=shape("url", "name user org", closed=True),
    )
)


def check(content: Any, schema: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; the extra dev has it")
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(content, schema)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hubs")
    fill_store(root / "store", {"net": 0.8, "</b> other": 0.5}, suite=SUITE, images=30)
    publish(root / "store", root / "bundle", probabilities=False)
    return root


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(open_results(folder / "bundle"), calibration=False)


def test_every_eval_ever(folder: Path, scores: Scores) -> None:
    export_every_eval_ever([scores], folder / "eee", organization="Lab", developer="them")
    paths = sorted((folder / "eee" / "data" / "few" / "them").rglob("*.json"))
    assert [path.parent.name for path in paths] == ["__b__other", "net"]
    record = json.loads(paths[1].read_text())
    check(record, RECORD)
    model = next(one for one in scores.models if one.model == "net")
    found = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    expected = {"few/mean_accuracy": model.headline, "few/fog/error": model.corruptions["fog"]}
    expected |= {
        f"few/{condition.done or 'clean'}/accuracy": value for condition, value in model.conditions.items()
    }
    assert len(found) == len(record["evaluation_results"]) == 1 + 3 + 2 * 7
    for name, value in expected.items():
        details = found[name]["score_details"]
        interval = details["uncertainty"]["confidence_interval"]
        assert (details["score"], interval["lower"], interval["upper"]) == (
            value.value,
            value.low,
            value.high,
        )
        assert found[name]["metric_config"]["min_score"] <= value.low
        assert found[name]["metric_config"]["max_score"] >= value.high
    assert not found["few/mean_accuracy"]["metric_config"]["lower_is_better"]
    assert found["few/fog/error"]["metric_config"]["lower_is_better"]

    detailed = record["detailed_evaluation_results"]
    content = (paths[1].parent / detailed["file_path"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == detailed["checksum"]
    rows = [json.loads(line) for line in content.splitlines()]
    assert len(rows) == detailed["total_rows"] == 7 * 30
    check(rows, many(INSTANCE))
    assert {row["evaluation_id"] for row in rows} == {record["evaluation_id"]}
    assert {row["evaluation_result_id"] for row in rows} <= set(found)
    clean = [row["evaluation"]["score"] for row in rows if row["evaluation_name"] == "few/clean"]
    assert sum(clean) / len(clean) == pytest.approx(model.clean.value if model.clean else 0, abs=1e-12)


def test_the_schemas_are_strict() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; the extra dev has it")
    for content, schema in (
        ({"lower_is_better": True, "score_type": "continuous"}, METRIC),
        ({"name": "x"}, BENCHMARK),
        ([{"dataset": {"id": "a/b"}, "value": 1}], ENTRIES),
        ({"dataset_name": "x", "source_type": "unknown"}, SOURCE),
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, schema)


def test_hugging_face(folder: Path, scores: Scores) -> None:
    export_huggingface([scores], folder / "hub", dataset="lab/few", url="https://example.org/bundle")
    benchmark = yaml.safe_load((folder / "hub" / "dataset" / "eval.yaml").read_text())
    check(benchmark, BENCHMARK)
    tasks = {task["id"] for task in benchmark["tasks"]}
    assert tasks == {"mean-accuracy", "clean-accuracy"}
    model = next(one for one in scores.models if one.model == "net")
    entries = yaml.safe_load((folder / "hub" / "models" / "net" / ".eval_results" / "few.yaml").read_text())
    check(entries, ENTRIES)
    assert {entry["dataset"]["task_id"] for entry in entries} == tasks
    first = next(entry for entry in entries if entry["dataset"]["task_id"] == "mean-accuracy")
    assert first["value"] == pytest.approx(100 * model.headline.value, abs=1e-12)
    low, high = map(float, re.findall(r"interval \[(\S+), (\S+)\]", first["notes"])[0])
    assert (low, high) == pytest.approx((100 * model.headline.low, 100 * model.headline.high), abs=1e-12)

    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed; datasets has it")
    parsed = hub.parse_eval_result_entries(entries)
    assert {(one.dataset_id, one.task_id) for one in parsed} == {("lab/few", task) for task in tasks}
    assert hub.eval_result_entries_to_yaml(parsed) == entries
    card = hub.ModelCard((folder / "hub" / "models" / "net" / "README.md").read_text())
    (result, *_) = [one for one in card.data.eval_results if one.metric_type == "mean_accuracy"]
    assert result.metric_value == pytest.approx(100 * model.headline.value, abs=1e-12)
    assert result.metric_args["low"] == pytest.approx(100 * model.headline.low, abs=1e-12)
    assert card.data.model_name == "net"


def test_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    bundle = str(folder / "bundle")
    told = invoke("results", "publish", bundle, "-o", str(tmp_path / "hub"), "--format", "huggingface",
                  "--hub", "dataset=lab/few")  # fmt: skip
    assert "2 models" in told
    assert (tmp_path / "hub" / "dataset" / "eval.yaml").is_file()
    invoke("results", "publish", bundle, "-o", str(tmp_path / "eee"), "--format", "every-eval-ever",
           "--hub", "organization=Lab,instances=no", "--model", "net")  # fmt: skip
    assert len(list((tmp_path / "eee").rglob("*.json"))) == 1
    assert not list((tmp_path / "eee").rglob("*.jsonl"))
    for words, fact in (
        (["--format", "huggingface"], "requires --hub dataset="),
        (["--format", "every-eval-ever", "--hub", "dataset=a/b"], "dataset in --hub"),
        (["--hub", "dataset=a/b"], "--hub requires --format"),
        (["--format", "kaggle"], "--format must be one of bundle"),
        (["--format", "huggingface", "--hub", "dataset=few"], "ORGANIZATION/NAME"),
    ):
        assert fact in invoke("results", "publish", bundle, "-o", str(tmp_path / "new"), *words, code=2)
    with pytest.raises(UnknownNameError, match="unknown relationship"):
        export_every_eval_ever([], tmp_path / "new", organization="x", relationship="friend")
