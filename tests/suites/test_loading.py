"""Every mistake in a suite file is reported with its line, all at once, and no file can do harm."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.errors import BeaufortError
from beaufort.suites import SHIFT_SUITE_NAMES, SUITE_NAMES, SuiteError, parse_suite, read_suite
from beaufort.suites._yaml import read_yaml

GOOD = """\
name: mine
version: 1
dataset: imagenet-val
scale: imagenet
corruptions:
  - fog
  - snow
severities: [1, 3, 5]
baseline: alexnet
metrics: [mce]
"""


def mistakes(content: str | bytes) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        parse_suite(content, source="my.yaml")
    return [mistake.located("my.yaml") for mistake in caught.value.mistakes]


def test_valid_files() -> None:
    assert len(parse_suite(GOOD).conditions()) == 7
    assert parse_suite("\ufeff" + GOOD.replace("\n", "\r\n")) == parse_suite(GOOD)
    assert parse_suite("# a remark\n---\n" + GOOD + "...\n") == parse_suite(GOOD)
    assert parse_suite(GOOD + "clean: no\n").clean is False


REPLACED = {
    "severity out of range": (
        "severities: [1, 3, 5]",
        "severities: [1, 6]",
        "8: severities: severity must be a number from 1 to 5, got 6",
    ),
    "severity on a line of its own": (
        "severities: [1, 3, 5]",
        "severities:\n  - 1\n  - true",
        "10: severities: severity must be a number from 1 to 5, got True",
    ),
    "severity as text": (
        "[1, 3, 5]",
        "[1, '3']",
        "8: severities: severity must be a number from 1 to 5, got '3'",
    ),
    "octal severity": (
        "[1, 3, 5]",
        "[1, 03]",
        "8: severities: severity must be a number from 1 to 5, got '03'",
    ),
    "a chain among the corruptions": (
        "corruptions:",
        "corruptions:\n  - fog@2+snow@3",
        "6: corruptions: 'fog@2+snow@3' is a chain, which has its own severities; write it under 'shifts'",
    ),
    "a published baseline between severities": (
        "severities: [1, 3, 5]",
        "severities: [1, 2.5]",
        "9: baseline: the errors of alexnet are known at integer severities only, not at 2.5",
    ),
    "severity twice": ("[1, 3, 5]", "[1, 3, 1]", "8: severities: 1 is in the list already"),
    "severities not a list": (
        "[1, 3, 5]",
        "3",
        "8: severities: must be a list of severities, such as [1, 2, 3, 4, 5], or published, got 3",
    ),
    "no severities": ("[1, 3, 5]", "[]", "8: severities: must be a list of severities, such as [1, 2"),
    "published at another scale": (
        "[1, 3, 5]",
        "published",
        "8: severities: 'published' is for the scale 'mnist'",
    ),
    "unknown corruption": (
        "- snow",
        "- sonw",
        "7: corruptions: unknown corruption 'sonw'; did you mean 'snow'",
    ),
    "corruption that is a shift": (
        "- snow",
        "- stylize",
        "7: corruptions: unknown corruption 'stylize': it is the name of a shift; write stylize@LEVEL",
    ),
    "corruption twice": ("- snow", "- fog", "7: corruptions: fog is in the list already"),
    "corruption in a subset": ("- snow", "- weather", "7: corruptions: fog is in the list already"),
    "corruption that is a number": ("- snow", "- 7", "7: corruptions: unknown corruption 7; available:"),
    "corruption that is a list": ("- snow", "- [a]", "7: corruptions: unknown corruption ['a']"),
    "corruption of digits": (
        "- snow",
        "- stripe",
        "7: corruptions: stripe has no constants for the scale 'imagenet'; it has them for mnist",
    ),
    "no corruptions": (
        "\n  - fog\n  - snow",
        "",
        "5: corruptions: has no value",
    ),
    "unknown key": ("severities:", "severites:", "8: unknown key 'severites'; did you mean 'sev"),
    "missing key": ("scale: imagenet\n", "", "1: 'scale' is missing; write for example 'scale: imagenet'"),
    "key twice": ("baseline:", "version: 1\nbaseline:", "9: version: duplicate key, first used on line 2"),
    "key that is a number": ("baseline:", "3: a\nbaseline:", "9: a key must be text, got 3"),
    "merge key": ("baseline:", "<<: a\nbaseline:", "9: unknown key '<<'"),
    "unknown scale": (
        "scale: imagenet",
        "scale: imagnet",
        "4: scale: unknown scale 'imagnet'; did you mean",
    ),
    "no scale": ("scale: imagenet", "scale:", "4: scale: has no value"),
    "version with a point": ("version: 1", "version: 1.0", "2: version: must be a positive integer, got 1.0"),
    "version zero": ("version: 1", "version: 0", "2: version: must be a positive integer, got 0"),
    "endless version": (
        "version: 1",
        f"version: {'9' * 5000}",
        "2: version: must be a positive integer, got '999",
    ),
    "name that is a number": (
        "name: mine",
        "name: 2024",
        "1: name: must consist of letters, digits",
    ),
    "name with a slash": (
        "name: mine",
        "name: ../mine",
        "1: name: must consist of letters, digits, '-', '_' and '.' and start with a letter or digit",
    ),
    "name that is taken": ("name: mine", "name: mnist-c", "1: name: 'mnist-c' is a published suite"),
    "title that steers a terminal": (
        "baseline:",
        'title: "\\e[2J"\nbaseline:',
        "9: title: must be one line of text, got '\\x1b[2J'",
    ),
    "clean neither": ("baseline:", "clean: maybe\nbaseline:", "9: clean: must be true or false, got 'maybe'"),
    "unknown step": (
        "baseline:",
        "prepare: [resize 256, corp 224]\nbaseline:",
        "9: prepare: a step must have a form such as 'resize 256'",
    ),
    "crop too large": (
        "baseline:",
        "prepare: [resize 224, crop 256]\nbaseline:",
        "9: prepare: 'crop 256' cuts out more than the 224 pixels",
    ),
    "unknown metric": ("[mce]", "[mse]", "10: metrics: unknown metric 'mse'; did you mean 'mce'"),
    "metric with no baseline by that word": (
        "baseline: alexnet",
        "baseline: none",
        "10: metrics: mce divides by the errors of a baseline",
    ),
    "metric without baseline": (
        "baseline: alexnet\n",
        "",
        "9: metrics: mce divides by the errors of a baseline",
    ),
    "metric without clean": (
        "metrics: [mce]",
        "clean: false\nmetrics: [relative_mce]",
        "11: metrics: relative_mce needs the clean images",
    ),
    "clean counted and not there": (
        "metrics:",
        "clean: false\nclean_in_mean: true\nmetrics:",
        "11: clean_in_mean: the clean images are not part of the suite",
    ),
    "tag": (
        "baseline: alexnet",
        "baseline: !!python/object/apply:os.system [touch harm]",
        "9: baseline: tags are not supported, got 'tag:yaml.org,2002:python/object/apply:os.system'",
    ),
    "alias": ("[1, 3, 5]", "&s [1, *s]", "8: severities: aliases are not supported"),
    "alias of nothing": ("[1, 3, 5]", "*s", "8: this is not YAML: found undefined alias 's'"),
    "tab": ("version: 1", "\tversion: 1", "2: this is not YAML: "),
    "open bracket": ("[1, 3, 5]", "[1, 3, 5", "9: this is not YAML: while parsing a flow sequence"),
    "colon in a value": (
        "name: mine",
        "name: mine: too",
        "1: this is not YAML: mapping values are not allowed",
    ),
    "character": ("- snow", "- sn\x07ow", "7: the character U+0007 is not allowed"),
    "second document": ("metrics:", "---\nmetrics:", "10: this is not YAML: expected a single document"),
    "deep": ("[1, 3, 5]", "[" * 5000, "1: this is nested too deeply"),
    "long": ("[1, 3, 5]", f"[{'1,' * 5000}]", "8: a suite must have at most 2000"),
}


@pytest.mark.parametrize("case", REPLACED)
def test_one_mistake(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old, new, expected = REPLACED[case]
    assert old in GOOD
    found = mistakes(GOOD.replace(old, new, 1))
    assert found[0].startswith(f"my.yaml:{expected}"), found
    assert len(found) == 1, found
    assert all(len(one) < 700 and "\n" not in one for one in found)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "1: the file is empty"),
        ("# nothing but a remark\n", "1: the file is empty"),
        ("~\n", "1: the file is empty"),
        ("\n- fog\n", "2: a suite must consist of lines 'key: value', such as 'name: my-suite', got a list"),
        ("fog", "1: a suite must consist of lines 'key: value', such as 'name: my-suite', got text"),
        (b"name: a\ntitle: caf\xe9\n", "2: this is not UTF-8 text; save the file as UTF-8"),
        (GOOD.encode("utf-16"), "1: this is not UTF-8 text"),
        ("#" * 100_001, "1: the file has more than 100000 bytes"),
        ("&a [*a]", "1: aliases are not supported"),
    ],
)
def test_whole_files(content: str | bytes, expected: str) -> None:
    assert mistakes(content)[0].startswith(f"my.yaml:{expected}")


def test_all_at_once_in_the_order_of_lines() -> None:
    text = (
        GOOD.replace("mine", "a b")
        .replace("snow", "sonw")
        .replace("[1, 3, 5]", "[0, 6]")
        .replace("mce", "me")
    )
    assert [one.split(":")[1] for one in mistakes(text)] == ["1", "7", "8", "8", "10"]


def test_many_mistakes_are_cut_in_the_message_only() -> None:
    text = GOOD.replace("[1, 3, 5]", f"[{', '.join(['9'] * 100)}]")
    with pytest.raises(SuiteError) as caught:
        parse_suite(text)
    assert len(caught.value.mistakes) == 100
    assert str(caught.value).splitlines()[-1] == "and 80 more"


def test_nested_aliases_are_not_expanded() -> None:
    """It would never end: there are 9**29 texts in it."""
    layers = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    assert mistakes("a0: &a0 x\n" + "\n".join(layers))


def mistake_lines(content: str | bytes) -> list[int] | None:
    """The lines of the mistakes; None for a suite that has none."""
    try:
        parse_suite(content)
    except SuiteError as error:
        return [mistake.line or 0 for mistake in error.mistakes]
    return None


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_content_is_a_suite_or_mistakes(content: str | bytes) -> None:
    assert mistake_lines(content) is None or min(mistake_lines(content) or [0]) >= 1


LINES = st.lists(
    st.tuples(
        st.sampled_from(
            ["name", "version", "scale", "corruptions", "severities", "clean", "prepare", "metrics"]
        ),
        st.sampled_from(
            ["", "1", "fog", "[fog]", "[1, 2]", "{a: 1}", "[[1]]", "null", "yes", ".inf", "1:30", "!x y"]
        ),
    )
)


@given(LINES)
def test_any_values_are_a_suite_or_mistakes(lines: list[tuple[str, str]]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in lines)
    assert max(mistake_lines(text) or [1]) <= len(lines) + 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(BeaufortError, match="must be a file"):
        read_suite(tmp_path / "pipe.yaml")


def test_published_suites_are_parsed_like_files() -> None:
    published = sorted(Path(str(files("beaufort.suites") / "data")).rglob("*.yaml"))
    assert len(published) == len((*SUITE_NAMES, *SHIFT_SUITE_NAMES))
    for file in published:
        content = file.read_bytes()
        assert read_yaml(content, file.name, published=True) == read_yaml(content, file.name)
