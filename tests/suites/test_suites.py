"""The suites of the package are unchanged."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from beaufort import get_corruption_names
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.corruptions import corruptions
from beaufort.data import Step, prepare
from beaufort.suites import (
    SHIFT_SUITE_NAMES,
    SUITE_NAMES,
    Suite,
    SuiteError,
    get_suite,
    parse_suite,
    read_suite,
    with_own_name,
)
from beaufort.suites.conditions import Condition
from tests.commands import shows

# A suite that changes gets a new version, and its line here.
DIGESTS = {
    "imagenet-c@1": "0a81b274f2b08eb8b8e40a6a003b07a10d05e6386fa16e5f8e19732ac6c4e0d6",
    "imagenet-c-validation@1": "249c4cd2fec08a7c7255a3b0f48faf7cc0821c90d48c9b8726f72dc120c34e0b",
    "tiny-imagenet-c@1": "1c9bc1a6a3149f6d59bd8dffcb6ce1c0590c228487f4bc169a1d9e6e516c461f",
    "cifar10-c@1": "1bec8b14a6ea93edce65cba244ab3f6518f8f5926b83017d6ddbaedc55a768b8",
    "cifar100-c@1": "c425bf91e55344217966696b0c3025e918463c4869fb7db3544c283a76d8e6d9",
    "mnist-c@1": "a87ae482bc757a53eb646b98d8c5328bc98e1eb119c08145632edf9f78274fbb",
    "mnist-c-extra@1": "8aa4cbcf63592adb581b120dc725ba0afab04383df00a7d5b9303f7db2b9a6e0",
    "imagenet-c-bar@1": "2bfb0bec63ac5bc4d883bee29765b0a4d05bf7f32a60a0c8151dc487c19703c7",
    "imagenet-c-and-bar@1": "bd682dc173e7e03b97c8fbde0ed956a409148a1562aeff417ef79ed5a5735e68",
    "cifar10-c-bar@1": "eb630f916aa2023b5fbfcd51ab188521da8689e9afc1917c2022de7238e0a60f",
    "cifar10-c-and-bar@1": "92ae3ed18f5c445a47ff3bb8bcee2b25ae36227b235a47c39a597572e744dd3f",
    "imagenet-p@1": "9dc62616474ee1033e88bb0528ea086d83b2109864ed88b3b44955de79ed2f6c",
    "tiny-imagenet-p@1": "30a09909fa8ba62deb759a08b81ef31bf8e21155b0bd4ca25d06a7d9a0627a5b",
    "cifar10-p@1": "243cadaadd14a667141e27633bd258b1767cf8c7f4944e47afa70460df0c990f",
    "testbed-pgd@1": "1825359a63ca054a851444c38ce72bfe20eb5696d179e6ca5fc64ae26e7ab1da",
    "testbed-in-memory@1": "7e74d1e31e8aa785b4b27de53bbab759d1f08f0a657f60761d41ae306355a111",
    "imagenet-3dcc@1": "bf6725f18f0666f19e49c58b84f7fc81f7c8e2a4f79da29d111e779efa8f678a",
    "robustbench-imagenet-c@1": "20a866e69af159623a5e85b04da32d694f45cc0a4ca5a02eb5e9ed38faca8563",
    "robustbench-imagenet-3dcc@1": "4cb2c7134adbce941fb2c23358504ce3789963c2de32ce099ec296ff7f1ba800",
    "photos@1": "a74127f11896e28f0a72f8f1e11bd4f293d8b6b4796a8071c2aa486c8a2646a1",
    "cifar10-c-episodic@1": "33f62af69c87585679c3c798c98cee543f59f5d9ef4c48efa8efd8302cafa8dd",
    "cifar10-c-continual@1": "7fbeb8f9d7a85c5fd011f21d112fd83bac25aec45bb4e19bac139f6a30f1d0d6",
    "cifar10-c-recurring@1": "87333882f0d3c3c79821bc50c9e94758f98f3d65ad30a39a38912ec5f3c5891f",
    "cifar10-c-gradual@1": "5ab32c9b4a426fed414df16b2f77dc3f94453bc29ca611921c525c4e2f50afe7",
    "cifar10-c-mixed@1": "5ae38b6fcaf080c93f05a02bf632c7f0872a501da7f6a76311717925c6382825",
    "cifar10-c-correlated@1": "1002717d5aa3849a0cdc11448d69631d1e505f9e3daa55b590e3c17eb87fe263",
    "cifar10-c-drifting@1": "fe4be815ec68fd651ebd0a7b0ecc9b3fbcfe5ae2a2470f4ffbbbf8e748f2bdb6",
    "imagenet-c-continual@1": "d239700dcb6b9a2ea9d48814528c78bdf4e2ecd8a18196422d61844f790ce73c",
}

SHIFT_DIGESTS = {
    "imagenetv2-matched-frequency@1": "c9a70959ebb306562f3a5b00b1a2950d3afcbde15c2e1cf577659e4071d83ebb",
    "imagenetv2-threshold-0.7@1": "74ad3b473e43b2c98872e95c4e66b9e243203123a10d44d0a5446dbb884e5212",
    "imagenetv2-top-images@1": "736c37613bbe7f214308e8a94cbf563edb715e984253e5061ac40cb94afffa82",
    "imagenetv2-one-eighth@1": "40836a5be8954aa8c8b9f6228dcced95363ebd1342b543819ea7ac72ec43cebc",
    "imagenet-a@1": "8c6e9513633220f0397bb04c300f4ffbda96b9a9e7ab2fe72be35119e472373a",
    "imagenet-r@1": "81acd78838b3dfa6375e48d3f37a1bbdd8ba5c886887ce73b709ef770bf82912",
    "imagenet-sketch@1": "31b8a0d6c43667433c34369cc165002d564d7c145af4c945060d72c6b1c91dfa",
    "objectnet@1": "28600580cbcdddba61f3b9f8e3288269234921b74a1e5ea1ad183d621b13898b",
    "objectnet-2020@1": "a34dfd1ecce2ff903604dea460723558e0b15fafdb805c8353ec6bf0400adac6",
    "imagenet-d@1": "8077f58dcc84e1f5ab6fb3348f4ca7d079f71dd693881ec1762f2f209545ba80",
    "imagenet-d-113@1": "a0dc09584b1aa5fe86c3a8592ea87773a8cfe68991d18aef39389f0eeb746ec4",
    "vid-robust@1": "dd9f1efce538aaf3d0faf8d6588c3a11c028ea23c961e585c610e0eeab3d1e38",
    "ytbb-robust@1": "f4ef473b5ad02b195198f3321e95e982eb585f6500fff591c6d1114b35085cb9",
    "stylized-imagenet@1": "59ba9e9761479a588a44accbbfe5400c1b24a6f7b620419cb71ecbf8ab90321f",
    "imagenet-x@1": "1e2bd4bc19b4f31dd8bdc780b97ed96c48b09aeda4de5636fa11e3094eb07e02",
    "icons-50-style@1": "eb4271bc981023d5aa588c43cd6460aef53b1575c2e6764c3541a5572b2f4eb4",
    "icons-50-subtype@1": "4cc873e86ff35bbd767c38f6e3368069877a5763674107cbc91a3b8bb3d5b25d",
    "icons-50-subtype-released@1": "28714b9ba48fa821e7f0e04882ac5f7249bc02ccd81ff1c2d61281d4a5489c75",
    "icons-50-traditional@1": "8771c202a2897a25fc3c1302b0634657669911080ca3ef48382cbeee186c005c",
    "icons-50-traditional-released@1": "1199abb50553cc7ac864bfad2c5e0bee6c3a34acaf863c69d9cc35f85933d10f",
}

# name: list of corruptions, its dataset, its scale, conditions with the clean one, baseline, metrics
FACTS = {
    "imagenet-c": ("common", "imagenet-val", "imagenet", 76, "alexnet", ("mce", "relative_mce")),
    "imagenet-c-validation": (
        "validation",
        "imagenet-val",
        "imagenet",
        21,
        "alexnet",
        ("mce", "relative_mce"),
    ),
    "tiny-imagenet-c": ("common", "tiny-imagenet-val", "tiny", 76, None, ("mean_accuracy",)),
    "cifar10-c": ("common", "cifar10-test", "cifar", 76, None, ("mean_accuracy",)),
    "cifar100-c": ("common", "cifar100-test", "cifar", 76, None, ("mean_accuracy",)),
    "mnist-c": ("mnist-c", "mnist-test", "mnist", 16, "conv1", ("mean_accuracy", "relative_mce")),
    "mnist-c-extra": ("mnist-c-extra", "mnist-test", "mnist", 17, None, ("mean_accuracy",)),
    "imagenet-c-bar": ("imagenet-c-bar", "imagenet-val", "imagenet", 51, None, ("mean_accuracy",)),
    "cifar10-c-bar": ("cifar10-c-bar", "cifar10-test", "cifar", 51, None, ("mean_accuracy",)),
}


def test_photos_of_ones_own() -> None:
    """It is not published: every size, every class, no baseline, and images are not cropped."""
    suite = get_suite("photos")
    assert list(suite.corruptions) == get_corruption_names("common")
    assert (suite.scale, suite.baseline, suite.metrics) == ("relative", None, ("mean_accuracy",))
    assert (suite.label_space, [str(step) for step in suite.prepare]) == (None, ["resize 256"])
    assert len(suite.conditions("mine")) == 76


@pytest.mark.parametrize("suite_name", FACTS)
def test_as_published(suite_name: str) -> None:
    suite = get_suite(suite_name)
    subset, dataset, scale, count, baseline, metrics = FACTS[suite_name]
    assert list(suite.corruptions) == get_corruption_names(subset)
    assert (suite.dataset, suite.scale, suite.baseline, suite.metrics) == (dataset, scale, baseline, metrics)
    assert all(scale in corruptions[name].recipes for name in suite.corruptions)
    assert len(suite.conditions()) == len(set(suite.conditions())) == count
    assert suite.title
    assert suite.citation
    for condition in suite.conditions():
        condition.facts(scale=suite.scale)


@pytest.mark.parametrize("name", ["imagenet", "cifar10"])
def test_both_sets_together(name: str) -> None:
    """The 15 and the 10 corruptions have the facts of their own suites, so predictions are reused."""
    common, bar, both = (get_suite(f"{name}-{end}") for end in ("c", "c-bar", "c-and-bar"))
    assert both.conditions() == [*common.conditions(), *bar.conditions()[1:]]
    assert (both.scale, both.prepare) == (common.scale, common.prepare) == (bar.scale, bar.prepare)
    assert {corruptions[one].group for one in bar.corruptions} == {"unseen"}
    assert "unseen" not in {corruptions[one].group for one in common.corruptions}


def test_the_testbeds_attacks() -> None:
    suite = get_suite("testbed-pgd")
    assert (suite.corruptions, suite.prepare, suite.label_space) == ((), (), "imagenet-1k")
    assert [str(condition) for condition in suite.conditions()] == [
        "imagenet-val",
        "imagenet-val/testbed-pgd-linf@0.5/255",
        "imagenet-val/testbed-pgd-linf@2/255",
        "imagenet-val/testbed-pgd-l2@0.1",
        "imagenet-val/testbed-pgd-l2@0.5",
    ]


def test_every_file_is_named_and_every_name_has_a_file() -> None:
    found = {entry.name for entry in (files("beaufort.suites") / "data").iterdir() if entry.is_file()}
    assert found == {f"{name}.yaml" for name in SUITE_NAMES}
    assert [get_suite(name).name for name in SUITE_NAMES] == list(SUITE_NAMES)


def test_nothing_changes_under_its_version() -> None:
    assert {str(get_suite(name)): get_suite(name).digest for name in SUITE_NAMES} == DIGESTS
    assert {str(get_suite(name)): get_suite(name).digest for name in SHIFT_SUITE_NAMES} == SHIFT_DIGESTS


def test_natural_shifts_have_clean_counterparts() -> None:
    folder = Path(str(files("beaufort.suites"))) / "data" / "shifts"
    assert {path.stem for path in folder.iterdir()} == set(SHIFT_SUITE_NAMES)
    for name in SHIFT_SUITE_NAMES:
        suite = get_suite(name)
        if len(suite.parts) == 1:
            continue
        clean, shifted = suite.parts[:2]
        assert (suite.name, clean.dataset, clean.counterpart) == (name, "imagenet-val", None)
        assert shifted.counterpart == clean.name
        assert shifted.convention == clean.convention
        assert suite.citation
        if name != "objectnet-2020":
            assert shifted.labels == clean.labels == (clean.classes or "imagenet-1k")
        changed = with_own_name(replace(suite, parts=suite.parts[:1]))
        assert changed.name == f"{name}-changed"


def test_icons_are_those_that_a_protocol_holds_out() -> None:
    found = [get_suite(name) for name in SHIFT_SUITE_NAMES if name.startswith("icons-50")]
    assert len(found) == 5
    for suite in found:
        (part,) = suite.parts
        assert (part.dataset, part.held_out, part.label_space) == ("icons-50", suite.name, "icons-50")
        assert suite.citation


def test_digest_is_about_numbers_not_words() -> None:
    suite = get_suite("mnist-c")
    assert replace(suite, title="Digits", notes="", citation="").digest == suite.digest
    for change in ({"version": 2}, {"clean_in_mean": False}, {"corruptions": suite.corruptions[::-1]}):
        assert replace(suite, **change).digest != suite.digest


def test_order_of_conditions() -> None:
    found = [str(condition) for condition in get_suite("imagenet-c").conditions()]
    assert found[:3] == ["imagenet-val", "imagenet-val/gaussian_noise@1", "imagenet-val/gaussian_noise@2"]
    assert found[-1] == "imagenet-val/jpeg_compression@5"
    digits = get_suite("mnist-c").conditions("my-digits")
    assert digits[:2] == [Condition("my-digits"), Condition("my-digits", "shot_noise")]


@pytest.mark.parametrize("suite_name", SUITE_NAMES)
def test_every_published_name_is_lost_by_a_change(suite_name: str) -> None:
    suite = get_suite(suite_name)
    fewer: dict[str, Any] = (
        {"corruptions": ("contrast",)} if suite.corruptions else {"shifts": suite.shifts[:1]}
    )
    changed = with_own_name(replace(suite, **fewer, baseline=None, metrics=("mean_accuracy",)))
    assert changed.name == f"{suite_name}-changed"


def test_a_changed_suite_loses_the_published_name() -> None:
    suite = get_suite("cifar10-c")
    changed = with_own_name(replace(suite, corruptions=("fog",)))
    assert str(changed) == "cifar10-c-changed@1"
    assert changed.title == "CIFAR-10-C, the 15 corruptions of the benchmark, changed"
    assert Suite.from_dict(changed.as_dict()) == changed
    words = with_own_name(replace(suite, notes="Read twice."))
    assert words.name == "cifar10-c"  # words are no part of what is measured
    assert with_own_name(replace(suite, dataset="my-images")).name == "cifar10-c-changed"
    fewer = Suite.from_dict({**suite.as_dict(), "severities": [1]})
    assert with_own_name(fewer).name == "cifar10-c-changed"
    assert with_own_name(replace(suite, version=2)).name == "cifar10-c"
    without = with_own_name(suite.without_clean())
    assert (str(without), without.clean, len(without.conditions())) == ("cifar10-c@1", False, 75)


PARTS = """
name: mine
version: 2
parts:
  - dataset: photos
    scale: cifar
    corruptions: [fog]
    severities: [1, 3]
    labels: {cat: [1, 2], dog: [n02085620]}
  - dataset: sketches
    labels: imagenet-a
    convention: all
    counterpart: photos
"""


def test_parts_read_back(tmp_path: Path) -> None:
    suite = parse_suite(PARTS)
    assert [str(part) for part in suite.parts] == ["photos@2", "sketches@2"]
    assert [str(one) for one in suite.conditions()] == ["photos", "photos/fog@1", "photos/fog@3", "sketches"]
    assert suite.part("photos").grouping == {"cat": (1, 2), "dog": ("n02085620",)}
    grouping = suite.part("sketches").grouping
    assert isinstance(grouping, dict)
    assert len(grouping) == 200
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(suite.as_dict()))
    assert read_suite(path) == suite
    assert pickle.loads(pickle.dumps(suite)) == suite
    words = PARTS.replace("version: 2", "version: 2\nnotes: a")
    assert parse_suite(words).digest == suite.digest
    assert parse_suite(PARTS.replace("[1, 3]", "[1, 4]")).digest != suite.digest


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("version: 2", "version: 2\nscale: cifar", "4: scale: 'scale' belongs in each part"),
        ("fog", "fgo", "7: corruptions: unknown corruption 'fgo'"),
        ("counterpart: photos", "counterpart: photo", "13: counterpart: 'photo' is not another part"),
        ("counterpart: photos", "counterpart: sketches", "13: counterpart: 'sketches' is not another part"),
        ("dataset: sketches", "dataset: photos", "10: name: 'photos' is the name of another part"),
        ("    severities: [1, 3]\n", "", "'severities' is missing"),
        ("convention: all", "convention: some", "12: convention: unknown convention 'some'"),
        ("labels: imagenet-a", "labels: imagenet-b", "11: labels: unknown label space 'imagenet-b'"),
        ("[1, 2]", "[1.5]", "labels: the outputs of 'cat' must be a list of numbers or names"),
        ("- dataset: sketches", "- sketches: yes", "'dataset' is missing"),
        ("convention: all", "metrics: [mce]", "mce divides by the errors of a baseline"),
        ("convention: all", "clean: false", "clean: the suite has no images"),
        (
            "convention: all",
            "shifts: [fog@3]",
            "shifts: 'fog@3' is a corruption; write it",
        ),
    ],
)
def test_mistakes_in_parts(old: str, new: str, expected: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parse_suite(PARTS.replace(old, new, 1))
    assert expected in str(caught.value)


def test_order_does_not_follow_the_file() -> None:
    suite = replace(get_suite("cifar10-c"), severities=(5, 1), clean=False, corruptions=("fog",))
    assert [str(one) for one in suite.conditions()] == ["cifar10-test/fog@1", "cifar10-test/fog@5"]


def test_mean_accuracy_of_mnist_c_as_printed(shared: Path) -> None:
    """The printed mean accuracy is that of the suite's rows, the clean one included."""
    lines = (shared / "reference/tables/mnist_c_fig3.csv").read_text().splitlines()
    accuracy = {row.split(",")[0]: float(row.split(",")[1]) for row in lines[1:]}
    suite = get_suite("mnist-c")
    rows = [one.corruption or "none" for one in suite.conditions() if not one.clean or suite.clean_in_mean]
    assert round(float(np.mean([accuracy[row] for row in rows])), 2) == 91.21


def test_names_and_versions() -> None:
    suite = get_suite("imagenet-c")
    assert str(suite) == "imagenet-c@1"
    assert get_suite(str(suite)) is suite
    with pytest.raises(UnknownNameError, match=r"'imagenet-c@2'.*Beaufort"):
        get_suite("imagenet-c@2")
    for wrong in ("imagenetc", "imagenet-c@", "imagenet-c@x", "imagenet-c@1@1", ""):
        with pytest.raises(UnknownNameError, match=r"\.yaml"):
            get_suite(wrong)


def test_a_file_reads_back_as_the_suite(tmp_path: Path) -> None:
    suite = replace(get_suite("imagenet-c"), name="mine")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(suite.as_dict()))
    assert read_suite(path) == get_suite(path) == get_suite(str(path)) == suite
    assert json.loads(json.dumps(suite.as_dict())) == suite.as_dict()
    assert pickle.loads(pickle.dumps(suite)) == suite
    assert hash(suite) == hash(read_suite(path))


def test_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"not found: .*no\.yaml"):
        get_suite(str(tmp_path / "no.yaml"))
    with pytest.raises(OptionError, match="must be a file"):
        read_suite(tmp_path)


def test_suites_made_in_python_are_validated_like_files() -> None:
    given: dict[str, Any] = {"version": 1, "dataset": "a", "scale": "cifar", "corruptions": ("fog", "stripe")}
    with pytest.raises(SuiteError, match=r"'mine'.*'cifar'"):
        Suite(name="mine", severities=(1,), **given)
    with pytest.raises(SuiteError) as caught:
        Suite(name="my suite", severities=(1, 6), **given)
    assert [(one.line, one.key) for one in caught.value.mistakes] == [(None, "name"), (None, "severities")]
    assert shows(str(caught.value).splitlines()[1], "'my suite': severities: ", "1 to 5", "6")
    assert isinstance(caught.value, ValueError)
    assert pickle.loads(pickle.dumps(caught.value)).mistakes == caught.value.mistakes


def test_subsets_and_defaults() -> None:
    suite = parse_suite(
        "name: w\nversion: 2\ndataset: photos\nscale: relative\n"
        "corruptions: [weather, contrast]\nseverities: [5, 3]"
    )
    assert suite.corruptions == ("snow", "frost", "fog", "brightness", "contrast")
    assert (suite.severities, suite.title, suite.metrics) == ((3, 5), "w", ("mean_accuracy",))
    assert (suite.clean, suite.clean_in_mean, suite.prepare, suite.baseline) == (True, False, (), None)
    assert len(suite.conditions()) == 11


def test_steps_are_those_of_the_published_sets() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (300, 400, 3), np.uint8)
    photo = Image.fromarray(pixels)
    steps = get_suite("imagenet-c").prepare
    resized = photo.resize((341, 256), Image.Resampling.BILINEAR)
    assert prepare(pixels, steps).tobytes() == resized.crop((58, 16, 282, 240)).tobytes()  # round(58.5) is 58
    assert prepare(pixels, steps[:1]).tobytes() == resized.tobytes()
    assert prepare(pixels, steps[1:]).tobytes() == photo.crop((88, 38, 312, 262)).tobytes()
    small = photo.crop((25, -25, 375, 325)).resize((64, 64), Image.Resampling.BILINEAR)
    again = small.crop((-8, -8, 72, 72))  # larger than what is left: black
    several = [Step("crop", 350), Step("stretch", 64), Step("crop", 80)]
    assert prepare(pixels, several).tobytes() == again.tobytes()
    (stretch,) = get_suite("tiny-imagenet-c").prepare
    assert prepare(pixels, [stretch]).tobytes() == photo.resize((64, 64), Image.Resampling.BILINEAR).tobytes()
    assert [Step.parse(str(step)) for step in (Step("crop", 224), stretch)] == [Step("crop", 224), stretch]


PROBE = """
import sys
import beaufort, beaufort.suites
print("yaml" in sys.modules, beaufort.suites.loading._published.cache_info().currsize)
"""


def test_importing_reads_no_suite() -> None:
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert child.stdout.split() == ["False", "0"]
