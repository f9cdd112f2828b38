"""Bundles: published predictions are read back, and changes are detected."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beaufort._core.errors import OptionError
from beaufort.data import Dataset, from_arrays
from beaufort.metrics.stats import detection_probability, marked_at_most
from beaufort.models import Model, as_model
from beaufort.report import to_csv
from beaufort.results import (
    Bundle,
    BundleError,
    compare,
    evaluate,
    is_bundle,
    open_parts,
    open_results,
    open_targets,
    publish,
    rerun,
    score,
    verify_bundle,
)
from beaufort.results.bundle import digest_of, encode_manifest
from beaufort.store import FileStore
from beaufort.suites import Suite
from tests.commands import shows

SUITE = Suite(
    name="small",
    version=1,
    title="A small suite",
    dataset="toys",
    scale="cifar",
    corruptions=("gaussian_noise", "contrast"),
    severities=(1, 5),
    metrics=("mean_accuracy",),
)
IMAGES, CLASSES, CONDITIONS = 60, 6, 5


def toys() -> Dataset:
    rng = np.random.default_rng(5)
    images = rng.integers(0, 256, (IMAGES, 8, 8, 3)).repeat(4, axis=1).repeat(4, axis=2).astype(np.uint8)
    return from_arrays("toys", images, np.arange(IMAGES) % CLASSES, classes=tuple("abcdef"))


def toy(name: str = "toy", seed: int = 3) -> Model:
    weights = np.random.default_rng(seed).normal(0, 1, (CLASSES, 32 * 32 * 3)).astype(np.float32)
    return as_model(
        lambda images: images.reshape(len(images), -1).astype(np.float32) @ weights.T / 3000,
        name=name,
        classes=CLASSES,
        version=str(seed),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("published") / "store"
    evaluate([toy(), toy("other", 4)], SUITE, toys(), folder)
    return str(folder)


@pytest.fixture(scope="module")
def bundle(store: str) -> Bundle:
    return publish(store, Path(store).parent / "bundle", title="Toys")


@pytest.fixture
def copy(bundle: Bundle, tmp_path: Path) -> Path:
    for path in bundle.folder.rglob("*"):
        target = tmp_path / "copy" / path.relative_to(bundle.folder)
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return tmp_path / "copy"


def forge(folder: Path, change: Callable[[dict[str, Any]], None], file: str, *, rescore: bool = True) -> None:
    """Change the columns of a file of predictions, and renew every digest and all scores."""
    from beaufort.results.publishing import scores_of

    table = pq.read_table(folder / file)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    change(columns)
    written = pa.table({name: pa.array(values) for name, values in columns.items()})
    pq.write_table(written, folder / file)
    facts = json.loads((folder / "bundle.json").read_bytes())

    def seal(name: str) -> None:
        content = (folder / name).read_bytes()
        facts["files"][name] = {"bytes": len(content), "sha256": digest_of(content)}
        (folder / "bundle.json").write_bytes(encode_manifest(facts))

    seal(file)
    if rescore:
        (folder / "scores.csv").write_text(scores_of(Bundle(folder)))
        seal("scores.csv")


def test_a_bundle_gives_the_numbers_of_its_store(store: str, bundle: Bundle) -> None:
    ours, theirs = (score(open_results(place)) for place in (store, bundle.location))
    assert to_csv(ours) == to_csv(theirs)
    assert theirs.models[0].calibration
    assert is_bundle(bundle.location)
    assert not is_bundle(store)
    published = (bundle.folder / "scores.csv").read_text().splitlines()
    assert len(published) == len(to_csv(ours).splitlines())
    (one,) = open_targets([(f"{bundle.location}::other", "reference")])
    assert one[0].models == ("other",)
    assert compare(open_results(bundle.location)).differences


def test_the_files_are_plain_parquet(bundle: Bundle) -> None:
    table = pq.read_table(bundle.folder / "predictions" / "small" / "toy.parquet").to_pandas()
    fog = table[table.condition == "toys/contrast@5"]
    accuracy = float((fog.top1 == fog.label).mean())
    published = next(
        row
        for row in csv.DictReader(io.StringIO((bundle.folder / "scores.csv").read_text()))
        if (row["model"], row["condition"], row["metric"]) == ("toy", "toys/contrast@5", "accuracy")
    )
    assert float(published["value"]) == pytest.approx(accuracy, abs=1e-12)
    assert published["suite"] == "small"


def test_classes_without_probabilities(store: str, tmp_path: Path) -> None:
    small = publish(store, tmp_path / "small", probabilities=False)
    whole = publish(store, tmp_path / "whole")
    sizes = [sum(one["bytes"] for one in each.manifest["files"].values()) for each in (small, whole)]
    assert sizes[0] < sizes[1]
    scores = score(open_results(small.location))
    assert not scores.models[0].calibration
    expected = score(open_results(store), calibration=False)
    assert to_csv(scores) == to_csv(expected)
    assert not verify_bundle(small.location).problems
    assert not rerun(small, 40, [toy()], toys(), seed=1).wrong


def test_images_that_cannot_be_read_stay_out(tmp_path: Path) -> None:
    from beaufort.evaluation import predictions
    from beaufort.store import Cell, without_prediction

    kept = FileStore(tmp_path / "store")
    facts = {"name": "toys", "digest": "d"}
    for condition in SUITE.conditions("toys"):
        cell = Cell({"name": "net"}, facts, {**condition.facts(scale="cifar", seed=0), "prepare": ["rgb"]})
        logits = np.random.default_rng(1).normal(size=(9, 6)).astype(np.float32)
        table = predictions([f"{i}" for i in range(9)], [0, 1, 2] * 3, logits)
        lost = without_prediction(["9"], [1], table.schema)
        kept.write(cell, 0, pa.concat_tables([table, lost]))
    kept.write_run({"suite": SUITE.as_dict(), "data": facts, "seed": 0, "models": []}, {})
    made = publish(kept, tmp_path / "bundle")
    ours, theirs = (score(open_results(one)) for one in (kept, made))
    assert to_csv(ours) == to_csv(theirs)
    assert theirs.models[0].unread == 1
    assert not verify_bundle(made.location).problems


def test_provenance_names_no_directory(store: str, bundle: Bundle) -> None:
    text = (bundle.folder / "bundle.json").read_text()
    assert str(Path(store).parent) not in text
    results = open_results(bundle)
    assert results.origins[0]["versions"]["numpy"] == np.__version__


def test_verify_a_sound_bundle(bundle: Bundle) -> None:
    found = verify_bundle(bundle.location)
    assert found.problems == ()
    assert (found.models, found.predictions, found.files) == (2, 2 * CONDITIONS * IMAGES, 4)
    assert found.numbers == len((bundle.folder / "scores.csv").read_text().splitlines()) - 1


def test_any_changed_byte_is_found(copy: Path) -> None:
    rng = np.random.default_rng(0)
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        content = path.read_bytes()
        for at in rng.choice(len(content), 4, replace=False):
            changed = bytearray(content)
            changed[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(changed)
            problems = verify_bundle(copy).problems
            assert problems, f"{path.name} at {at}"
            assert any(path.name in problem for problem in problems)
        path.write_bytes(content)
    assert not verify_bundle(copy).problems
    files[0].unlink()
    assert verify_bundle(copy).problems


def test_unlisted_files_are_found(copy: Path) -> None:
    (copy / "more.txt").write_text("hello")
    (problem,) = verify_bundle(copy).problems
    assert shows(problem, "more.txt", "manifest")


def test_a_changed_score_does_not_follow(copy: Path) -> None:
    path = copy / "scores.csv"
    lines = path.read_text().splitlines(keepends=True)
    row = lines[1].split(",")
    place = lines[0].split(",").index("value")
    row[place] = str(float(row[place]) + 1e-9)
    path.write_text("".join([lines[0], ",".join(row), *lines[2:-1]]))
    facts = json.loads((copy / "bundle.json").read_bytes())
    content = path.read_bytes()
    facts["files"]["scores.csv"] = {"bytes": len(content), "sha256": digest_of(content)}
    (copy / "bundle.json").write_bytes(encode_manifest(facts))
    wrong, lacking = sorted(verify_bundle(copy).problems, key=lambda text: "lacks" in text)
    assert "follows from the predictions" in wrong
    assert "lacks" in lacking


def test_labels_of_one_model_alone_are_found(copy: Path) -> None:
    def relabel(columns: dict[str, Any]) -> None:
        columns["label"][:] = columns["top1"]

    forge(copy, relabel, "predictions/small/other.parquet")
    assert any("another id or label" in problem for problem in verify_bundle(copy).problems)


def test_a_rerun_confirms_and_states_its_bound(bundle: Bundle) -> None:
    found = rerun(bundle, 100, [toy(), toy("other", 4)], toys(), seed=2)
    assert (found.sample, found.population, found.wrong, found.problems) == (100, 600, (), ())
    assert found.at_most == marked_at_most(0, 100, 600) / 600
    whole = rerun(bundle, 10_000, [toy()], toys())
    assert (whole.sample, whole.at_most, whole.detects) == (300, 0.0, 1.0)


def test_a_rerun_finds_forged_predictions(copy: Path) -> None:
    def improve(columns: dict[str, Any]) -> None:
        wrong = np.flatnonzero(columns["top1"] != columns["label"])[:30]
        columns["top1"][wrong] = columns["label"][wrong]

    forge(copy, improve, "predictions/small/toy.parquet")
    assert not verify_bundle(copy).problems, "the forger was careful"
    found = rerun(copy, 300, [toy()], toys(), seed=0)
    assert len(found.wrong) == 30
    assert found.at_most == pytest.approx(0.1)
    one = found.wrong[0]
    assert one.published[0] != one.repeated[0]
    assert one.model == "toy"
    assert one.image in set(map(str, toys().ids))


@pytest.mark.parametrize("column", ["confidence", "nll"])
def test_a_rerun_finds_forged_probabilities(copy: Path, column: str) -> None:
    def sharpen(columns: dict[str, Any]) -> None:
        columns[column] = (columns[column] * 0.5).astype(np.float32)

    forge(copy, sharpen, "predictions/small/toy.parquet")
    assert len(rerun(copy, 50, [toy()], toys(), seed=0).wrong) > 40


def test_a_rerun_says_what_differs(bundle: Bundle) -> None:
    other = rerun(bundle, 10, [toy("toy", 9)], toys())
    assert other.sample == 0
    assert any(shows(problem, "model", "differs", "digest") for problem in other.problems)
    images = toys()
    fewer = from_arrays("toys", np.stack([images[i].image for i in range(IMAGES)])[::-1], images.labels)
    assert any(shows(one, "data", "differs", "digest") for one in rerun(bundle, 10, [toy()], fewer).problems)
    with pytest.raises(OptionError, match="no model 'third'"):
        rerun(bundle, 10, [toy("third")], toys())


def test_one_percent_forged_is_found_with_the_stated_probability() -> None:
    population, sample, forged, repeats = 20_000, 298, 200, 4_000
    stated = detection_probability(forged, sample, population)
    rng = np.random.default_rng(0)
    marked = np.zeros(population, bool)
    marked[rng.choice(population, forged, replace=False)] = True
    caught = np.mean([marked[rng.choice(population, sample, replace=False)].any() for _ in range(repeats)])
    assert stated == pytest.approx(0.95, abs=0.005)
    assert abs(caught - stated) < 4 * np.sqrt(stated * (1 - stated) / repeats)


@pytest.mark.parametrize(("population", "sample", "forged"), [(400, 60, 20), (3000, 100, 3), (50, 50, 7)])
def test_the_bound_covers(population: int, sample: int, forged: int) -> None:
    rng = np.random.default_rng(1)
    found = rng.hypergeometric(forged, population - forged, sample, 2000)
    bounds = {int(k): marked_at_most(int(k), sample, population) for k in np.unique(found)}
    covered = np.mean([bounds[int(k)] >= forged for k in found])
    assert covered >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2000)
    if sample == population:
        assert bounds == {forged: forged}


def test_bounds_agree_with_exact_sums() -> None:
    from math import comb

    population, sample = 40, 12
    for found in (0, 1, 4):
        at_most = [
            sum(comb(m, i) * comb(population - m, sample - i) for i in range(found + 1))
            / comb(population, sample)
            for m in range(population + 1)
        ]
        expected = max(m for m in range(population - sample + found + 1) if at_most[m] >= 0.05)
        assert marked_at_most(found, sample, population) == expected
        assert detection_probability(found, sample, population) == pytest.approx(
            1 - comb(population - found, sample) / comb(population, sample)
        )


def test_a_bundle_is_not_overwritten_or_written_to(store: str, bundle: Bundle) -> None:
    with pytest.raises(OptionError, match="new or empty"):
        publish(store, bundle.folder)
    with pytest.raises(Exception, match="cannot be changed"):
        bundle.write()


def test_manifests_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    for content in (b"", b"[]", b"{}", b'{"format": "beaufort bundle"}', encode_manifest({"format": "x"})):
        path.write_bytes(content)
        with pytest.raises(BundleError, match=r"bundle\.json"):
            Bundle(tmp_path)
    facts = {"format": "beaufort bundle", "version": 1, "facts": [{}], "files": {}}
    outside = [
        {"file": "predictions/../../x.parquet", "model": 0, "data": 0, "spans": [], "conditions": {"a": 0}}
    ]
    path.write_bytes(encode_manifest({**facts, "predictions": outside}))
    with pytest.raises(BundleError, match="invalid"):
        Bundle(tmp_path)
    path.write_bytes(encode_manifest({**facts, "version": 2, "predictions": []}))
    with pytest.raises(BundleError, match="version 2"):
        Bundle(tmp_path)


def test_several_datasets(tmp_path: Path) -> None:
    parts = [
        {"dataset": "toys", "scale": "cifar", "corruptions": ["contrast"], "severities": [1]},
        {"dataset": "others", "scale": "cifar", "corruptions": ["contrast"], "severities": [5]},
    ]
    suite = Suite.from_dict({"name": "two", "version": 1, "title": "Two datasets", "parts": parts})
    evaluate([toy()], suite, {"toys": toys(), "others": toys()}, tmp_path / "store", limit=30)
    made = publish(tmp_path / "store", tmp_path / "bundle")
    ours, theirs = ([to_csv(score(part)) for part in open_parts(one)] for one in (tmp_path / "store", made))
    assert len(ours) == 2
    assert ours == theirs
    assert not verify_bundle(made.location).problems
    found = rerun(made, 50, [toy()], {"toys": toys(), "others": toys()}, seed=0)
    assert (found.population, found.sample, found.wrong, found.problems) == (120, 50, (), ())
