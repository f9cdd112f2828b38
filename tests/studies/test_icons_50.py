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
from beaufort.studies import StudySettings, reproduce
from beaufort.studies.icon_examples import example_sheet
from beaufort.studies.icons_50 import (
    FILE,
    PREDICTABLE,
    SPLITS,
    TITLES,
    IconResults,
    accuracy_table,
    by_group,
    claims,
    confusions,
    confusions_csv,
    difference,
    effects,
    load_results,
    plan,
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
    assert {row["network"] for row in styles} == {TITLES[name] for name in FILE["every_style"]}
    assert {row["held out"] for row in styles} == {"apple", "microsoft", "twitter"}
    page, text = ((icons_50.folder / name).read_text() for name in ("index.html", "README.md"))
    for message in (page, text):
        assert "openmoji: OpenMoji, https://github.com/hfg-gmuend/openmoji, Apache-2.0" in message
        assert ": 1 to 2 for DenseNet-40, MSDNet, " in message
        assert " tasks, without runs that were killed" in message
        assert " --seeds 1 --jobs 1 --rehearse" in message
    assert all(title in page for name, title in TITLES.items() if name != "wrn40-2")


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
    share = np.mean([(one.predicted[0] == one.labels).mean() for one in both])
    rows = sheet(icons_50.folder / "accuracy.csv")
    row = next(row for row in rows if (row["network"], row["held out"]) == ("ResNet-20", SPLITS["style"]))
    assert float(row["accuracy"]) == pytest.approx(100 * share, abs=0.005)
    assert float(row["low"]) < float(row["accuracy"]) + 1e-9 < float(row["high"])
    assert row["paper"] == "58.30"
    assert all("/microsoft_" in id for id in both[0].facts["ids"])


def settings_of(icons: Path, **options: Any) -> StudySettings:
    return StudySettings(study="icons-50", data=(("icons-50", str(icons)),), device="cpu", **options)


def test_a_run_is_stopped_and_resumed(icons: Path, tmp_path: Path) -> None:
    """A deadline that is over lets each call make one step of the training that it is at."""
    from beaufort.studies.trained_arms import make_arm

    settings = settings_of(icons, seeds=1, rehearse=True)
    options: dict[str, Any] = {"settings": settings, "arm": "condensenet86", "split": "style", "seed": 0}
    assert make_arm(tmp_path / "whole", None, **options)
    calls = 1
    while not make_arm(tmp_path / "parts", 0.0, **options):
        calls += 1
    assert calls == 3
    name = "predictions/condensenet86@style-seed0.npz"
    one, other = read_predictions(tmp_path / "whole" / name), read_predictions(tmp_path / "parts" / name)
    np.testing.assert_array_equal(one.predicted, other.predicted)


def test_the_real_thing_is_as_large_as_the_paper(icons: Path) -> None:
    settings = settings_of(icons, seeds=3)

    def count(*only: str) -> int:
        files = [task.file for phase in plan(settings, only, print) for task in phase]
        assert len(set(files)) == len(files)
        return len(files)

    arms = len(FILE["shake_arms"])
    assert count() == 3 * (4 * 4 + 2 * arms + 3 + 3 * 2 + 2 * 2)
    assert count("style") == 12
    assert count("style", "resnext29") == 3
    assert count("shake-500") == 9
    assert count("shake") == 3 * arms
    assert count("styles") == 3 * 2 * 3
    recipes = {name: arm.configured(settings) for name, arm in settings.arms.items()}
    assert recipes["shake26-96d"].epochs == 500
    assert recipes["still26-32d-200"].epochs == 200
    assert recipes["still26-32d-200"].architecture_options["shake"] is False


ICONS = 400


def made_predictions(split: str, share: float, *, unseen: int = 0) -> StudyPredictions:
    """Predictions that are correct on the first fraction of the icons; some of the ten classes are unseen."""
    labels = (np.arange(ICONS) % 10).astype(np.uint8)
    predicted = labels.copy()
    right = round(ICONS * share)
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
            key: [made_predictions(key[1], share, **options) for share in some]
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
    message = claims(results(pairs), [worse])
    assert [one.verdict for one in message] == ["refuted"]


def test_the_network_is_compared_apart_from_shaking_and_length() -> None:
    pairs = {("still26-32d-50", "style"): [0.8, 0.81], ("resnext29", "style"): [0.5, 0.52]}
    (network,) = effects(results(pairs))
    assert network.name == "Shake-Shake's network not shaken, 50 epochs"
    assert network.value == pytest.approx(0.295)
    assert network.verdict == "confirmed"


def test_the_control_has_three_verdicts() -> None:
    for easy, hard, verdict in ((0.97, 0.55, "confirmed"), (0.6, 0.7, "refuted"), (0.7, 0.6, "undecided")):
        both = {("resnet20", "traditional"): [easy, easy], ("resnet20", "style"): [hard, hard]}
        (message,) = claims(results(both), [])
        assert message.verdict == verdict
        assert message.measured.endswith("2 runs of each")
        (alone,) = claims(results({key: some[:1] for key, some in both.items()}), [])
        assert alone.verdict == "undecided"
        assert alone.measured.endswith("one run of each")


def test_icons_that_cannot_be_right_are_counted_apart() -> None:
    found = results({("resnet20", "subtype-released"): [0.5, 0.6]}, unseen=2)
    cells = accuracy_table(found).rows["ResNet-20"]
    assert cells[SPLITS["subtype-released"]].printed == FILE["arms"]["resnet20"]["paper"]["subtype-released"]
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


def test_what_a_folder_has(icons_50: Rehearsal) -> None:
    found = load_results(icons_50.folder)
    assert {name for name, _ in found.predictions} == set(TITLES) - {"wrn40-2"}
    assert {len(some) for (_, split), some in found.predictions.items() if split == "subtype"} == {1}
    assert {len(found.predictions[name, "style"]) for name in ("resnet20", *FILE["shake_arms"])} == {2}
    assert found.predictable("resnet20", "style").all()
    assert {
        ("shake26-96d", split) in found.predictions for split in ("style", "subtype", "subtype-released")
    } == {True}
    assert set(FILE["networks"]) <= {name for name, split in found.predictions if split == "style"}


def test_the_splits_of_the_real_icons(shared: Path) -> None:
    """The pixels and the numbers of the published set, where it is at hand."""
    from beaufort.studies.trained_arms import held_out_images, training_images

    folder = shared / "data" / "icons"
    if not (folder / "icons50_32.npz").is_file():
        pytest.skip("the pixels of Icons-50 are not there")
    settings = settings_of(folder)
    for split, train, test in (
        ("style", 8735, 1265),
        ("subtype", 8845, 1155),
        ("subtype-released", 8514, 1486),
    ):
        ((images, ids),) = held_out_images(settings, split).values()
        assert (len(training_images(settings, split)), len(images), len(ids)) == (train, test, test)
        assert images.shape == (3, 32, 32)
