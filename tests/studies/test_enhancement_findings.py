"""Predictions with known effects give the right numbers, intervals and verdicts."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import Estimate, resample
from beaufort.studies import StudySettings, arm_metrics, reproduce
from beaufort.studies.arm_metrics import Contributions, alexnet, intervals, metrics_of_arm, normalizer_of
from beaufort.studies.enhancements import (
    NETWORKS,
    EnhancementArms,
    condition_file,
    load_arms,
    photo_conditions,
    photo_gap,
)
from beaufort.studies.enhancements import (
    find_enhancement as find,
)
from beaufort.studies.predictions import StudyPredictions, write_predictions
from beaufort.studies.question_pages import draw_finding, figure_metrics, metrics_csv
from beaufort.studies.questions import runs_text, signed
from beaufort.testbed.styles import draw_styles, styles_in_testbed
from tests.commands import shows
from tests.studies.arm_statistics import difference

WHOLE = StudySettings(study="imagenet-c-enhancements", seeds=5)
SMALL_IMAGES = WHOLE.file["small_images"]
NAMES = WHOLE.conditions()
BASE, CONTROL, CLEAN = "resnet20", "tuned-plain", "clean"
GROUP = "CIFAR-10"
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")

Effect = Mapping[str, float]
"""More errors by corruption or `clean`; those of all others at the empty name."""


def network(effect: Effect, *, seed: int = 0, images: int = 400, luck: float = 0.002) -> StudyPredictions:
    """A network that errs on 10 % of clean images and 20 to 40 % of corrupted ones, but for an effect."""
    easy = np.random.default_rng(0).random((len(NAMES), images))
    shift = luck * (seed % 3 - 1)
    errors = []
    for name in NAMES:
        corruption, _, severity = name.partition("@")
        hard = 0.1 if corruption == CLEAN else 0.15 + 0.05 * int(severity)
        errors.append(hard + effect.get(corruption, effect.get("", 0.0)) + shift)
    right = easy >= np.array(errors)[:, None]
    return StudyPredictions(NAMES, right.astype(np.uint8), np.ones(images, np.uint8), {"seed": seed})


def trained(
    effects: Mapping[str, Effect], *, seeds: int = 3, images: int = 400, **other: int
) -> EnhancementArms:
    """Arms on CIFAR-10, and the two that others are compared with; some with other numbers of seeds."""
    made = {
        arm: [network(effect, seed=seed, images=images) for seed in range(other.get(arm, seeds))]
        for arm, effect in {BASE: {}, CONTROL: {}, **effects}.items()
    }
    base = normalizer_of(made[BASE][0])
    return arms_of(cifar={arm: metrics_of_arm(some, base, WHOLE) for arm, some in made.items()})


def arms_of(
    photos: Mapping[str, Any] | None = None, cifar: Mapping[str, Any] | None = None
) -> EnhancementArms:
    """Arms on photos by network, and on CIFAR-10."""
    return EnhancementArms({**(photos or {}), GROUP: cifar or {}}, WHOLE, {})


def everywhere(change: float, **others: float) -> dict[str, float]:
    return {"": change, **others}


GRID = [f"stability-{limit:g}-w{weight:g}" for limit in (0.01, 0.05, 0.1) for weight in (0.01, 0.05, 0.1)]
ON = {f"on-{name}": name for name in WHOLE.corruptions}
TEN = WHOLE.corruptions[:10]


def test_the_grid_is_the_planned_one() -> None:
    planned = WHOLE.arms
    assert set(GRID) <= set(planned)
    assert {"stability-0.05-w1", "stability-0.05-w10", "noise-0.05"} <= set(planned)
    assert set(WHOLE.matching(["stability-*-w0.*"])) == set(GRID)


@pytest.mark.parametrize(
    ("question", "effects", "verdict"),
    [
        ("clahe", {"clahe-tuned": everywhere(-0.1)}, "confirmed"),
        ("clahe", {"clahe-tuned": everywhere(0.1)}, "refuted"),
        ("clahe", {"clahe-tuned": {}}, "undecided"),
        ("clahe", {"clahe-tuned": everywhere(0.02, **dict.fromkeys(TEN, -0.15))}, "confirmed"),
        ("clahe", {"clahe-tuned": everywhere(0.02, **dict.fromkeys(TEN[:9], -0.15))}, "undecided"),
        ("clahe", {}, "not run"),
        ("ten-crop", {"ten-crop": everywhere(0.0, clean=-0.05)}, "confirmed"),
        ("ten-crop", {"ten-crop": everywhere(-0.05)}, "undecided"),  # a gain of a point is not ruled out
        ("ten-crop", {"ten-crop": everywhere(-0.05, clean=0.05)}, "refuted"),
        ("ten-crop", {"ten-crop": everywhere(0.05, clean=0.0)}, "undecided"),
        ("stability", dict.fromkeys(GRID, everywhere(0.05)), "confirmed"),
        ("stability", {**dict.fromkeys(GRID, everywhere(0.05)), GRID[4]: everywhere(-0.1)}, "refuted"),
        (
            "stability",
            {**dict.fromkeys(GRID, everywhere(0.1)), GRID[8]: everywhere(0.1, **dict.fromkeys(NOISE, -0.1))},
            "refuted",
        ),
        (
            "stability",
            dict.fromkeys(GRID, everywhere(0.0)),
            "undecided",
        ),  # a gain of a point is not ruled out
        ("stability", dict.fromkeys(GRID[:8], everywhere(0.05)), "undecided"),  # one is missing
        ("stability", {"stability-0.05-w10": everywhere(-0.1)}, "not run"),  # no setting of the paper
        (
            "stability",
            {**dict.fromkeys(GRID, everywhere(0.05)), "stability-0.05-w10": everywhere(-0.1)},
            "confirmed",
        ),
        ("multiscale", {"multigrid": everywhere(-0.1), "msdnet": {}}, "confirmed"),
        ("multiscale", {"multigrid": everywhere(-0.1), "msdnet": everywhere(-0.2)}, "refuted"),
        ("multiscale", {"multigrid": everywhere(0.1), "msdnet": everywhere(0.2)}, "refuted"),
        ("multiscale", {"multigrid": everywhere(-0.1), "msdnet": everywhere(-0.1)}, "undecided"),
        ("multiscale", {"multigrid": everywhere(-0.1)}, "not run"),
        ("shake", {"shake26-no-shake": {}, "shake26-shake": everywhere(-0.1)}, "confirmed"),
        ("shake", {"shake26-no-shake": {}, "shake26-shake": everywhere(0.1)}, "refuted"),
        ("shake", {"shake26-no-shake": {}, "shake26-shake": {}}, "undecided"),
        ("shake", {"shake26-shake": everywhere(-0.1)}, "not run"),
        ("augmentation", {"augmix": everywhere(-0.1), "prime": {}}, "confirmed"),
        ("augmentation", {"augmix": everywhere(0.1)}, "refuted"),
        ("transfer", {arm: {name: -0.15} for arm, name in ON.items()}, "confirmed"),
        ("transfer", dict.fromkeys(ON, everywhere(-0.15)), "refuted"),
        (
            "transfer",  # tuning hurts, and others more: no help that could be compared
            {arm: everywhere(0.15, **{name: 0.05}) for arm, name in ON.items()},
            "undecided",
        ),
    ],
)
def test_known_effects_are_judged_by_the_rules(
    question: str, effects: Mapping[str, Effect], verdict: str
) -> None:
    found = find(trained(effects), question)
    assert found.verdict == verdict
    if verdict != "not run":
        assert SMALL_IMAGES in found.sentence
        assert "CIFAR-10, " in found.measured
        assert draw_finding(found, figure_metrics(WHOLE, found.name)).svg().startswith("<svg")


@pytest.mark.parametrize(
    ("question", "arm", "effect"),
    [
        ("clahe", "clahe-tuned", everywhere(-0.1)),
        ("augmentation", "augmix", everywhere(-0.1)),
        ("ten-crop", "ten-crop", everywhere(0.0, clean=-0.05)),
    ],
)
def test_one_run_decides_nothing(question: str, arm: str, effect: Effect) -> None:
    found = find(trained({arm: effect}, seeds=1), question)
    assert found.verdict == "undecided"
    assert "one run" in found.sentence
    assert find(trained({arm: effect}, seeds=3), question).verdict == "confirmed"


@pytest.mark.parametrize(
    ("question", "effects", "counts", "verdict"),
    [
        (
            "stability",  # one cell has been trained once, another one decides
            {**dict.fromkeys(GRID, everywhere(0.05)), GRID[4]: everywhere(-0.1)},
            {GRID[0]: 1},
            "refuted",
        ),
        (
            "stability",  # the only gain is that of a single training
            {**dict.fromkeys(GRID, everywhere(0.05)), GRID[4]: everywhere(-0.1)},
            {GRID[4]: 1},
            "undecided",
        ),
        ("stability", dict.fromkeys(GRID, everywhere(0.05)), {GRID[4]: 1}, "undecided"),
        ("multiscale", {"multigrid": everywhere(0.1), "msdnet": {}}, {"msdnet": 1}, "refuted"),
        ("multiscale", {"multigrid": everywhere(-0.1), "msdnet": {}}, {"msdnet": 1}, "undecided"),
        (
            "multiscale",  # refuted by a single MSDNet alone
            {"multigrid": everywhere(-0.1), "msdnet": everywhere(-0.2)},
            {"msdnet": 1},
            "undecided",
        ),
    ],
)
def test_single_run_cannot_decide_run_dependent_claims(
    question: str,
    effects: Mapping[str, Effect],
    counts: Mapping[str, int],
    verdict: str,
) -> None:
    found = find(trained(effects, **counts), question)
    assert found.verdict == verdict
    assert "one decides nothing" in found.measured or "one run each" in found.measured


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (GRID, f"({GRID[0]}) to +"),
        (GRID, "below 0 for 1 and above for 8 (CIFAR-10, 3 runs each)"),
        (GRID[:1], f"ΔmCE of {GRID[0]} to tuned-plain −"),
    ],
)
def test_settings_are_counted(cells: Sequence[str], message: str) -> None:
    effects = {**dict.fromkeys(cells, everywhere(0.05)), GRID[0]: everywhere(-0.1)}
    assert message in find(trained(effects), "stability").measured


def test_settings_are_selected_by_differences() -> None:
    base = normalizer_of(network({}))
    luck = (everywhere(-0.05), everywhere(0.05))  # of the start that all arms have
    once, twice = (
        [network({"": lucky[""] + change}, seed=seed) for seed, lucky in enumerate(luck[:seeds])]
        for change, seeds in ((0.0, 1), (-0.02, 2))
    )
    control = [network(lucky, seed=seed) for seed, lucky in enumerate(luck)]
    made = {CONTROL: control, GRID[0]: once, GRID[1]: twice}
    cifar = {arm: metrics_of_arm(some, base, WHOLE) for arm, some in made.items()}
    assert cifar[GRID[0]].mean("extra CE") < cifar[GRID[1]].mean("extra CE")
    found = find(arms_of(cifar=cifar), "stability")
    assert shows(found.measured, "best", "extra corruptions", f"{GRID[1]}, ")


def test_runs_are_counted() -> None:
    assert runs_text(5, 5) == "5 runs each"
    assert runs_text(3, 5) == "3 to 5 runs each"
    assert "1 to 5 runs" in runs_text(1, 5)
    assert "one run" in runs_text(1)


def test_photos_do_not_decide_a_question_about_training() -> None:
    fractions = {
        arm: metrics_of_arm([network(everywhere(change))], alexnet(WHOLE), WHOLE)
        for arm, change in (("plain", 0.0), ("clahe", 0.1))
    }
    found = find(arms_of({"resnet50_224": fractions}), "clahe")
    assert found.verdict == "not run"
    assert SMALL_IMAGES not in found.sentence


def test_small_images_are_a_caveat_beside_photos() -> None:
    crops = {
        arm: metrics_of_arm([network(everywhere(change))], alexnet(WHOLE), WHOLE)
        for arm, change in (("middle-crop", 0.0), ("ten-crop", -0.05))
    }
    cifar = trained({"ten-crop": {}}).trained
    found = find(arms_of({"resnet50_224": crops}, cifar), "ten-crop")
    assert "(resnet50_224); Δ clean error" in found.measured
    assert found.caveat == SMALL_IMAGES


def test_every_network_counts_for_ten_crops() -> None:
    """The verdict is about all networks, not the first one alone."""
    helped = everywhere(0.0, clean=-0.05)

    def photos(**effects: Effect) -> EnhancementArms:
        networks = {
            name: {
                arm: metrics_of_arm([network(change, images=2000)], alexnet(WHOLE), WHOLE)
                for arm, change in (("middle-crop", {}), ("ten-crop", effect))
            }
            for name, effect in effects.items()
        }
        return arms_of(networks)

    assert find(photos(resnet50_224=helped, other=helped), "ten-crop").verdict == "confirmed"
    contradicted = find(photos(resnet50_224=helped, other=everywhere(-0.05, clean=0.05)), "ten-crop")
    assert contradicted.verdict == "refuted"
    assert contradicted.measured.index("resnet50_224") < contradicted.measured.index("other")


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_intervals_cover_images_and_runs(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        arm_metrics, "resample", lambda values, seed: resample(values, resamples=500, seed=seed)
    )
    monkeypatch.setattr(arm_metrics, "RESAMPLES", 500)
    rng = np.random.default_rng(seeds)
    inside = 0
    for _ in range(200):
        values = rng.normal(0, 1.5, (seeds, 1)) + rng.normal(0, 10, 500) + rng.normal(0, 10, (seeds, 500))
        found = intervals({"it": Contributions(values, (-100, 100))})["it"]
        inside += found.low <= 0 <= found.high
    assert inside >= 181  # 95 % of 200, less three deviations


def test_one_image_decides_nothing() -> None:
    base = alexnet(WHOLE)
    bad, good = (
        metrics_of_arm(
            [StudyPredictions(NAMES, np.full((len(NAMES), 1), right, np.uint8), np.ones(1, np.uint8), {})],
            base,
            WHOLE,
        )
        for right in (0, 1)
    )
    change = difference(bad, good)
    assert change.value < -100
    assert change.high > 0
    for metric, rows in good.rows.items():
        found = intervals({metric: rows})[metric]
        assert found.low < found.high


def test_images_cannot_add_more_than_their_ends() -> None:
    fractions = trained({}).trained[BASE]
    for rows in fractions.rows.values():
        assert rows.ends[0] <= rows.values.min()
        assert rows.values.max() <= rows.ends[1]
    assert fractions.rows["clean error"].ends == (0, 100)
    assert fractions.rows["relative mCE"].ends[0] < 0


def test_numbers_are_of_the_seeds_that_both_have() -> None:
    base = normalizer_of(network({}))
    control = metrics_of_arm([network({})], base, WHOLE)
    arm = metrics_of_arm([network({}), network(everywhere(0.3), seed=1)], base, WHOLE)
    arms = arms_of(cifar={CONTROL: control, "augmix": arm})
    row = next(row for row in find(arms, "augmentation").rows if row.differences)
    assert row.seeds == 1
    assert row.lower == 0
    assert row.differences["mCE"].value == pytest.approx(0)
    assert row.numbers["mCE"].value == pytest.approx(100)


RESNETS: Mapping[str, Effect] = {
    "resnet56": everywhere(-0.05, clean=-0.02),
    "resnet110": everywhere(-0.06, clean=-0.03),
}


def test_the_line_of_resnets_varies_in_the_interval() -> None:
    far, near = everywhere(0.3, clean=0.15), everywhere(-0.02, clean=-0.01)
    arms = trained({**RESNETS, "resnet20-quarter": far, "resnet20-half": near, "resnet20-double": {}})
    found = find(arms, "small")
    rows = {row.arm: row for row in found.rows}
    line = [BASE, *RESNETS]
    x, y = ([arms.trained[name].mean(metric) for name in line] for metric in ("clean error", "mCE"))
    slope, offset = np.polyfit(x, y, 1)
    widths = {}
    for name in ("resnet20-quarter", "resnet20-half"):
        off = rows[name].numbers["off the line"]
        one = arms.trained[name]
        assert off.value == pytest.approx(one.mean("mCE") - slope * one.mean("clean error") - offset)
        assert f"{name} {signed(off)}" in found.measured
        widths[name] = off.half_width
    assert widths["resnet20-quarter"] > 3 * widths["resnet20-half"]
    assert shows(found.measured, "resnet20, resnet56, resnet110", "3 runs")
    assert "resnet20-double" in rows
    assert "resnet20-double" not in found.measured


def test_the_interval_off_the_line_is_that_of_resampling() -> None:
    quarter = everywhere(0.1, clean=0.05)
    found = find(trained({**RESNETS, "resnet20-quarter": quarter}, seeds=1, images=2000), "small")
    off = next(row for row in found.rows if row.arm == "resnet20-quarter").numbers["off the line"]
    wrong = {
        name: ~network(effect, images=2000).correct
        for name, effect in {BASE: {}, **RESNETS, "resnet20-quarter": quarter}.items()
    }
    rng, drawn = np.random.default_rng(1), []
    base = normalizer_of(network({}, images=2000))
    for _ in range(1000):
        weights = rng.dirichlet(np.ones(2000))
        errors = {name: rows @ weights for name, rows in wrong.items()}
        clean = {name: 100 * some[0] for name, some in errors.items()}
        mce = {
            name: 100
            * np.mean(
                [
                    some[[i for i, one in enumerate(NAMES) if one.partition("@")[0] == corruption]].sum()
                    / base.sums[corruption]
                    for corruption in WHOLE.corruptions
                ]
            )
            for name, some in errors.items()
        }
        line = [BASE, *RESNETS]
        slope, offset = np.polyfit([clean[one] for one in line], [mce[one] for one in line], 1)
        drawn.append(mce["resnet20-quarter"] - slope * clean["resnet20-quarter"] - offset)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert off.high - off.low == pytest.approx(high - low, rel=0.25)


@pytest.mark.parametrize(
    ("counts", "used", "message"),
    [
        ({"resnet110": 2}, (2, 2), "2 runs each"),
        ({"resnet20-half": 2}, (5, 2), "2 to 5 runs each"),
        ({"resnet20-half": 1}, (5, 1), "1 to 5 runs each, where one decides nothing"),
        ({"resnet56": 1}, (1, 1), "one run each, which decides nothing"),
    ],
)
def test_a_distance_is_of_the_seeds_that_the_line_has_too(
    counts: Mapping[str, int], used: tuple[int, int], message: str
) -> None:
    quarter, half = everywhere(0.3, clean=0.15), everywhere(0.1, clean=0.05)
    effects = {**RESNETS, "resnet20-quarter": quarter, "resnet20-half": half}
    found = find(trained(effects, seeds=5, **counts), "small")
    assert shows(found.measured, "resnet20, resnet56, resnet110", message, "resnet20-quarter +")
    numbers = {
        (row["arm"], row["metric"]): int(row["seeds"])
        for row in csv.DictReader(metrics_csv(found.rows).splitlines())
    }
    assert (numbers["resnet20-quarter", "off the line"], numbers["resnet20-half", "off the line"]) == used
    assert numbers["resnet20-quarter", "mCE"] == 5


@pytest.mark.parametrize("there", [{}, {"resnet56": {}}])
def test_a_line_takes_two_resnets(there: Mapping[str, Effect]) -> None:
    found = find(trained({**there, "resnet20-quarter": everywhere(0.2)}), "small")
    assert shows(found.sentence, "no line", "two ResNets")
    alone = find(trained(there), "small")
    assert "line, which requires" not in alone.sentence


def write_photos(
    folder: Path, which: str, networks: Sequence[str], arms: Mapping[str, Effect], images: int = 60
) -> None:
    """The files of a pass: networks of one kind, each 3 points worse than the one before."""
    for place, condition in enumerate(photo_conditions(WHOLE, which)):
        name, _, severity = condition.partition("@")
        rng = np.random.default_rng(place)
        easy, rows = rng.random(images), {}
        for number, one in enumerate(networks):
            for arm, effect in arms.items():
                hard = 0.3 + 0.1 * int(severity or 0) + 0.03 * number
                rows[f"{one}/{arm}"] = easy >= hard + effect.get(name, effect.get("", 0.0))
        right = np.stack(list(rows.values())).astype(np.uint8)
        found = StudyPredictions(tuple(rows), right, np.ones(images, np.uint8), {})
        write_predictions(folder / condition_file(which, condition), found)


def test_the_page_has_the_numbers_of_its_predictions(tmp_path: Path) -> None:
    arms = {"plain": {}, "nlm-h0.8": everywhere(0.1, **dict.fromkeys(NOISE, -0.1))}
    write_photos(tmp_path, "filters", NETWORKS[:2], arms)
    for arm, effect in {BASE: {}, CONTROL: {}, "clahe-tuned": everywhere(-0.1)}.items():
        for seed in range(2):
            path = tmp_path / "cifar" / f"{arm}-seed{seed}.npz"
            write_predictions(path, network(effect, seed=seed, images=60))
    reproduce("imagenet-c-enhancements", tmp_path, only=["page"])
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "60 of photos, 60 of CIFAR-10" in page
    for name in ("findings.csv", "nlm.csv", "clahe.csv"):
        assert (tmp_path / name).is_file()
    statement = WHOLE.file["questions"]["nlm"]["claim"]
    verdicts = {row["question"]: row for row in table(tmp_path / "findings.csv")}
    assert verdicts["nlm"]["claim"] == statement
    assert f"| {statement} | {verdicts['nlm']['verdict']} |" in page
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f'<a href="#nlm">{statement}</a>' in html
    known = get_baseline("alexnet").select(WHOLE.corruptions, (1, 2, 3, 4, 5))
    for row in table(tmp_path / "nlm.csv"):
        if row["metric"] not in ("mCE", "fog CE"):
            continue
        ces = {}
        for corruption in WHOLE.corruptions:
            wrong = 0.0
            for severity in range(1, 6):
                path = tmp_path / condition_file("filters", f"{corruption}@{severity}")
                with np.load(path) as file:
                    about = file["about"].tobytes().decode()
                    place = [key.strip(' "') for key in about.split("[")[1].split("]")[0].split(",")]
                    right = np.unpackbits(file["bits"], axis=1)
                    wrong += 1 - right[:, place.index(f"{row['data']}/{row['arm']}")].mean()
            ces[corruption] = 100 * wrong / float(np.sum(np.asarray(known[corruption], float)))
        wanted = np.mean(list(ces.values())) if row["metric"] == "mCE" else ces["fog"]
        assert float(row["value"]) == pytest.approx(wanted, abs=6e-4)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predictions_that_cannot_be_paired_are_rejected(tmp_path: Path) -> None:
    write_photos(tmp_path, "styles", NETWORKS[:2], {"plain": {}})
    write_photos(tmp_path, "filters", NETWORKS[:2], {"plain": {}}, images=50)
    with pytest.raises(OptionError, match=r"\b50 photos.* photos/styles .*\b60\b"):
        load_arms(tmp_path, WHOLE)
    path = tmp_path / condition_file("styles", "stylize@3")
    found = StudyPredictions((f"{NETWORKS[1]}/plain",), np.ones((1, 60), np.uint8), np.ones(60, np.uint8), {})
    write_predictions(path, found)
    with pytest.raises(OptionError, match=r"stylize@3\.npz .*1 row of 60.*2 rows of 60"):
        load_arms(tmp_path, WHOLE)


def test_arms_of_other_test_images_are_rejected(tmp_path: Path) -> None:
    write_predictions(tmp_path / "cifar" / f"{BASE}-seed0.npz", network({}))
    write_predictions(tmp_path / "cifar" / "augmix-seed0.npz", network({}, images=300))
    wanted = (
        r"cifar/augmix-seed0\.npz has 96 rows of 300 images and cifar/resnet20-seed0\.npz has 96 rows of 400"
    )
    with pytest.raises(OptionError, match=wanted):
        load_arms(tmp_path, WHOLE)


@pytest.mark.parametrize(
    ("arm", "inside"),
    [
        ("resnet56", "its rows, arms that start from it or test it"),
        ("resnet110", "its rows"),
        ("shake26-no-shake", "its rows, all differences to it"),
        ("shake26-shake", "its rows"),
    ],
)
def test_a_failed_run_is_listed_with_the_numbers_that_contain_it(
    tmp_path: Path, arm: str, inside: str
) -> None:
    for name in (BASE, arm):
        one = network({})
        one.facts.update(
            recipe={"name": name}, losses=[2.31, 2.3012 if name == arm else 0.5], constant_loss=2.301
        )
        write_predictions(tmp_path / "cifar" / f"{name}-seed0.npz", one)
    (failed,) = load_arms(tmp_path, WHOLE).runs.failed
    assert (failed.name, failed.inside) == (arm, inside)


def test_a_network_without_errors_divides_nothing() -> None:
    with pytest.raises(OptionError, match=r"400 images under .*fog"):
        normalizer_of(network({"fog": -1.0}))


@pytest.mark.parametrize(("harder", "verdict"), [(-0.3, "refuted"), (0.3, "undecided"), (0.0, "undecided")])
def test_style_is_judged_by_testbed_and_photos(tmp_path: Path, harder: float, verdict: str) -> None:
    write_photos(tmp_path, "styles", NETWORKS, {"plain": {"stylize": harder}}, images=400)
    write_photos(tmp_path, "filters", NETWORKS, {"plain": {}}, images=400)
    arms = load_arms(tmp_path, WHOLE)
    gap = photo_gap(arms)
    assert gap is not None
    assert (gap.network, gap.reference) == (NETWORKS[0], NETWORKS[2])
    assert find(arms, "style").verdict == verdict  # the testbed refutes; both together have to agree
    wrong, style = {}, {}
    for name in (NETWORKS[0], NETWORKS[2]):
        right = arms.photos[name]["plain"].right
        assert right is not None
        wrong[name] = sum(1 - right[NAMES.index(f"{gap.worst}@{s}")].mean() for s in range(1, 6))
        style[name] = sum(1 - arms.styles[name].row(f"stylize@{s}").mean() for s in range(1, 6))
    ces = [100 * one[NETWORKS[0]] / one[NETWORKS[2]] for one in (style, wrong)]
    assert gap.gap.value == pytest.approx(ces[0] - ces[1])
    assert np.mean(gap.errors) == pytest.approx(20 * style[NETWORKS[0]])
    first = arms.photos[NETWORKS[0]]["plain"].right
    assert first is not None
    errors = {
        name: 20 * sum(1 - first[NAMES.index(f"{name}@{s}")].mean() for s in range(1, 6))
        for name in WHOLE.corruptions
    }
    assert gap.hardest_error == pytest.approx(max(errors.values())) == pytest.approx(errors[gap.hardest])


def test_the_paper_s_network_alone_decides_about_style(tmp_path: Path) -> None:
    write_photos(tmp_path, "styles", NETWORKS[1:], {"plain": everywhere(0.3)}, images=400)
    write_photos(tmp_path, "filters", NETWORKS[1:], {"plain": {}}, images=400)
    found = find(load_arms(tmp_path, WHOLE), "style")
    assert shows(found.measured, "stylized photos", f"{NETWORKS[1]} has CE")
    assert found.verdict == "refuted"


def test_figures_mark_arms_that_were_trained_once() -> None:
    found = find(trained({"multigrid": {}, "msdnet": {}}, msdnet=1), "multiscale")
    labels = [
        look["text"]
        for kind, look in draw_finding(found, figure_metrics(WHOLE, found.name)).shapes
        if kind == "text"
    ]
    assert "CIFAR-10: multigrid" in labels
    assert "CIFAR-10: msdnet (1 seed)" in labels
    assert "CIFAR-10: multigrid against msdnet (1 seed)" in labels


def test_names_of_networks_stay_in_the_figure_of_styles() -> None:
    drawing = draw_styles(styles_in_testbed())
    names = {
        look["text"]: look
        for kind, look in drawing.shapes
        if kind == "text" and look["text"] in ("resnet50", "vgg19", "densenet161", "squeezenet1_1")
    }
    assert len(names) == 4
    for name, look in names.items():
        wide = 6 * len(name)  # of the widest letters that a page is likely to have
        left = look["at"][0] - wide * (look["anchor"] == "end")
        assert 62 <= left <= left + wide <= 62 + 520


def test_differences_are_distinguished_from_zero() -> None:
    assert signed(Estimate(-2.25, -3.5, -0.04, 9)) == "−2.25 [−3.50, −0.04]"
    assert signed(Estimate(-1e-17, -0.3, 0.3, 9)) == "+0.0 [−0.3, +0.3]"
    assert signed(Estimate(1.0, 0.0, 2.0, 9)) == "+1.0 [+0.0, +2.0]"
