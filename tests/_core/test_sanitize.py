"""Untrusted text: terminal escapes, secrets, and characters without an encoding."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort._core.errors import AssetError, BeaufortError, ImageFileError, OptionError, UnknownNameError
from beaufort._core.text import (
    command_without_secrets,
    encodable,
    printable,
    spreadsheet_cell,
    without_secrets,
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("http://host/c?key=SECRET", "http://host/c"),
        ("http://host/c?key=SECRET#SECRET", "http://host/c"),
        ("https://SECRET@host:8080/c", "https://host:8080/c"),
        ("s3://id:SECRET@bucket/store", "s3://bucket/store"),
        ("git+ssh://me:SECRET@host/x", "git+ssh://host/x"),
        ("two: http://a:SECRET@h/x, ftp://b:SECRET@i", "two: http://h/x, ftp://i"),
        ("'http://a:SECRET@h/x?SECRET' came", "'http://h/x' came"),
        ("http://h/#access_token=SECRET", "http://h/"),
        ("http://a:SE@CRET@h/x", "http://h/x"),
        ("--set token=SECRET", "--set token=…"),
        ("--set=HF_TOKEN=SECRET x", "--set=HF_TOKEN=… x"),
        ("api_key=SECRET, password=SECRET", "api_key=…, password=…"),
        ("Authorization: Bearer SECRETSECRET", "Authorization: Bearer …"),
    ],
)
def test_secrets_go(text: str, kept: str) -> None:
    assert without_secrets(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "hf://org/name#test",
        "range=0..255",
        "a/b?c",
        "me@example.org",
        "imagenet-c:root#fog@3",
        "a token of it",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert without_secrets(text) == text


@given(st.text())
def test_shown_text_is_harmless(text: str) -> None:
    shown = printable(without_secrets(text))
    assert shown.isprintable()
    shown.encode()
    assert without_secrets(without_secrets(text)) == without_secrets(text)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_text_can_be_made_encodable(text: str) -> None:
    encodable(text).encode()
    assert printable(text).isprintable()


def test_lines_can_be_kept() -> None:
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_errors_keep_no_secrets() -> None:
    for kind in (BeaufortError, ImageFileError, OptionError, AssetError, UnknownNameError):
        error = kind("no response from http://me:SECRET@host/x?key=SECRET")
        assert str(error) == "no response from http://host/x"
        assert "SECRET" not in repr(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_commands_keep_no_secrets() -> None:
    words = [
        "beaufort",
        "run",
        "--model",
        "http://h/c?key=SECRET",
        "--set",
        "token=MY_VARIABLE",
        "a\x1b\udcff",
    ]
    kept = command_without_secrets(words)
    assert kept == ["beaufort", "run", "--model", "http://h/c", "--set", "token=…", "a\\x1b\\udcff"]


def test_formulas_become_text() -> None:
    assert [spreadsheet_cell(text) for text in ("=cmd()", "@x", "net")] == ["'=cmd()", "'@x", "net"]


@pytest.mark.parametrize(
    "piece", ["a.", "a", "http://", "token", "a@", "://", "bearer ", "token=a ", "?#", "basic", " "]
)
def test_hostile_text_is_searched_in_no_time(piece: str) -> None:
    """Where every place led to the end of the text, this would take minutes; it takes a tenth of a second."""
    start = time.thread_time()
    for text in (piece * 20_000, f"token{piece * 20_000}", f"http://{piece * 20_000}"):
        without_secrets(text)
    assert time.thread_time() - start < 20
