"""Names are unique, and errors suggest similar names."""

from __future__ import annotations

import pickle

import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import Registry, listed
from beaufort.corruptions import Chain, corruptions, expand_names


def test_taken_once() -> None:
    registry = Registry[int]("thing")
    registry.register("a", 1)
    with pytest.raises(OptionError, match="already registered"):
        registry.register("a", 2)
    assert registry["a"] == 1


def test_names_that_stand_for_something_else() -> None:
    registry = Registry[int]("thing")
    registry.reserve(["all"], "a list of things")
    with pytest.raises(OptionError, match="'all'"):
        registry.register("all", 1)
    assert "all" not in registry


@pytest.mark.parametrize(
    ("name", "owner"), [("weather", "a list of corruptions"), ("rotate_frames", "a shift")]
)
def test_no_corruption_hides_behind_a_list_or_a_shift(name: str, owner: str) -> None:
    """`--corruption weather` is the list: a corruption of that name would never be made."""
    import beaufort.suites.conditions  # noqa: F401  registers shifts

    with pytest.raises(OptionError, match=rf"{name!r}.*{owner}"):
        corruptions.register(name, corruptions["fog"])


def test_near_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fog'"):
        corruptions["fogg"]
    with pytest.raises(KeyError, match="gaussian_noise"):
        corruptions["gausian_noise"]
    with pytest.raises(UnknownNameError, match="available:"):
        corruptions["xyzzy"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weather", r"unknown corruption 'weather'.* list of corruptions$"),
        (
            "stylize",
            "unknown corruption 'stylize': it is the name of a shift; write stylize@LEVEL under 'shifts' of "
            "a suite, or the condition DATA/stylize@LEVEL$",
        ),
    ],
)
def test_names_of_other_things_are_reported(name: str, message: str) -> None:
    """`stripe` is not suggested for `stylize`."""
    import beaufort.suites.conditions  # noqa: F401  registers shifts

    with pytest.raises(UnknownNameError, match=message):
        corruptions[name]
    with pytest.raises(UnknownNameError, match=message.replace("$", r" \(in the chain ")):
        Chain.parse(f"{name}@2+fog@3")
    if name == "stylize":
        with pytest.raises(UnknownNameError, match=message):
            expand_names([name], kind="corruption")


def test_near_names_in_another_case() -> None:
    registry = Registry[int]("thing")
    for name in ("clahe", "Stretch", "STRETCH", "nlm"):
        registry.register(name, 1)
    for wrong, message in (("CLAHE", "'clahe'"), ("Clah", "'clahe'"), ("stretch", "'STRETCH' or 'Stretch'")):
        with pytest.raises(UnknownNameError, match=rf"'{wrong}'.*{message}"):
            registry[wrong]


def test_other_names_in_another_case() -> None:
    """`stripe` is not suggested for `Stylize` either."""
    registry = Registry[int]("thing")
    registry.register("stripe", 1)
    registry.reserve(["stylize"], "a shift", "write stylize@LEVEL")
    message = "unknown thing 'Stylize': 'stylize' is the name of a shift; write stylize@LEVEL$"
    with pytest.raises(UnknownNameError, match=message):
        registry["Stylize"]
    assert "did you mean 'stylize'" in registry.unknown_message("Stylize", {"stripe": 1, "stylize": 2})


def test_all_names_are_listed_alphabetically() -> None:
    registry = Registry[int]("thing")
    for name in ("water", "air", "fire"):
        registry.register(name, 1)
    with pytest.raises(UnknownNameError, match="'xyzzy'"):
        registry["xyzzy"]
    assert list(registry) == ["water", "air", "fire"]


def test_mapping() -> None:
    assert len(corruptions) == 47
    assert "fog" in corruptions
    assert "dog" not in corruptions
    assert corruptions.get("dog") is None


def test_corruptions_pickle_by_name() -> None:
    assert pickle.loads(pickle.dumps(corruptions["fog"])) is corruptions["fog"]


def test_a_long_list_is_cut_off() -> None:
    assert listed(map(str, range(3))) == "0, 1, 2"
    assert listed(map(str, range(33))).endswith(", 28, 29 and 3 others")
