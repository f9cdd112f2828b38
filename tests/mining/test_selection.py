"""Which images surrogates choose, and how hard they are for others."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import OptionError
from beaufort.cli import app
from beaufort.data.labels import LabelError
from beaufort.mining import (
    GeneratedImage,
    MinedSelection,
    MiningError,
    SetPredictions,
    confusions,
    hardness,
    hardness_curve,
    make_plan,
    nuisance_failures,
    open_generated,
    predict_set,
    read_selection,
    select,
    transfer_matrix,
    write_review_list,
    write_selection_report,
)
from beaufort.mining.selection import _controls, parse_rule
from beaufort.models import as_model
from beaufort.store import FileStore
from tests.mining.world import (
    CATEGORIES,
    WIDE_LABELS,
    bold,
    class_fractions,
    close,
    faint,
    middle,
    vague,
    wide,
)


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def selection(images: Path, tmp_path: Path) -> MinedSelection:
    data, made = open_generated(images)
    predictions = predict_set([bold(), middle(), faint(), close(), vague()], data, tmp_path / "store")
    return select(predictions, made, ["bold", "middle"])


def test_kept_images_are_failures_of_all_surrogates(selection: MinedSelection) -> None:
    pixels = np.stack([np.asarray(Image.open(one.path)) for one in selection.images])
    expected = np.array([CATEGORIES.index(one.item.category) for one in selection.images])
    wrong = [class_fractions(pixels, *setting).argmax(axis=1) != expected for setting in ((120, 0), (60, 6))]
    assert selection.kept.tolist() == (wrong[0] & wrong[1]).tolist()
    assert 0 < selection.kept.sum() < len(expected)
    either = select(selection.predictions, selection.images, ["bold", "middle"], rule="1-of-2")
    assert either.kept.tolist() == (wrong[0] | wrong[1]).tolist()


def test_the_rule_in_words(selection: MinedSelection) -> None:
    one, *_ = names = selection.surrogates
    assert selection.rule == f"all {len(names)} surrogates fail"
    assert replace(selection, needed=1).rule == f"at least 1 of {len(names)} surrogates fail"
    assert replace(selection, surrogates=(one,), needed=1).rule == "the surrogate fails"


def test_predictions_are_in_the_ordinary_store(
    selection: MinedSelection, tmp_path: Path, images: Path
) -> None:
    store = FileStore(tmp_path / "store")
    assert {cell.model["name"] for cell in store.cells().values()} == set(selection.predictions.models)
    before = sorted(path.name for path in (tmp_path / "store").rglob("*.parquet"))
    again = predict_set([bold(), middle()], open_generated(images)[0], store)
    assert (again.predicted == selection.predictions.predicted[:2]).all()
    assert sorted(path.name for path in (tmp_path / "store").rglob("*.parquet")) == before


def test_many_outputs_to_one_category(images: Path, tmp_path: Path) -> None:
    data, _ = open_generated(images)
    one = predict_set([middle()], data, tmp_path / "store")
    many = predict_set([wide()], data, tmp_path / "store", labels=WIDE_LABELS)
    assert (many.predicted == one.predicted).all()
    with pytest.raises(LabelError, match=r"1.*'leaf'\)"):
        predict_set([wide()], data, tmp_path / "store", labels={"cup": (2, 3), "kite": (1, 4)})
    with pytest.raises(LabelError, match=r"--labels FILE\.json \D*$"):
        predict_set([wide()], data, tmp_path / "store")  # whose commands lack --classes and --labels identity


def test_an_output_of_no_category_is_a_failure(images: Path, tmp_path: Path) -> None:
    data, _ = open_generated(images)
    labels = {"cup": (2,), "kite": (1,), "leaf": (5,)}
    open_to_all = predict_set([wide()], data, tmp_path / "a", labels=labels)
    assert (open_to_all.predicted >= 3).any()
    restricted = predict_set([wide()], data, tmp_path / "b", labels=labels, convention="restricted")
    assert not (restricted.predicted >= 3).any()
    place = int((open_to_all.predicted[0] >= 3).argmax())
    assert open_to_all.name("wide", place) in ("output 0", "output 3", "output 4")


def test_other_classes_of_imagenet_are_named(images: Path, tmp_path: Path) -> None:
    data, _ = open_generated(images)

    def lakeside(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        logits = np.zeros((len(images), 1000), np.float32)
        logits[:, 975], logits[:, 504] = 2, 1
        return logits

    labels = {"cup": (504,), "kite": (21,), "leaf": (940,)}
    model = as_model(lakeside, name="lakeside", classes=1000, version="1")
    predictions = predict_set([model], data, tmp_path / "store", labels=labels)
    assert {predictions.name("lakeside", place) for place in range(len(data))} == {"lakeside"}
    assert predictions.failed.all()
    assert confusions(predictions, "lakeside")["kite", "lakeside"] == 20
    named = as_model(lakeside, name="own", classes=[f"class {i}" for i in range(1000)], version="2")
    predictions = predict_set([named], data, tmp_path / "store", labels=labels)
    assert predictions.name("own", 0) == "class 975"


def test_surrogates_are_marked_and_the_unfiltered_set_is_scored(selection: MinedSelection) -> None:
    rows = hardness(selection)
    assert [one.model for one in rows] == ["faint", "close", "vague", "bold", "middle"]
    assert [one.surrogate for one in rows] == [False, False, False, True, True]
    for one in rows:
        right = ~selection.predictions.failed[selection.predictions.row(one.model)]
        assert one.unfiltered.value == pytest.approx(right.mean())
        assert one.kept is not None
        assert one.kept.value == pytest.approx(right[selection.kept].mean())
        assert one.kept.low < one.kept.high
    assert rows[-1].kept is not None
    assert rows[-1].kept.value == 0


def test_the_curve_against_plain_loops() -> None:
    rng = np.random.default_rng(3)
    hard = rng.random(300)
    failed = np.stack([rng.random(300) < 0.2 + 0.6 * hard for _ in range(5)])
    for point in hardness_curve(failed):
        means = []
        for chosen in combinations(range(5), point.surrogates):
            kept = failed[list(chosen)].all(axis=0)
            means.append(np.mean([(~failed[m][kept]).mean() for m in range(5) if m not in chosen]))
        assert point.accuracy.value == pytest.approx(np.mean(means), abs=1e-5)
        assert (point.lowest, point.highest) == pytest.approx((min(means), max(means)), abs=1e-5)
        assert point.subsets == point.possible == len(means)
        assert point.accuracy.low < point.accuracy.value < point.accuracy.high
    assert [point.surrogates for point in hardness_curve(failed)] == [1, 2, 3, 4]
    first, second = hardness_curve(failed)[:2]
    assert first.step is None
    assert second.step is not None
    assert second.step.value == pytest.approx(first.accuracy.value - second.accuracy.value)


def test_the_curve_of_many_models_is_a_seeded_sample() -> None:
    rng = np.random.default_rng(0)
    failed = rng.random((12, 80)) < 0.7
    curve = hardness_curve(failed, subsets=20)
    assert curve[2].possible == 220
    assert 10 < curve[2].subsets <= 20
    assert curve == hardness_curve(failed, subsets=20)
    assert curve != hardness_curve(failed, subsets=20, seed=1)


def test_intervals_of_a_sample_cover_the_curve_of_all_sets() -> None:
    """Steps compare models within the same random order, because models differ."""
    rng = np.random.default_rng(0)
    skill = np.linspace(-1.5, 1.5, 10)
    failed = rng.normal(size=2000) * 1.2 + rng.normal(size=(10, 2000)) + skill[:, None] > 0
    every = hardness_curve(failed)
    assert all(point.subsets == point.possible for point in every)
    covered = []
    for seed in range(4):
        for drawn, point in zip(hardness_curve(failed, subsets=60, seed=seed), every, strict=True):
            covered.append(drawn.accuracy.low <= point.accuracy.value <= drawn.accuracy.high)
            if drawn.step is not None and point.step is not None:
                covered.append(drawn.step.low <= point.step.value <= drawn.step.high)
                assert drawn.step.half_width < 0.05
    assert np.mean(covered) > 0.9


def test_intervals_never_have_no_width_and_the_curve_ends_where_nothing_is_left() -> None:
    alike = np.tile(np.arange(40) < 10, (4, 1))  # all fail on the same ten
    for point in hardness_curve(alike):
        assert point.accuracy.value == 0
        assert point.accuracy.high > 0.2
        if point.step is not None:
            assert point.step.low < 0 < point.step.high
    single = hardness_curve(np.ones((3, 1), bool))[1].step
    assert single is not None
    assert (single.low, single.high) == (-1, 1)  # a difference of shares is not larger
    apart = np.eye(4, dtype=bool)  # no two fail on the same
    assert [point.surrogates for point in hardness_curve(apart)] == [1]
    with pytest.raises(MiningError, match=r"two models.*\b1\b"):
        hardness_curve(apart[:1])


def test_the_coverage_of_the_curve_s_intervals() -> None:
    """For sets drawn from one population, most intervals cover its value."""
    rng = np.random.default_rng(1)
    world = rng.random(100_000)

    def draw(hard: Any, rng: Any) -> Any:
        return np.stack([rng.random(len(hard)) < 0.1 + 0.7 * hard for _ in range(3)])

    first, second, third = draw(world, rng)  # all models are alike, so any pair shows the value
    expected = (~third[first & second]).mean()
    hits = 0
    for seed in range(25):
        local = np.random.default_rng(seed)
        point = hardness_curve(draw(local.choice(world, 250), local), seed=seed)[1]
        hits += point.accuracy.low <= expected <= point.accuracy.high
    assert hits >= 21


def test_few_images_have_wide_intervals() -> None:
    """Resamples of a handful of images only repeat them; the interval must cover the world all the same."""

    def draw(images: int, rng: Any) -> Any:
        hard = rng.normal(size=images) * 1.2 - 1.5
        return hard + rng.normal(size=(4, images)) > 0

    world = draw(100_000, np.random.default_rng(99))
    expected = (~world[3][world[:2].all(axis=0)]).mean()  # all models are alike
    hits = 0
    for seed in range(40):
        point = hardness_curve(draw(60, np.random.default_rng(seed)), seed=seed)[1]
        hits += point.accuracy.low <= expected <= point.accuracy.high
    assert hits >= 36


def test_missing_surrogates_are_reported_first(images: Path, tmp_path: Path) -> None:
    world = "python:tests.mining.world"
    for words, message in (
        (["--surrogates", ""], "at least one surrogate"),
        (["--surrogates", f"{world}:nobody", "--failures", "2-of-3"], "rule must be all, or K-of-1"),
        (["--surrogates", f"{world}:bold", "--controls", "1000"], "controls must be at most"),
    ):
        found = CliRunner().invoke(
            app,
            ["mine", "select", str(images), "--others", f"{world}:faint", *words, "--store",
             str(tmp_path / "store"), "--output", str(tmp_path / "out")],
        )  # fmt: skip
        assert found.exit_code == 2
        assert message in " ".join(found.output.split())
        assert not (tmp_path / "out").exists()


def test_transfer_and_nuisances(selection: MinedSelection) -> None:
    failed = dict(zip(selection.predictions.models, selection.predictions.failed, strict=True))
    cells = {(one.source, one.target): one.fraction for one in transfer_matrix(selection)}
    assert len(cells) == 20
    fraction = cells["bold", "vague"]
    assert fraction is not None
    assert fraction.value == pytest.approx(failed["vague"][failed["bold"]].mean())
    known = [(one.item.kind, one.item.nuisance) for one in selection.images]
    rows = {
        (one.kind, one.nuisance, one.model): one.failures
        for one in nuisance_failures(selection.predictions, known)
    }
    wood = np.array([pair == ("material", "wood") for pair in known])
    assert rows["material", "wood", "faint"].value == pytest.approx(failed["faint"][wood].mean())
    assert rows["material", "", "faint"].n == sum(kind == "material" for kind, _ in known)


def test_the_tables_and_the_page(selection: MinedSelection, tmp_path: Path, show: Any) -> None:
    write_selection_report(selection, tmp_path / "out")
    rows = read_selection(tmp_path / "out" / "selection.csv")
    assert [row.kept for row in rows] == selection.kept.tolist()
    assert all(set(row.predicted) == {"bold", "middle"} for row in rows)
    assert all((row.category not in row.predicted.values()) == row.kept for row in rows)
    roles = {row["model"]: row["role"] for row in read_csv(tmp_path / "out" / "models.csv")}
    assert roles == {"bold": "surrogate", "middle": "surrogate"} | dict.fromkeys(
        ("faint", "close", "vague"), "evaluated"
    )
    page = show(tmp_path / "out" / "index.html")
    marked = page.locator("#models tbody th", has_text="surrogate").all_inner_texts()
    assert [text.split()[0] for text in marked] == ["bold", "middle"]
    assert page.locator("#surrogates circle").count() == 4
    assert page.locator("#gallery img").count() == min(48, int(selection.kept.sum()))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_rules() -> None:
    assert (parse_rule("all", 3), parse_rule("2-of-3", 3)) == (3, 2)
    for rule in ("2-of-4", "0-of-3", "4-of-3", "most"):
        with pytest.raises(MiningError, match=r"rule.*K-of-3.*K.*1.*3"):
            parse_rule(rule, 3)


def test_bad_surrogates(selection: MinedSelection) -> None:
    with pytest.raises(OptionError, match="'bold' more than once"):
        select(selection.predictions, selection.images, ["bold", "bold"])
    with pytest.raises(MiningError, match="unknown model 'other'"):
        select(selection.predictions, selection.images, ["other"])


def test_names_must_differ(images: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="bold"):
        predict_set([bold(), bold()], open_generated(images)[0], tmp_path / "store")


def test_images_that_vanish_or_do_not_belong(images: Path) -> None:
    lost = next(images.rglob("*.png"))
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(MiningError, match=rf"1.*60.*missing.*\(first.*{lost.name}"):
        open_generated(images)
    lost.write_bytes(content)
    plan = (images / "plan.csv").read_text()
    (images / "plan.csv").write_text("".join(plan.splitlines(keepends=True)[:-1]))
    with pytest.raises(MiningError, match=r"1.*plan\.csv"):
        open_generated(images)
    (images / "plan.csv").write_text(plan)
    Image.new("RGB", (8, 8)).save(images / "texture" / "cup" / "holiday.jpg")
    with pytest.raises(MiningError, match=r"texture/cup/holiday\.jpg.*PNG"):
        open_generated(images)
    with pytest.raises(MiningError, match="contains no images"):
        open_generated(images / "nowhere")


def test_the_list_for_the_review(selection: MinedSelection, images: Path) -> None:
    judged = write_review_list(selection, images / "kept.csv", controls=3, seed=1)
    rows = read_csv(images / "kept.csv")
    assert judged == selection.kept.sum() == sum(row["role"] == "" for row in rows)
    right = {one.item.file: one.item.category for one in selection.images}
    for row in rows:
        assert (row["category"] == right[row["file"]]) == (row["role"] != "control-invalid")
    assert (
        sorted(row["role"] for row in rows if row["role"]) == ["control-invalid"] * 3 + ["control-valid"] * 3
    )
    assert len({row["file"] for row in rows}) == len(rows)
    with pytest.raises(MiningError, match=r"controls.*\d+"):
        write_review_list(selection, images / "kept.csv", controls=1000)


def test_the_command(images: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    world = "python:tests.mining.world"
    command = ["mine", "select", str(images), "--surrogates", f"{world}:bold,{world}:middle"]
    more = [
        "--others",
        f"{world}:faint",
        "--store",
        str(tmp_path / "store"),
        "--output",
        str(tmp_path / "out"),
    ]
    result = run(app, [*command, *more, "--controls", "2"])
    assert result.exit_code == 0, result.output
    assert "surrogate" in result.output
    assert "images kept" in result.output
    assert (images / "kept.csv").is_file()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html", "models.csv", "nuisances.csv", "selection.csv", "surrogates.csv", "transfer.csv",
    }  # fmt: skip
    assert run(app, [*command, *more, "--failures", "3-of-2"]).exit_code == 2
    assert run(app, [*command, *more, "--labels", "nowhere.json"]).exit_code == 2


def test_a_list_of_an_earlier_selection_does_not_stay(images: Path, tmp_path: Path) -> None:
    (images / "kept.csv").write_text("file,category,role\n")
    surrogates = ",".join(f"python:tests.mining.world:{name}" for name in ("cups", "kites", "leaves"))
    more = ["--store", str(tmp_path / "store"), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["mine", "select", str(images), "--surrogates", surrogates, *more])
    assert "0 of 60 images kept" in result.output, result.output
    assert not (images / "kept.csv").exists()


def test_missing_parts_of_a_selection_are_reported(tmp_path: Path) -> None:
    """Messages do not contain class names of Python errors."""
    path = tmp_path / "selection.csv"
    with pytest.raises(MiningError, match=r"selection.csv.*No"):
        read_selection(path)
    path.write_text("file,category\na.png,cup\n", encoding="utf-8")
    with pytest.raises(MiningError, match=r"selection.csv.*no column 'sha256'"):
        read_selection(path)


def test_invalid_controls_are_of_distant_categories() -> None:
    """Mugs are confused with cups, and tea cups have a word in common with cups."""
    categories = ("cup", "tea_cup", "mug", "kite")
    labels = np.repeat(np.arange(4), 10)
    runners_up = np.array([[2] * 20 + [0, 1] * 5 + [1] * 10])
    ids, confidence = tuple(map(str, range(40))), np.ones((1, 40), np.float32)
    predictions = SetPredictions(
        ("net",), categories, ids, labels, labels[None].copy(), confidence, runners_up
    )
    items = make_plan(categories, nuisances={"texture": ["dotted"]}, each=10)
    images = [GeneratedImage(Path("1.png"), item, {}) for item in items]
    rows = _controls(MinedSelection(predictions, ("net",), 1, tuple(images)), 20, random.Random(0))
    files = {item.file: item.category for item in items}
    found: dict[str, set[str]] = {}
    for file, category, role in rows:
        if role == "control-invalid":
            found.setdefault(files[file], set()).add(category)
    assert found == {"cup": {"kite"}, "tea_cup": {"kite"}, "mug": {"kite"}, "kite": {"cup", "mug"}}
