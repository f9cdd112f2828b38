"""A small, fixed part of the thousand kills, and tests that its checks detect losses."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import shows
from tests.torture.disasters import DISASTERS, can_mount
from tests.torture.jobs import KINDS, Campaign, Field, Kind
from tests.torture.places import Places
from tests.torture.report_of_kills import in_short, write_report
from tests.torture.thousand import FRACTIONS, Ledger

SEED = 20261116
LOCAL = Kind("local", "files")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with pytest.MonkeyPatch.context() as patch, Places() as places:
        patch.setenv("BEAUFORT_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            patch.setenv(name, "")  # what is set meanwhile goes with the block
        yield places


@pytest.fixture(scope="module")
def field(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with Field(LOCAL, tmp_path_factory.mktemp("local"), places) as field:
        yield field


@pytest.fixture(scope="module")
def wanted(field: Field) -> dict[Any, Any]:
    return field.undisturbed()


def test_kills_of_a_job_on_files(field: Field, wanted: dict[Any, Any]) -> None:
    campaigns = [field.campaign(number, SEED, wanted) for number in range(2)]
    assert [campaign.findings for campaign in campaigns] == [[]] * 2
    assert all(campaign.rows == len(wanted) == 96 for campaign in campaigns)


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["local", "processes"])
def test_kills_of_a_job_into_s3(engine: str, places: Places, wanted: dict[Any, Any], tmp_path: Path) -> None:
    """The Ray engine has its own kills in tests/evaluation/test_ray.py."""
    for name in ("s3fs", "moto"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    with Field(Kind(engine, "s3"), tmp_path / "field", places) as field:
        campaign = field.campaign(0, SEED, wanted)
    assert campaign.findings == []
    assert campaign.rows == len(wanted)


@pytest.fixture(scope="module")
def second(field: Field, places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with Field(LOCAL, tmp_path_factory.mktemp("second"), places) as second:
        second.data = field.data
        yield second


@pytest.mark.skipif(not can_mount(), reason="mounting a file system in memory needs root")
@pytest.mark.parametrize(
    "what",
    [pytest.param(one, marks=pytest.mark.nightly if n else ()) for n, one in enumerate(DISASTERS)],
)
def test_disasters(what: str, field: Field, second: Field, wanted: dict[Any, Any]) -> None:
    campaign = DISASTERS[what](field, second, random.Random(SEED), wanted)
    assert campaign.findings == []
    assert campaign.rows == len(wanted)


# What would be found


@pytest.fixture
def done(field: Field, wanted: dict[Any, Any]) -> Field:
    field.begin("done")
    assert not field.ended_badly(field.run())
    return field


def test_a_lost_row_would_be_found(done: Field, wanted: dict[Any, Any]) -> None:
    campaign = Campaign()
    done.compare(campaign, "then", wanted, whole=True)
    assert not campaign.findings
    done.compare(campaign, "then", wanted | {("cell", 0): ()}, whole=True)
    assert len(campaign.losses) == 1
    done.compare(campaign, "then", {**wanted, next(iter(wanted)): ()}, whole=False)
    assert len(campaign.losses) == 2


def test_left_files_are_detected(done: Field) -> None:
    campaign = Campaign()
    (Path(done.location) / "left.tmp").write_bytes(b"x")
    done.tidy(campaign, "then")
    assert campaign.losses == ["then: ./left.tmp was not removed"]


def test_an_uncaught_error_would_be_found(done: Field, wanted: dict[Any, Any]) -> None:
    campaign = Campaign()
    damaged = next(Path(done.location).rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    done.compare(campaign, "then", wanted, whole=True)
    assert len(campaign.uncaught) == 1


# What is written down


def test_the_ledger_resumes(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "done.jsonl")
    campaign = Campaign(losses=["gone"], rows=96)
    campaign.killed.update(driver=2, worker=1)
    ledger.add(str(LOCAL), campaign, 1.5)
    with ledger.path.open("a") as file:
        file.write('{"what": "half a li')
    again = Ledger(ledger.path)
    assert (again.campaigns(str(LOCAL)), again.kills(str(LOCAL)), again.findings) == (1, 3, ["gone"])
    write_report(tmp_path, again.lines, kills=1000, seed=7)
    facts = json.loads((tmp_path / "kills.json").read_text())
    assert facts["all"]["kills"] == 3
    assert shows((tmp_path / "kills.md").read_text(), "Not complete", "1,000 kills")
    assert (
        "| local engine, store of files | 1 | 3 | 2 | 1 | 0 | 0 | 96 | 1 | 0 | 0 | 2 |"
        in (tmp_path / "kills.md").read_text()
    )


_TRACE = """Traceback (most recent call last):
  File "/somewhere/lib/python3.11/site-packages/other.py", line 5, in write
    raise ConnectionResetError("Cannot write to /somewhere/else/pipe")
ConnectionResetError: Cannot write to /somewhere/else/pipe
"""


@pytest.mark.parametrize(
    ("finding", "short"),
    [
        ("job 7: 3 rows too many", "job 7: 3 rows too many"),
        ("job 7: /mnt/a b/store/x.parquet is left", "job 7: a b/store/x.parquet is left"),
        (
            f"job 7: exit code 0: cut\n{_TRACE}a table\n",
            "exit code 0: ConnectionResetError: Cannot write to pipe",
        ),
        (f"job 7: exit code 0: {_TRACE}{_TRACE.replace('pipe', 'pipe 2')}", "Cannot write to pipe 2"),
        ("job 7: exit code -9: first\nlast", "job 7: exit code -9: last"),
        ("job 7: exit code -9: ", "job 7: exit code -9:"),
        ("job 7: OSError: s3://bucket/a/b", "job 7: OSError: s3://bucket/a/b"),
    ],
)
def test_a_finding_is_one_line_without_local_paths(finding: str, short: str, tmp_path: Path) -> None:
    case = in_short(finding)
    assert case.startswith("job 7: ")
    assert case.endswith(short)
    assert "\n" not in case
    assert "somewhere" not in case
    Ledger(tmp_path / "done.jsonl").add(str(LOCAL), Campaign(uncaught=[finding]), 1.5)
    write_report(tmp_path, Ledger(tmp_path / "done.jsonl").lines, kills=1000, seed=7)
    assert f"```\n{case}\n```" in (tmp_path / "kills.md").read_text()


def test_a_long_finding_is_cut() -> None:
    assert in_short("word " * 1000).endswith("word …")
    assert len(in_short("word " * 1000)) <= 400


def test_kills_are_divided_among_workers() -> None:
    assert set(FRACTIONS) == set(KINDS)
    assert sum(FRACTIONS.values()) == pytest.approx(1)
