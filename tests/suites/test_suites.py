"""The suites of the package are what was published, and stay it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from beaufort import get_corruption_names
from beaufort.conditions import Condition
from beaufort.corruptions import corruptions
from beaufort.errors import OptionError, UnknownNameError
from beaufort.images import center_crop, resize_exactly, resize_short_side
from beaufort.suites import SUITE_NAMES, Step, Suite, SuiteError, get_suite, parse_suite, read_suite

# A suite that changes gets a new version, and its line here.
DIGESTS = {
    "imagenet-c@1": "0a81b274f2b08eb8b8e40a6a003b07a10d05e6386fa16e5f8e19732ac6c4e0d6",
    "imagenet-c-validation@1": "249c4cd2fec08a7c7255a3b0f48faf7cc0821c90d48c9b8726f72dc120c34e0b",
    "tiny-imagenet-c@1": "1c9bc1a6a3149f6d59bd8dffcb6ce1c0590c228487f4bc169a1d9e6e516c461f",
    "cifar10-c@1": "1bec8b14a6ea93edce65cba244ab3f6518f8f5926b83017d6ddbaedc55a768b8",
    "mnist-c@1": "a87ae482bc757a53eb646b98d8c5328bc98e1eb119c08145632edf9f78274fbb",
    "mnist-c-extra@1": "8aa4cbcf63592adb581b120dc725ba0afab04383df00a7d5b9303f7db2b9a6e0",
}

# name: list of corruptions, its data set, its scale, conditions with the clean one, baseline, metrics
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
    "mnist-c": ("mnist-c", "mnist-test", "mnist", 16, "conv1", ("mean_accuracy", "relative_mce")),
    "mnist-c-extra": ("mnist-c-extra", "mnist-test", "mnist", 17, None, ("mean_accuracy",)),
}


@pytest.mark.parametrize("suite_name", SUITE_NAMES)
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


def test_every_file_is_named_and_every_name_has_a_file() -> None:
    found = {entry.name for entry in (files("beaufort.suites") / "data").iterdir()}
    assert found == {f"{name}.yaml" for name in SUITE_NAMES}
    assert [get_suite(name).name for name in SUITE_NAMES] == list(SUITE_NAMES)


def test_nothing_changes_under_its_version() -> None:
    assert {str(get_suite(name)): get_suite(name).digest for name in SUITE_NAMES} == DIGESTS


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
    with pytest.raises(UnknownNameError, match="'imagenet-c@2' is not a suite of this Beaufort, which has"):
        get_suite("imagenet-c@2")
    for wrong in ("imagenetc", "imagenet-c@", "imagenet-c@x", "imagenet-c@1@1", ""):
        with pytest.raises(UnknownNameError, match="One of your own is a file"):
            get_suite(wrong)


def test_a_file_reads_back_as_the_suite(tmp_path: Path) -> None:
    suite = replace(get_suite("imagenet-c"), name="mine")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(suite.as_dict()))
    assert read_suite(path) == get_suite(path) == get_suite(str(path)) == suite
    assert json.loads(json.dumps(suite.as_dict())) == suite.as_dict()
    assert pickle.loads(pickle.dumps(suite)) == suite
    assert hash(suite) == hash(read_suite(path))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        get_suite(str(tmp_path / "no.yaml"))
    with pytest.raises(OptionError, match="is not a file"):
        read_suite(tmp_path)


def test_a_suite_made_in_python_is_held_to_the_same() -> None:
    with pytest.raises(SuiteError) as caught:
        Suite(
            name="mine",
            version=1,
            dataset="a",
            scale="cifar",
            corruptions=("fog", "stripe"),
            severities=(1, 6),
        )
    assert str(caught.value).splitlines() == [
        "suite 'mine': severities: 6 is not a severity; accepted are whole numbers from 1 to 5",
        "suite 'mine': corruptions: stripe has no constants for the scale 'cifar'; it has them for mnist, "
        "and the scale 'relative' fits any size",
    ]
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
    photo = Image.fromarray(np.random.default_rng(1).integers(0, 256, (300, 400, 3), np.uint8))
    prepared = photo
    for step in get_suite("imagenet-c").prepare:
        prepared = step.apply(prepared)
    assert prepared.tobytes() == center_crop(resize_short_side(photo, 256), 224).tobytes()
    (stretch,) = get_suite("tiny-imagenet-c").prepare
    assert stretch.apply(photo).tobytes() == resize_exactly(photo, 64).tobytes()
    assert [Step.parse(str(step)) for step in (Step("crop", 224), stretch)] == [Step("crop", 224), stretch]


PROBE = """
import sys
import beaufort, beaufort.suites
print("yaml" in sys.modules, beaufort.suites._read._published.cache_info().currsize)
"""


def test_importing_reads_no_suite() -> None:
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert child.stdout.split() == ["False", "0"]
