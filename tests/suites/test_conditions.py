"""Conditions: texts that read back, images that are corrupted as named, facts that tell pixels apart."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.corruptions import SCALES, Link, corruptions
from beaufort.corruptions.rng import Id
from beaufort.store import Cell
from beaufort.suites.conditions import DATASET_NAME, Condition
from beaufort.suites.shifts import register_shift
from beaufort.testing._contracts import digit, example_image
from tests.commands import shows

DATASETS = st.from_regex(DATASET_NAME, fullmatch=True)
NAMES = st.sampled_from(sorted(corruptions))
LINKS = st.builds(
    lambda name, severity: str(Link(name, severity)), NAMES, st.sampled_from([None, 1, 2.5, 4.75])
)
CONDITIONS = st.one_of(
    st.builds(Condition, DATASETS),
    st.builds(Condition, DATASETS, NAMES),
    st.builds(Condition, DATASETS, NAMES, st.integers(1, 5)),
    st.builds(Condition, DATASETS, NAMES, st.floats(1, 5)),
    st.builds(lambda data, one, two: Condition(data, f"{one}+{two}"), DATASETS, *[LINKS] * 2),
)


@given(CONDITIONS)
def test_text_reads_back(condition: Condition) -> None:
    assert Condition.parse(str(condition)) == condition
    assert pickle.loads(pickle.dumps(condition)) == condition


@given(
    st.one_of(
        st.text(), st.from_regex(r"[a-z.]+/(fog|snow|fgo)@[0-9.]{1,3}([+](fog|fgo)@[0-9])?", fullmatch=True)
    )
)
def test_any_text_is_a_condition_or_a_known_error(text: str) -> None:
    try:
        output = str(Condition.parse(text))
    except BeaufortError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert output == text


def test_the_three_forms() -> None:
    assert Condition.parse("imagenet-val") == Condition("imagenet-val")
    assert Condition.parse("mnist-test/fog") == Condition("mnist-test", "fog")
    assert Condition.parse("imagenet-val/fog@3") == Condition("imagenet-val", "fog", 3)
    assert Condition("a").clean
    assert not Condition("a", "fog").clean


@pytest.mark.parametrize(
    "text",
    [
        "imagenet-val/fog@9",
        "imagenet-val/fog@2.50",
        "imagenet-val/fog@3.0",
        "imagenet-val/fog@5.5",
        "imagenet-val/fog@0",
        "imagenet-val/fog@",
        "imagenet-val/fog@3\n",
        "imagenet-val/fog@²",
        "imagenet-val/",
        "imagenet-val@3",
        "/fog@3",
        "",
        "../val",
        "-val",
        "a b/fog@3",
        "a/fog@3/snow@2",
        "é/fog",
    ],
)
def test_not_a_condition(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        Condition.parse(text)
    form = "'dataset/corruption@severity'"
    assert shows(str(caught.value), repr(text), "'dataset'", form, "'imagenet-val/fog@3'", "1 to 5", "2.5")


def test_severities_between_the_whole_ones() -> None:
    between = Condition.parse("imagenet-val/fog@2.5")
    assert between == Condition("imagenet-val", "fog", 2.5)
    assert str(between) == "imagenet-val/fog@2.5"
    facts = between.facts(scale="imagenet")
    assert (facts["severity"], facts["params"]["amount"]) == (2.5, 2.25)
    whole = Condition("imagenet-val", "fog", np.float64(3))
    assert whole == Condition.parse("imagenet-val/fog@3")
    assert type(whole.severity) is int


CHAIN = "imagenet-val/fog@2+jpeg_compression@3"


def test_chains_read_back() -> None:
    chain = Condition.parse(CHAIN)
    assert str(chain) == CHAIN
    assert chain.links == (("fog", 2), ("jpeg_compression", 3))
    assert chain.shift is None
    assert not chain.clean
    facts = chain.facts(scale="imagenet", seed=4)
    alone = [Condition("x", *link).facts(scale="imagenet", seed=4) for link in chain.links]
    assert facts["links"] == [{name: one[name] for name in one if name != "seed"} for one in alone]
    assert facts["seed"] == 4
    assert "seed" not in Condition.parse("a/contrast@2+jpeg_compression@3").facts(scale="cifar")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a/common@3", r"unknown corruption 'common'.* list of corruptions"),
        ("a/Stylize@3", r"unknown corruption 'Stylize'.* 'stylize'"),
        ("a/fog@2+", "unknown corruption ''; available: .* \\(in the chain 'fog@2\\+'\\)"),
        ("a/fog@2+snwo@3", r"unknown corruption 'snwo'.* 'snow'\? \(in the chain"),
        ("a/fog@6+snow@3", r"severity .*number.* 1 to 5.* '6' \(in the chain"),
        ("a/fog@2.50+snow@3", "severity must be written as 2.5, got '2.50' \\(in the chain"),
        ("a/fog@2+pgd-linf@0.5/255", "unknown corruption 'pgd-linf'"),
        ("a/" + "+".join(["fog@2.5"] * 16), "at most 120 characters"),
    ],
)
def test_invalid_chains(text: str, says: str) -> None:
    with pytest.raises(BeaufortError, match=says):
        Condition.parse(text)


def test_a_chain_has_no_severity_of_its_own() -> None:
    with pytest.raises(OptionError, match=r"link.*got 3"):
        Condition("a", "fog+snow", 3)
    with pytest.raises(OptionError, match=r"fog.*'a/fog\+snow@2'"):
        Condition.parse("a/fog+snow@2").facts(scale="imagenet")


def test_unknown_corruption_error_suggests_near_names() -> None:
    with pytest.raises(UnknownNameError, match=r"'snwo'.*'snow'"):
        Condition.parse("imagenet-val/snwo@3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a/b",), "name of a dataset must consist of letters.*got 'a/b'"),
        (("",), "got ''"),
        (("a", "fog", 6), r"severity .*number.* 1 to 5.* 6"),
        (("a", "fog", True), r"severity .*number.* 1 to 5.* True"),
        (("a", "fog", 5.5), r"severity .*number.* 1 to 5.* 5.5"),
        (("a", None, 3), "name a corruption"),
        (("a", "fgo", 3), "did you mean 'fog'"),
    ],
)
def test_conditions_without_a_text_form_are_rejected(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(BeaufortError, match=says):
        Condition(*arguments)  # type: ignore[arg-type]


def test_numpy_severity_becomes_a_number() -> None:
    condition = Condition("a", "fog", np.int64(3))  # type: ignore[arg-type]
    assert type(condition.severity) is int
    assert str(condition) == "a/fog@3"


@pytest.mark.parametrize("corruption", ["gaussian_noise", "contrast", "motion_blur"])
def test_apply_is_the_corruption(corruption: str) -> None:
    images = np.stack([example_image(32, 32), example_image(32, 32)[::-1]])
    ids = ["a", "b"]
    got = Condition("cifar10-test", corruption, 4).apply(images, ids=ids, seed=3, scale="cifar", jobs=2)
    assert np.array_equal(got, corruptions[corruption](images, 4, ids=ids, seed=3, scale="cifar"))


def test_apply_without_severity_is_the_published_one() -> None:
    digits = np.stack([digit(), digit()[::-1]]).reshape(2, 28, 28, 1)
    got = Condition("mnist-test", "shear").apply(digits, ids=[0, 1])
    assert np.array_equal(got, corruptions["shear"](digits, 2, ids=[0, 1], scale="mnist"))


def test_clean_images_are_returned_unchanged() -> None:
    images = example_image(32, 32)
    assert Condition("cifar10-test").apply(images, ids=[0]) is images


def test_five_severities_and_none_named() -> None:
    condition = Condition.parse("imagenet-val/fog")
    for call in (
        lambda: condition.apply(example_image(64, 64), ids=[0]),
        lambda: condition.facts(scale="tiny"),
    ):
        with pytest.raises(OptionError, match=r"'tiny'.*'fog@3'.*'imagenet-val/fog'"):
            call()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("corruption", sorted(corruptions))
def test_facts_are_json_and_differ_between_severities(corruption: str, scale: str) -> None:
    if scale not in corruptions[corruption].recipes:
        with pytest.raises(OptionError, match=r"no constants.* scale"):
            Condition("a", corruption, 1).facts(scale=scale)
        return
    found = [Condition("a", corruption, level).facts(scale=scale) for level in range(1, 6)]
    assert json.loads(json.dumps(found)) == found
    assert len({json.dumps(one) for one in found}) == 5
    assert all(("seed" in one) == corruptions[corruption].random for one in found)


def test_facts_of_equal_pixels_are_equal() -> None:
    fog = Condition.parse("imagenet-val/fog@3")
    named = fog.facts(scale="imagenet", seed=4)
    assert fog.facts(scale="auto", seed=4, side=224) == named
    assert fog.facts(scale="relative", seed=4, side=224) == named
    assert Condition.parse("other/fog@3").facts(scale="imagenet", seed=4) == named
    assert fog.facts(scale="imagenet", seed=5) != named
    published, fifth = Condition.parse("m/fog"), Condition.parse("m/fog@5")
    assert published.facts(scale="mnist") == fifth.facts(scale="mnist")
    assert published.facts(side=28, channels=1)["scale"] == "mnist"


def test_facts_of_other_pixels_differ() -> None:
    blur = Condition.parse("imagenet-val/defocus_blur@3")
    one, two = (blur.facts(scale="relative", side=side) for side in (224, 448))
    assert one["params"] != two["params"]
    assert one["scale"] == two["scale"] == "imagenet"
    assert blur.facts(scale="tiny") != one


def test_seed_is_no_fact_of_deterministic_conditions() -> None:
    contrast = Condition.parse("a/contrast@2")
    assert contrast.facts(scale="cifar", seed=1) == contrast.facts(scale="cifar", seed=2)
    images = example_image(32, 32)
    assert np.array_equal(contrast.apply(images, ids=[0], seed=1), contrast.apply(images, ids=[0], seed=2))


def test_facts_of_clean() -> None:
    assert Condition("a").facts() == Condition("b").facts(scale="cifar", seed=3) == {"corruption": None}


def test_facts_need_a_side_where_it_matters() -> None:
    with pytest.raises(OptionError, match="pass side"):
        Condition.parse("a/fog@1").facts()
    with pytest.raises(OptionError, match=r"seed.*1.5"):
        Condition.parse("a/fog@1").facts(scale="cifar", seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"scale .*'huge'"):
        Condition.parse("a/fog@1").facts(scale="huge", side=32)


@register_shift("test-dim")
class Dim:
    """Halve the brightness as many times as the level."""

    def __init__(self, level: str) -> None:
        if level and not level.isdecimal():
            raise OptionError(f"the level of test-dim must be an integer, got {level!r}")
        self.times = int(level or "1")

    def facts(self, *, seed: int) -> dict[str, Any]:
        return {"times": self.times}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        dimmed: Bytes = np.right_shift(images, self.times).astype(np.uint8)
        return dimmed


def test_a_shift_of_another_kind() -> None:
    dim = Condition.parse("photos/test-dim@2")
    assert dim == Condition("photos", "test-dim", level="2")
    assert str(dim) == "photos/test-dim@2"
    assert not dim.clean
    assert not dim.needs_model
    assert dim.counterpart == Condition("photos")
    assert dim.facts(seed=3) == {"corruption": "test-dim", "level": "2", "times": 2}
    assert Condition.parse("photos/test-dim").facts() == {"corruption": "test-dim", "times": 1}
    image = np.full((1, 16, 16, 3), 200, np.uint8)
    assert dim.apply(image, ids=["a"]).max() == 50
    assert pickle.loads(pickle.dumps(dim)) == dim
    cell = Cell({"name": "net"}, {"name": "photos"}, dim.facts())
    assert cell.condition_name == str(dim)
    assert Cell.from_json(cell.to_json()) == cell


def test_how_large_images_must_be() -> None:
    for text, least in (("x", 0), ("x/fog@3", 16), ("x/fog@2+snow@3", 16), ("x/rotate_frames@cifar/7", 32)):
        assert Condition.parse(text).least_side == least


def test_mistakes_in_a_shift_of_another_kind() -> None:
    with pytest.raises(OptionError, match="'much'"):
        Condition.parse("photos/test-dim@much")
    with pytest.raises(OptionError, match="has levels, not severities"):
        Condition("photos", "test-dim", 3)
    with pytest.raises(OptionError, match="has severities, not levels"):
        Condition("photos", "fog", 3, "3")
    with pytest.raises(OptionError, match=r"level.* 200\b"):
        Condition.parse("photos/test-dim@2 3")
    with pytest.raises(UnknownNameError, match="mean 'test-dim'"):
        Condition("photos", "test-dm")
    with pytest.raises(OptionError, match="got 'fog'"):
        register_shift("fog")
    with pytest.raises(OptionError, match="got 'weather'"):
        register_shift("weather")
