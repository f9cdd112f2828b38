"""A small, fixed part of the torture tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import files, options, service


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", files.KINDS)
def test_sound_files_are_read(tmp_path: Path, kind: str) -> None:
    """A test of damaged files means nothing if sound files cannot be read."""
    path = tmp_path / files.KINDS[kind].name
    path.write_bytes(files.KINDS[kind].wrap(files.KINDS[kind].seeds()[0]))
    files.KINDS[kind].read(path)


@pytest.mark.parametrize("kind", files.KINDS)
def test_the_same_seed_gives_the_same_files(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = files.KINDS[kind].seeds()
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    assert files.KINDS[kind].seeds() == first
    assert files.KINDS[kind].wrap(first[0]) == files.KINDS[kind].wrap(first[0])


@pytest.mark.slow
def test_damaged_files() -> None:
    tally = files.torture_files(1500, seed=20261115)
    assert not tally.findings, "\n".join(tally.findings)
    assert tally.files == 1500 == tally.read.total() + tally.rejected.total()
    assert len(tally.rejected) == len(files.KINDS)


def test_the_watch_reports_violations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that starts a program, writes a file, or raises another kind of error is reported."""

    def bad(path: Path) -> None:
        import subprocess

        Path("left").touch()
        subprocess.run(["true"], check=False)

    monkeypatch.setitem(files.KINDS, "bad", files.Kind(lambda: [b"abc"], "a.bad", bad))
    case = "\n".join(files.torture_files(1, kinds=["bad"]).findings)
    for finding in ("started", "wrote", "OSError"):
        assert finding in case


def test_every_behavior_of_the_service() -> None:
    outcome = service.request()
    assert not outcome.findings, "\n".join(outcome.findings)
    assert outcome.requests == len(service.BEHAVIORS) == outcome.replies + outcome.errors


def test_invalid_addresses_and_options_of_services() -> None:
    outcome = service.request_with()
    assert not outcome.findings, "\n".join(outcome.findings)
    assert outcome.requests == outcome.errors


def test_invalid_options_of_models() -> None:
    outcome = options.load_with()
    assert not outcome.findings, "\n".join(outcome.findings)
    assert outcome.requests == outcome.replies + outcome.errors
    assert outcome.replies > 50
