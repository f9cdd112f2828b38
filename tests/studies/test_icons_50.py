"""The files of the study of Icons-50."""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.studies import reproduce
from beaufort.studies.engine import definition
from beaufort.studies.icons_50.icon_examples import example_sheet
from beaufort.studies.icons_50.icon_pages import confusions_csv
from beaufort.studies.icons_50.icon_runs import ARMS, NETWORKS, SPLITS, VARIANTS, IconSettings, plan
from beaufort.studies.icons_50.icon_tables import (
    PREDICTABLE,
    IconResults,
    accuracy_table,
    by_group,
    claims,
    confusions,
    difference,
    effects,
    load_results,
)
from beaufort.studies.predictions import StudyPredictions, read_predictions
from tests.studies.rehearsal import Rehearsal

pytestmark = pytest.mark.xdist_group("icons-50")


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_everything_is_written(icons_50: Rehearsal) -> None:
    names = {path.name for path in icons_50.folder.iterdir()}
    tables = {"accuracy.csv", "shake.csv", "styles.csv", "shake-effects.csv", "classes.csv", "subtypes.csv"}
    assert {*tables, "confusions.csv", "README.md", "index.html", "examples.png"} <= names
    styles = sheet(icons_50.folder / "styles.csv")
    assert {row["network"] for row in styles} == {
        VARIANTS[name].title for name in definition("icons-50")["every_style"]
    }
    assert {row["held out"] for row in styles} == {"apple", "microsoft", "twitter"}
    page, text = ((icons_50.folder / name).read_text() for name in ("index.html", "README.md"))
    for message in (page, text):
        assert "openmoji: OpenMoji, https://github.com/hfg-gmuend/openmoji, Apache-2.0" in message
        assert ": 1 to 2 for DenseNet-40, MSDNet, " in message
        assert " tasks, without runs that were killed" in message
        assert " --seeds 1 --jobs 1 --rehearse" in message
    assert all(variant.title in page for variant in VARIANTS.values())


def test_the_page_has_only_icons_that_may_be_published(icons_50: Rehearsal, tmp_path: Path) -> None:
    icons, open_icons = icons_50.data["icons-50"], icons_50.data["icons-open"]
    assert "data:image/png" in (icons_50.folder / "index.html").read_text()
    icons_50.again(only=["page"], data={"icons-50": icons})
    assert "data:image" not in (icons_50.folder / "index.html").read_text()
    with pytest.raises(OptionError, match=r"manifest\.csv not found"):
        icons_50.again(only=["page"], data={"icons-open": icons})
    shutil.copytree(open_icons, tmp_path / "changed")
    (tmp_path / "changed" / "bird" / "noto_0_duck.png").write_bytes(b"another")
    with pytest.raises(OptionError, match=r"noto_0_duck\.png .* digest"):
        icons_50.again(only=["page"], data={"icons-open": str(tmp_path / "changed")})
    icons_50.again(only=["page"], data={"icons-open": open_icons})
    sheet = Image.open(icons_50.folder / "examples.png").convert("RGB")
    colors = {color for _, color in sheet.getcolors(100_000) or []}
    assert {(80,) * 3, (160,) * 3} <= colors


def test_a_column_of_examples_has_the_subtype_that_most_have(tmp_path: Path) -> None:
    lines = ["file,class,style,version,subtype,package,license,sha256"]
    for style, version, subtype, gray in (
        *(("a", 0, "crow", 10), ("a", 0, "duck", 80), ("b", 0, "duck", 80), ("b", 2, "duck", 80)),
        ("c", 0, "owl", 200),
    ):
        file = tmp_path / "bird" / f"{style}_{version}_{subtype}.png"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (120, 120), (gray,) * 3).save(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"bird/{file.name},bird,{style},{version},{subtype},@iconify-json/noto,MIT,{digest}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    found = example_sheet(tmp_path)
    drawn = np.asarray(Image.open(io.BytesIO(found.png)).convert("L"))
    column = drawn[22:, 130 + 52 + 24]
    assert [int(column[row * 52 + 24]) for row in range(4)] == [80, 80, 80, 200]
    assert len(found.credits) == 4
    assert found.credits[2] == "b, version 2: Google Inc., https://github.com/googlefonts/noto-emoji, MIT"


def test_tables_count_the_predictions(icons_50: Rehearsal) -> None:
    """A cell is the fraction of correct predictions, by counting."""
    both = [
        read_predictions(icons_50.folder / "predictions" / f"resnet20@style-seed{seed}.npz")
        for seed in (0, 1)
    ]
    fraction = np.mean([(one.predicted[0] == one.labels).mean() for one in both])
    rows = sheet(icons_50.folder / "accuracy.csv")
    row = next(row for row in rows if (row["network"], row["held out"]) == ("ResNet-20", SPLITS["style"]))
    assert float(row["accuracy"]) == pytest.approx(100 * fraction, abs=0.005)
    assert float(row["low"]) < float(row["accuracy"]) + 1e-9 < float(row["high"])
    assert row["paper"] == "58.30"
    assert all("/microsoft_" in id for id in both[0].facts["ids"])


def test_a_run_is_stopped_and_resumed(icons: Path, tmp_path: Path) -> None:
    """A deadline that is over lets each call make one step of the training that it is at."""
    from beaufort.studies.icons_50.icon_runs import make_model

    settings = IconSettings(data=f"icons-50:{icons}", device="cpu", seeds=1, rehearse=True)
    options: dict[str, Any] = {"settings": settings, "name": "condensenet86", "split": "style", "seed": 0}
    assert make_model(tmp_path / "whole", None, **options)
    calls = 1
    while not make_model(tmp_path / "parts", 0.0, **options):
        calls += 1
    assert calls == 3
    name = "predictions/condensenet86@style-seed0.npz"
    one, other = read_predictions(tmp_path / "whole" / name), read_predictions(tmp_path / "parts" / name)
    np.testing.assert_array_equal(one.predicted, other.predicted)


def test_the_real_thing_is_as_large_as_the_paper(icons: Path) -> None:
    settings = IconSettings(data=f"icons-50:{icons}", seeds=3)
    table, arms, long, rest = plan(settings)
    assert len(table) == 3 * 4 * 4
    assert len(arms) == 3 * len(ARMS) * 2
    assert len(long) == 3 * 3
    files = [task.file for phase in (table, arms, long, rest) for task in phase]
    assert len(set(files)) == len(files)
    assert [len(phase) for phase in plan(settings, ["style"])] == [12, 0, 0, 0]
    assert [len(phase) for phase in plan(settings, ["style", "resnext29"])] == [3, 0, 0, 0]
    assert [len(phase) for phase in plan(settings, ["shake-500"])] == [0, 0, 9, 0]
    assert [len(phase) for phase in plan(settings, ["shake"])] == [0, 3 * len(ARMS), 0, 0]
    assert [len(phase) for phase in plan(settings, ["styles"])] == [0, 0, 0, 3 * 2 * 3]
    assert settings.recipe("shake26-96d").epochs == 500
    assert settings.recipe("still26-32d-200").epochs == 200
    assert settings.recipe("still26-32d-200").architecture_options["shake"] is False


ICONS = 400


def made_predictions(split: str, fraction: float, *, unseen: int = 0) -> StudyPredictions:
    """Predictions that are correct on the first fraction of the icons; some of the ten classes are unseen."""
    labels = (np.arange(ICONS) % 10).astype(np.uint8)
    predicted = labels.copy()
    right = round(ICONS * fraction)
    predicted[right:] = (predicted[right:] + 1) % 10
    ids = [f"class{label}/microsoft_0_kind{place % 20}.png" for place, label in enumerate(labels)]
    facts = {
        "classes": [f"class{label}" for label in range(10)],
        "trained_classes": list(range(10 - unseen)),
        "ids": ids,
    }
    return StudyPredictions((split,), predicted[None], labels, facts)


def results(fractions: dict[tuple[str, str], list[float]], **options: Any) -> IconResults:
    return IconResults(
        {
            key: [made_predictions(key[1], fraction, **options) for fraction in some]
            for key, some in fractions.items()
        }
    )


def test_differences_cover_icons_and_runs() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((5, 300)) < 0.7, rng.random((5, 300)) < 0.5
    value, low, high = difference(first.astype(float), second.astype(float))
    assert low < value < high
    assert value == pytest.approx(first.mean() - second.mean())
    apart = np.repeat([[0.1], [0.9], [0.5]], 300, axis=1)
    _, wide_low, wide_high = difference(apart, second.astype(float))
    assert wide_high - wide_low > 3 * (high - low)
    same = difference(np.ones((3, 100)), np.ones((3, 100)))
    assert same == (0.0, -0.03, 0.03)


def test_the_icons_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--data icons-50=PATH"):
        reproduce("icons-50", tmp_path / "study", only=["style"])
    assert not (tmp_path / "study").exists()


def test_an_effect_requires_several_runs() -> None:
    pairs = {("shake26-32d-50", "style"): [0.8], ("still26-32d-50", "style"): [0.5]}
    (alone,) = effects(results(pairs))
    assert alone.verdict == "undecided"
    pairs = {("shake26-32d-50", "style"): [0.8, 0.81], ("still26-32d-50", "style"): [0.5, 0.52]}
    (several,) = effects(results(pairs))
    assert several.verdict == "confirmed"
    pairs = {("shake26-32d-50", "style"): [0.5, 0.52], ("still26-32d-50", "style"): [0.8, 0.81]}
    (worse,) = effects(results(pairs))
    assert worse.verdict == "refuted"
    output = claims(results(pairs), [worse])
    assert [one.verdict for one in output] == ["refuted"]


def test_the_network_is_compared_apart_from_shaking_and_length() -> None:
    pairs = {("still26-32d-50", "style"): [0.8, 0.81], ("resnext29", "style"): [0.5, 0.52]}
    (network,) = effects(results(pairs))
    assert network.name == "Shake-Shake's network not shaken, 50 epochs"
    assert network.value == pytest.approx(0.295)
    assert network.verdict == "confirmed"


def test_the_control_has_three_verdicts() -> None:
    for easy, hard, verdict in ((0.97, 0.55, "confirmed"), (0.6, 0.7, "refuted"), (0.7, 0.6, "undecided")):
        both = {("resnet20", "traditional"): [easy, easy], ("resnet20", "style"): [hard, hard]}
        (result,) = claims(results(both), [])
        assert result.verdict == verdict
        assert result.measured.endswith("2 runs of each")
        (alone,) = claims(results({key: some[:1] for key, some in both.items()}), [])
        assert alone.verdict == "undecided"
        assert alone.measured.endswith("one run of each")


def test_icons_that_cannot_be_right_are_counted_apart() -> None:
    found = results({("resnet20", "subtype-released"): [0.5, 0.6]}, unseen=2)
    cells = accuracy_table(found).rows["ResNet-20"]
    assert cells[SPLITS["subtype-released"]].printed == NETWORKS["resnet20"].paper["subtype-released"]
    assert cells[SPLITS["subtype-released"]].value == pytest.approx(0.55)
    right = [
        (one.row("subtype-released") & (one.labels < 8)).sum() / 320
        for one in found.predictions["resnet20", "subtype-released"]
    ]
    assert cells[PREDICTABLE].value == pytest.approx(np.mean(right))
    assert {one.label for one in confusions(found, most=100)} == {f"class{label}" for label in range(8)}


def test_groups_are_sorted_and_confusions_counted() -> None:
    found = results({("resnet20", "style"): [0.5], ("densenet40", "style"): [0.75]})
    columns, rows = by_group(found, "style", "class")
    assert columns == ["ResNet-20", "DenseNet-40"]
    assert rows["class0"] == [40.0, 0.5, 0.75]
    means = [np.mean(row[1:]) for row in rows.values()]
    assert means == sorted(means)
    assert len(by_group(found, "style", "subtype")[1]) == 20
    first = confusions(found, most=1)
    assert [(one.network, one.label, one.predicted) for one in first] == [
        ("resnet20", "class0", "class1"),
        ("densenet40", "class0", "class1"),
    ]
    assert [one.icons for one in first] == [20.0, 10.0]
    assert [one.fraction for one in first] == [0.5, 0.25]
    row = next(csv.DictReader(confusions_csv(first).splitlines()))
    assert (row["network"], row["held out"]) == ("ResNet-20", SPLITS["style"])


def test_results_of_a_study_folder(icons_50: Rehearsal) -> None:
    found = load_results(icons_50.folder)
    assert {name for name, _ in found.predictions} == set(VARIANTS)
    assert {len(some) for (_, split), some in found.predictions.items() if split == "subtype"} == {1}
    assert {len(found.predictions[name, "style"]) for name in ("resnet20", *ARMS)} == {2}
    assert found.predictable("resnet20", "style").all()
    assert {
        ("shake26-96d", split) in found.predictions for split in ("style", "subtype", "subtype-released")
    } == {True}
    assert set(NETWORKS) <= {name for name, split in found.predictions if split == "style"}


def test_the_splits_of_the_real_icons(shared: Path) -> None:
    """The pixels and the numbers of the published set, where it is at hand."""
    from beaufort.studies.icons_50.icon_runs import split_icons

    folder = shared / "data" / "icons"
    if not (folder / "icons50_32.npz").is_file():
        pytest.skip("the pixels of Icons-50 are not there")
    settings = IconSettings(data=f"icons-50:{folder}")
    for split, train, test in (
        ("style", 8735, 1265),
        ("subtype", 8845, 1155),
        ("subtype-released", 8514, 1486),
    ):
        icons = split_icons(settings, split)
        assert (len(icons.train), len(icons.test), len(icons.ids)) == (train, test, test)
        assert icons.train.shape == (3, 32, 32)
