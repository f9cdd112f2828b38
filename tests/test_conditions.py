"""Conditions: texts that read back, images that are corrupted as named, facts that tell pixels apart."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.conditions import DATASET_NAME, Condition
from beaufort.corruptions import SCALES, corruptions
from beaufort.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.testing._contracts import digit, picture

DATASETS = st.from_regex(DATASET_NAME, fullmatch=True)
NAMES = st.sampled_from(sorted(corruptions))
CONDITIONS = st.one_of(
    st.builds(Condition, DATASETS),
    st.builds(Condition, DATASETS, NAMES),
    st.builds(Condition, DATASETS, NAMES, st.integers(1, 5)),
)


@given(CONDITIONS)
def test_text_reads_back(condition: Condition) -> None:
    assert Condition.parse(str(condition)) == condition
    assert pickle.loads(pickle.dumps(condition)) == condition


@given(st.one_of(st.text(), st.from_regex(r"[a-z.]+/(fog|snow|fgo)@[0-9]{1,2}", fullmatch=True)))
def test_any_text_is_a_condition_or_a_known_error(text: str) -> None:
    try:
        told = str(Condition.parse(text))
    except BeaufortError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert told == text


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
        3,
        None,
    ],
)
def test_not_a_condition(text: object) -> None:
    with pytest.raises(OptionError) as caught:
        Condition.parse(text)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"{text!r} is not a condition; write 'dataset' or 'dataset/corruption@severity', "
        "for example 'imagenet-val/fog@3'"
    )


def test_unknown_corruption_is_answered_with_near_names() -> None:
    with pytest.raises(UnknownNameError, match="'snwo' is not a corruption; did you mean 'snow'"):
        Condition.parse("imagenet-val/snwo@3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a/b",), "'a/b' is not the name of a data set"),
        (("",), "'' is not the name"),
        ((None,), "None is not the name"),
        (("a", "fog", 6), "the severity 6 came"),
        (("a", "fog", True), "the severity True came"),
        (("a", "fog", 3.0), "the severity 3.0 came"),
        (("a", None, 3), "without a corruption"),
        (("a", "fgo", 3), "did you mean 'fog'"),
    ],
)
def test_only_what_has_a_text_can_be_made(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(BeaufortError, match=says):
        Condition(*arguments)  # type: ignore[arg-type]


def test_numpy_severity_becomes_a_number() -> None:
    condition = Condition("a", "fog", np.int64(3))  # type: ignore[arg-type]
    assert type(condition.severity) is int
    assert str(condition) == "a/fog@3"


@pytest.mark.parametrize("corruption", ["gaussian_noise", "contrast", "motion_blur"])
def test_apply_is_the_corruption(corruption: str) -> None:
    images = np.stack([picture(32, 32), picture(32, 32)[::-1]])
    ids = ["a", "b"]
    got = Condition("cifar10-test", corruption, 4).apply(images, ids=ids, seed=3, scale="cifar", jobs=2)
    assert np.array_equal(got, corruptions[corruption](images, 4, ids=ids, seed=3, scale="cifar"))


def test_apply_without_severity_is_the_published_one() -> None:
    digits = np.stack([digit(), digit()[::-1]]).reshape(2, 28, 28, 1)
    got = Condition("mnist-test", "shear").apply(digits, ids=[0, 1])
    assert np.array_equal(got, corruptions["shear"](digits, 2, ids=[0, 1], scale="mnist"))


def test_clean_is_the_same_array() -> None:
    images = picture(32, 32)
    assert Condition("cifar10-test").apply(images, ids=[0]) is images


def test_five_severities_and_none_named() -> None:
    condition = Condition.parse("imagenet-val/fog")
    for call in (
        lambda: condition.apply(picture(64, 64), ids=[0]),
        lambda: condition.facts(scale="tiny"),
    ):
        with pytest.raises(
            OptionError, match=r"at the scale 'tiny' fog has five; write 'imagenet-val/fog@3'"
        ):
            call()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("corruption", sorted(corruptions))
def test_facts_are_json_and_tell_severities_apart(corruption: str, scale: str) -> None:
    if scale not in corruptions[corruption].recipes:
        with pytest.raises(OptionError, match="has no constants for the scale"):
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


def test_seed_of_what_is_not_random_is_no_fact() -> None:
    contrast = Condition.parse("a/contrast@2")
    assert contrast.facts(scale="cifar", seed=1) == contrast.facts(scale="cifar", seed=2)
    images = picture(32, 32)
    assert np.array_equal(contrast.apply(images, ids=[0], seed=1), contrast.apply(images, ids=[0], seed=2))


def test_facts_of_clean() -> None:
    assert Condition("a").facts() == Condition("b").facts(scale="cifar", seed=3) == {"corruption": None}


def test_facts_need_a_side_where_it_matters() -> None:
    with pytest.raises(OptionError, match="give the short side"):
        Condition.parse("a/fog@1").facts()
    with pytest.raises(OptionError, match=r"the seed 1.5 came"):
        Condition.parse("a/fog@1").facts(scale="cifar", seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"scale must be one of .*, got 'huge'"):
        Condition.parse("a/fog@1").facts(scale="huge", side=32)
