"""A rehearsal of the study of enhancements makes every file, resumes, and its statistics are right."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.evaluation import LazyModel
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import mcnemar
from beaufort.models import ModelFileError
from beaufort.models.onnx_graph import open_graph, renormalizing_lines
from beaufort.results import evaluate
from beaufort.studies import StudySettings, engine, reproduce
from beaufort.studies.arm_metrics import Normalizer, alexnet, metrics_of_arm, normalizer_of
from beaufort.studies.enhancements import (
    NETWORKS,
    EnhancementArms,
    load_arms,
    photo_predictions,
    plan,
    study_files,
)
from beaufort.studies.enhancements import (
    find_enhancement as find,
)
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions, read_predictions, write_predictions
from beaufort.studies.questions import find_flips, signed
from beaufort.suites import get_suite
from beaufort.testbed.styles import styles_in_testbed
from beaufort.testing._contracts import example_image
from beaufort.training.architectures import build, network_size
from tests.commands import shows
from tests.studies.arm_statistics import difference, level_of
from tests.studies.rehearsal import Rehearsal

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; the extra onnx has it")

pytestmark = pytest.mark.xdist_group("imagenet-c-enhancements")

STUDY_NAME = "imagenet-c-enhancements"
WHOLE = StudySettings(study=STUDY_NAME, seeds=5)
SMALL = replace(WHOLE, rehearse=True)
BASE, CONTROL, CLEAN = "resnet20", "tuned-plain", "clean"
QUESTIONS = tuple(WHOLE.file["questions"])


def test_a_rehearsal_decides_every_question(enhancements: Rehearsal) -> None:
    page = (enhancements.folder / "README.md").read_text(encoding="utf-8")
    html = (enhancements.folder / "index.html").read_text(encoding="utf-8")
    assert "its numbers mean nothing" in page
    assert "--only page --rehearse\n" in page
    assert "not run" not in page
    for design, texts in WHOLE.file["questions"].items():
        question = texts["question"]
        assert f"## {question}" in page
        assert question in html
        assert (enhancements.folder / f"{design}.svg").read_text(encoding="utf-8").startswith("<svg")
        if design == "style":
            continue
        rows = table(enhancements.folder / f"{design}.csv")
        assert {"clean error", "mCE", "noise CE", "blur CE", "digital CE"} <= {row["metric"] for row in rows}
        assert any(row["difference"] for row in rows)
        flips = table(enhancements.folder / f"{design}-conditions.csv")
        assert {row["condition"] for row in flips} == set(SMALL.conditions(extra=False))
    assert {row["corruption"] for row in table(enhancements.folder / "style.csv")} == {
        *SMALL.corruptions,
        "stylize",
    }
    assert "an error of" in page
    matrix = table(enhancements.folder / "transfer-matrix.csv")
    assert [row["tuned on"] for row in matrix] == list(SMALL.corruptions)
    assert set(matrix[0]) == {"tuned on", *SMALL.corruptions}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("which", "arm", "image_filter", "condition"),
    [
        ("filters", "plain", "", "gaussian_noise@3"),
        ("filters", "nlm-h0.8-above0.03", "nlm:h=0.8,above=0.03", "gaussian_noise@3"),
        ("filters", "clahe", "clahe:clip=2,tiles=8", "clean"),
        ("crops", "ten-crop", "ten-crop:side=256", "contrast@3"),
    ],
)
def test_predictions_on_photos_are_those_of_a_run(
    enhancements: Rehearsal, which: str, arm: str, image_filter: str, condition: str
) -> None:
    suite = get_suite("imagenet-c")
    side = 256 if which == "crops" else 224
    steps = tuple(step._replace(side=side) if step.action == "crop" else step for step in suite.prepare)
    name, _, severity = condition.partition("@")
    small = replace(
        suite,
        corruptions=("contrast",) if name == "clean" else (name,),
        severities=(int(severity or 3),),
        prepare=steps,
        baseline=None,
        metrics=("mean_accuracy",),
    )
    options = {
        "classes": "imagenet-1k",
        "label_space": "imagenet-1k",
        **({"filter": image_filter} if image_filter else {}),
    }
    model = LazyModel(f"onnx:{enhancements.data['networks']}/tiny.onnx", options)
    found = evaluate(model, small, enhancements.data["imagenet"])
    stored = found.scores(calibration=False).results.predictions(found.results[0].model)
    row = next(i for i, one in enumerate(stored.conditions) if (one.corruption or "clean") == name)
    here = photo_predictions(enhancements.folder, which, SMALL)["tiny"][arm]
    np.testing.assert_array_equal(here.row(condition), stored.correct[row])


def test_arms_are_read(enhancements: Rehearsal) -> None:
    arms = load_arms(enhancements.folder, SMALL)
    assert arms.trained[BASE].mean("mCE") == pytest.approx(100)  # it divides itself
    assert {"plain", "nlm-h0.8", "clahe-renormalized", "ten-crop"} <= set(arms.photos["tiny"])
    findings = [find(arms, question) for question in QUESTIONS]
    assert {one.verdict for one in findings} <= {"confirmed", "refuted", "undecided"}


def test_every_arm_has_its_control() -> None:
    settings = replace(WHOLE, seeds=2)
    arms = settings.arms
    for arm in arms.values():
        assert not arm.start or arm.start in arms
        if not arm.tests:
            arm.configured(settings)  # a recipe that can be read
    base, *others = (
        network_size(build(recipe.architecture, recipe.architecture_options, classes=10))
        for recipe in (arms[name].configured(settings) for name in (BASE, "multigrid", "msdnet"))
    )
    for other, most in zip(others, (0.1, 0.25), strict=True):
        assert abs(other.parameters / base.parameters - 1) < most
        assert abs(other.multiply_adds / base.multiply_adds - 1) < most
    assert sum(name.startswith("stability-") for name in arms) == 11
    assert sum(name.startswith("on-") for name in arms) == 17
    for design in ("stability", "transfer", "clahe", "augmentation"):
        files = [task.file for phase in plan(settings, (design,), print) for task in phase]
        assert f"cifar/{CONTROL}-seed0.npz" in files
        assert len(set(files)) == len(files)
    *_, ten = plan(settings, ("ten-crop",), print)
    made = [[f"models/{BASE}-seed{seed}/training.json"] for seed in (0, 1)]
    requested = [[f"cifar/{name}-seed{seed}.npz" for name in (BASE, "ten-crop")] for seed in (0, 1)]
    assert [task.file for task in ten] == [*made[0], *requested[0], *made[1], *requested[1]]
    assert [task.after for task in ten] == [(), *(tuple(made[0]),) * 2, (), *(tuple(made[1]),) * 2]
    assert [task.serves for task in ten] == [tuple(requested[0]), (), (), tuple(requested[1]), (), ()]


def test_all_arms_come_before_a_second_seed() -> None:
    phases = plan(replace(WHOLE, seeds=3), ("stability", "aggregation"), print)
    tasks = [task for phase in phases for task in phase]
    seeds = [task.options["seed"] for task in tasks]
    assert seeds == sorted(seeds)
    assert len({task.file for task in tasks}) == len(tasks) == 3 * seeds.count(0)


def test_a_study_has_its_own_folder_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: dict[str, Any] = {}
    monkeypatch.setattr(
        engine,
        "run_study",
        lambda _, folder, settings, *__: requested.update(folder=folder, seeds=settings.seeds),
    )
    reproduce("imagenet-c-enhancements")
    assert requested == {"folder": Path("results/enhancements"), "seeds": 5}
    reproduce("imagenet-c-enhancements", "elsewhere", seeds=2)
    assert requested == {"folder": Path("elsewhere"), "seeds": 2}
    reproduce("icons-50")
    assert requested == {"folder": Path("results/icons-50"), "seeds": 3}


def made_predictions(seed: int, worse: float = 0.0) -> StudyPredictions:
    rng = np.random.default_rng(seed)
    names = SMALL.conditions()
    hard = np.linspace(0.1, 0.6, len(names))[:, None] + worse
    right = (rng.random((len(names), 400)) > hard).astype(np.uint8)
    return StudyPredictions(names, right, np.ones(400, np.uint8), {})


def test_shares_add_up_to_the_metrics() -> None:
    base, own = made_predictions(0), made_predictions(1)
    fractions = metrics_of_arm([own], normalizer_of(base), SMALL)
    wrong, other = (1 - one.correct.mean(axis=1) for one in (own, base))
    rows = {
        name: [i for i, c in enumerate(own.conditions) if c.startswith(f"{name}@")]
        for name in SMALL.corruptions
    }
    ces = [wrong[rows[name]].sum() / other[rows[name]].sum() for name in SMALL.corruptions]
    assert level_of(fractions, "mCE").value == pytest.approx(100 * np.mean(ces))
    assert level_of(fractions, "clean error").value == pytest.approx(100 * wrong[own.conditions.index(CLEAN)])
    relative = [
        (wrong[rows[name]] - wrong[0]).sum() / (other[rows[name]] - other[0]).sum()
        for name in SMALL.corruptions
    ]
    assert level_of(fractions, "relative mCE").value == pytest.approx(100 * np.mean(relative))


def test_differences_are_paired_and_cover_seeds() -> None:
    base = normalizer_of(made_predictions(0))
    assert isinstance(base, Normalizer)
    controls, arms = ([made_predictions(seed, shift) for seed in range(3)] for shift in (0.0, 0.1))
    one, other = metrics_of_arm(controls, base, SMALL), metrics_of_arm(arms, base, SMALL)
    worse = difference(one, other)
    assert worse.low > 0
    assert worse.low < worse.value < worse.high
    same = difference(one, one)
    assert same.value == 0
    assert same.low < 0 < same.high  # 400 images that do not change say little about the next
    backwards = difference(other, one)
    assert backwards.value == pytest.approx(-worse.value)


def test_the_published_errors_of_alexnet_divide() -> None:
    whole = alexnet(WHOLE)
    known = get_baseline("alexnet")
    fog = known.select(["fog"], (1, 2, 3, 4, 5))["fog"]
    assert whole.sums["fog"] == pytest.approx(np.sum(fog))
    mean = known.select(["spatter"], (1, 2, 3, 4, 5))["spatter"]
    assert whole.sums["spatter"] == pytest.approx(5 * float(np.asarray(mean, float).mean()))
    assert alexnet(SMALL).sums["contrast"] < 1 < whole.sums["contrast"]


def test_data_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="imagenet not found: /nowhere"):
        reproduce("imagenet-c-enhancements", tmp_path, data={"imagenet": "/nowhere"}, rehearse=True)
    with pytest.raises(OptionError, match=r"\bnlm\b.*--data imagenet="):
        reproduce("imagenet-c-enhancements", tmp_path / "none", only=["nlm"])
    empty = {"imagenet": str(tmp_path), "networks": str(tmp_path)}
    with pytest.raises(OptionError, match=r"networks.* resnet50_224\.onnx"):
        reproduce("imagenet-c-enhancements", tmp_path / "none", only=["nlm"], data=empty)
    assert not (tmp_path / "none").exists()


def test_questions_without_data_are_logged(tmp_path: Path) -> None:
    lines: list[str] = []
    reproduce("imagenet-c-enhancements", tmp_path, only=["style"], log=lines.append)
    assert lines[0].startswith("style without photos: ")


def two_arms(changed: dict[str, float]) -> EnhancementArms:
    """A control of photos, and an arm whose errors under some conditions are more or fewer."""
    settings = WHOLE
    names = settings.conditions()
    rng = np.random.default_rng(0)
    place = rng.random((len(names), 160))
    hard = np.full(len(names), 0.5)
    made = {}
    for arm, shift in (("plain", {}), ("nlm-h0.8", changed)):
        levels = hard + np.array([shift.get(name.partition("@")[0], shift.get("", 0.0)) for name in names])
        right = (place > levels[:, None]).astype(np.uint8)
        found = StudyPredictions(names, right, np.ones(160, np.uint8), {})
        made[arm] = metrics_of_arm([found], alexnet(settings), settings)
    return EnhancementArms({"resnet50_224": made}, settings, {})


NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({**dict.fromkeys(NOISE, -0.1), "": 0.1}, "confirmed"),
        ({"": -0.1}, "refuted"),
        ({"": 0.1}, "undecided"),  # noise loses, too: not what the paper says, but no gain either
        ({**dict.fromkeys(NOISE, -0.3), "": 0.03}, "refuted"),
    ],
)
def test_nlm_is_judged_by_mce_noise_and_the_rest(changed: dict[str, float], verdict: str) -> None:
    found = find(two_arms(changed), "nlm")
    assert found.verdict == verdict
    assert "ΔmCE" in found.measured
    assert found.sentence.endswith(".")
    assert found.sentence.count(". ") == 0


def test_flips_are_mcnemars_with_holms_rule() -> None:
    arms = two_arms({"fog": -0.2, "snow": 0.2}).photos["resnet50_224"]
    flips = {one.condition: one for one in find_flips(arms["plain"], arms["nlm-h0.8"])}
    assert set(flips) == set(WHOLE.conditions(extra=False))
    before, after = (arms[name] for name in ("plain", "nlm-h0.8"))
    row = before.conditions.index("fog@2")
    assert before.right is not None
    assert after.right is not None
    gained = int((after.right[row] & ~before.right[row]).sum())
    lost = int((before.right[row] & ~after.right[row]).sum())
    assert (flips["fog@2"].gained, flips["fog@2"].lost) == (gained, lost)
    assert mcnemar(lost, gained) < flips["fog@2"].p < 0.05
    assert {name for name, one in flips.items() if one.verdict == "better"} == {
        f"fog@{s}" for s in range(1, 6)
    }
    assert {name for name, one in flips.items() if one.verdict == "worse"} == {
        f"snow@{s}" for s in range(1, 6)
    }
    assert flips["clean"].p == 1


def test_settings_are_selected_on_the_extra_corruptions_alone() -> None:
    extra = dict.fromkeys(WHOLE.extra, -0.2)
    first, second = two_arms({"": -0.2, **dict.fromkeys(extra, 0.2)}), two_arms({"": 0.2, **extra})
    fractions = {
        "plain": first.photos["resnet50_224"]["plain"],
        "nlm-h0.4": first.photos["resnet50_224"]["nlm-h0.8"],
        "nlm-h0.8": second.photos["resnet50_224"]["nlm-h0.8"],
    }
    found = find(EnhancementArms({"resnet50_224": fractions}, WHOLE, {}), "nlm")
    assert shows(found.measured, "best", "extra corruptions", "nlm-h0.8")


def test_other_networks_are_reported_beside_the_deciding_one() -> None:
    better, worse = (two_arms({"": change}).photos["resnet50_224"] for change in (-0.2, 0.2))
    found = find(EnhancementArms({"resnet50_224": better, "other": worse}, WHOLE, {}), "nlm")
    first, second = (row.differences["mCE"] for row in found.rows if row.differences)
    assert found.verdict == "refuted"
    assert first.high < 0 < second.low
    assert shows(found.measured, "ΔmCE", "nlm-h0.8", f"plain {signed(second)} (other)")


def test_seeds_after_a_gap_are_left_out(enhancements: Rehearsal, tmp_path: Path) -> None:
    shutil.copytree(enhancements.folder / "cifar", tmp_path / "cifar")
    (found,) = predictions_by_seed(tmp_path, "cifar")[BASE]
    for seed in (1, 3):
        facts = {**found.facts, "seed": seed}
        path = tmp_path / "cifar" / f"{BASE}-seed{seed}.npz"
        write_predictions(path, StudyPredictions(found.conditions, found.predicted, found.labels, facts))
    arms = load_arms(tmp_path, SMALL)
    assert arms.trained[BASE].seeds == 2
    assert arms.left_out == [f"{BASE}, seed 3"]
    shutil.copy(enhancements.folder / "study.json", tmp_path)
    message = dict(study_files(tmp_path, SMALL))["README.md"].decode()
    assert shows(message, "not used", f"{BASE}, seed 3")
    assert "not used" not in (enhancements.folder / "README.md").read_text().partition("\n## ")[0]


def test_missing_start_networks_are_trained_again(enhancements: Rehearsal, tmp_path: Path) -> None:
    """Predictions are stored with results, weights are not; training again gives the same network."""
    folder = tmp_path / "again"
    shutil.copytree(enhancements.folder, folder, ignore=shutil.ignore_patterns("models"))
    file = f"cifar/{CONTROL}-seed0.npz"
    (folder / file).unlink()
    outcome = enhancements.again(folder, only=["stability"])
    assert (outcome.done, outcome.left) == (2, 0)  # the network, and what is fine-tuned
    before, after = (read_predictions(one / file) for one in (enhancements.folder, folder))
    assert np.array_equal(before.correct, after.correct)
    assert before.facts["losses"] == after.facts["losses"]


def test_intermediate_files_of_finished_tasks_are_not_recreated(
    enhancements: Rehearsal, tmp_path: Path
) -> None:
    folder = tmp_path / "again"
    shutil.copytree(enhancements.folder, folder, ignore=shutil.ignore_patterns("renormalized"))
    assert enhancements.again(folder, only=["nlm"]).done == 0
    (folder / "photos" / "filters" / "clean.npz").unlink()
    outcome = enhancements.again(folder, only=["nlm"])
    assert outcome.left == 0
    assert outcome.done > 1
    assert next((folder / "photos" / "renormalized").iterdir())


def test_correctness_is_stored_as_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    right = (rng.random((11, 10003)) < 0.7).astype(np.uint8)
    names = tuple(f"fog@{place}" for place in range(11))
    bits = StudyPredictions(names, right, np.ones(10003, np.uint8), {"seed": 1})
    classes = StudyPredictions(names, right + 1, np.ones(10003, np.uint8), {"seed": 1})
    for one, name in ((bits, "bits"), (classes, "classes")):
        write_predictions(tmp_path / name, one)
        found = read_predictions(tmp_path / name)
        assert np.array_equal(found.predicted, one.predicted)
        assert np.array_equal(found.labels, one.labels)
        assert (found.conditions, found.facts) == (one.conditions, one.facts)
    sizes = [(tmp_path / name).stat().st_size for name in ("bits", "classes")]
    assert sizes[0] < sizes[1]


def test_damaged_files_are_named(tmp_path: Path) -> None:
    right = (np.random.default_rng(0).random((3, 500)) < 0.7).astype(np.uint8)
    write_predictions(
        tmp_path / "a", StudyPredictions(("clean", "b", "c"), right, np.ones(500, np.uint8), {})
    )
    whole = (tmp_path / "a").read_bytes()
    broken = [whole[:size] for size in range(0, len(whole), 7)]
    for place in range(80, 160, 9):  # of what is compressed
        broken.append(bytes([*whole[:place], whole[place] ^ 64, *whole[place + 1 :]]))
    path = tmp_path / "broken-seed0.npz"
    for content in (*broken, b"[]", (1).to_bytes(4, "little"), b""):
        path.write_bytes(content)
        with pytest.raises(BeaufortError, match=r"predictions from .*broken-seed0\.npz"):
            read_predictions(path)
    with pytest.raises(BeaufortError, match=r"broken-seed0\.npz"):
        predictions_by_seed(tmp_path, "")
    path.rename(tmp_path / "broken-seedling.npz")
    assert predictions_by_seed(tmp_path, "") == {}


def test_the_testbed_decides_what_it_can() -> None:
    arms = EnhancementArms({}, WHOLE, {})
    by_design = {question: find(arms, question) for question in QUESTIONS}
    style = next(one for one in styles_in_testbed() if one.network == "resnet50")
    assert (round(style.style, 1), style.worst, round(style.worst_ce, 1)) == (85.9, "glass_blur", 88.6)
    assert "hardest for 2 of 77 networks" in by_design["style"].measured
    assert by_design["style"].verdict == "refuted"
    assert "densenet161 −3.7 [−4.6, −2.7]" in by_design["aggregation"].measured
    assert shows(by_design["aggregation"].measured, "mCE falls", "resnet18", "resnet152", "densenet121")
    assert by_design["aggregation"].verdict == by_design["small"].verdict == "undecided"
    assert {
        one.verdict for design, one in by_design.items() if design not in ("style", "small", "aggregation")
    } == {"not run"}


def test_a_graph_predicts_as_onnx_runtime(photos_and_cifar: dict[str, str], tmp_path: Path) -> None:
    path = Path(photos_and_cifar["networks"]) / "tiny.onnx"
    images = np.random.default_rng(0).random((2, 3, 224, 224), np.float32)
    session = onnxruntime.InferenceSession(str(path))
    wanted = session.run(None, {session.get_inputs()[0].name: images})[0]
    np.testing.assert_allclose(open_graph(path)(torch.from_numpy(images)).detach(), wanted, atol=1e-3)
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(ModelFileError, match=r"bad\.onnx"):
        open_graph(tmp_path / "bad.onnx")


def test_networks_for_photos_predict_as_onnx_runtime(shared: Path) -> None:
    images = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    for name in NETWORKS[1:]:
        path = shared / "data" / "imagenet_models" / f"{name}.onnx"
        session = onnxruntime.InferenceSession(str(path))
        wanted = session.run(None, {session.get_inputs()[0].name: images})[0].reshape(1, -1)
        with torch.no_grad():
            np.testing.assert_allclose(open_graph(path)(torch.from_numpy(images)), wanted, atol=1e-4)


def test_renormalized_outputs_have_the_moments_of_plain_photos(photos_and_cifar: dict[str, str]) -> None:
    graph = open_graph(Path(photos_and_cifar["networks"]) / "tiny.onnx")
    plain = torch.from_numpy(np.stack([example_image(224, 224, 3, variant=i) for i in range(6)]))
    plain = plain.permute(0, 3, 1, 2).float() / 255
    shown = (plain * 0.3 + 0.1).clamp(0, 1)
    lines = renormalizing_lines(graph, plain, shown)
    seen: dict[str, list[torch.Tensor]] = {}

    def keep(name: str, output: torch.Tensor) -> torch.Tensor:
        seen.setdefault(name, []).append(output)
        return output

    graph(plain, keep)
    graph.scaled(lines)(shown, keep)
    for first, second in seen.values():
        for moment in (torch.mean, torch.std):
            wanted = moment(first, dim=(0, 2, 3))
            torch.testing.assert_close(moment(second, dim=(0, 2, 3)), wanted, rtol=1e-3, atol=1e-3)
    same = renormalizing_lines(graph, plain, plain)
    for factor, offset in same.values():
        torch.testing.assert_close(factor, torch.ones_like(factor))
        torch.testing.assert_close(offset, torch.zeros_like(offset), atol=1e-4, rtol=0)
