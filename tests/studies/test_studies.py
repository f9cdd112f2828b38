"""Every study resumes, reports invalid options, and needs few packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.studies import STUDIES, StudySettings, reproduce
from beaufort.studies.engine import run_study
from beaufort.studies.predictions import read_predictions
from beaufort.studies.study_tasks import LostProcessError, StudyOutcome, StudyTask, run_tasks
from tests.commands import shows
from tests.studies.rehearsal import Rehearsal

FIXTURES = {
    "icons-50": "icons_50",
    "imagenet-c-enhancements": "enhancements",
    "mined-digits": "mined_digits",
    "mnist-c": "mnist_c",
}


def of_each(*studies: str) -> pytest.MarkDecorator:
    """A test for each study, in the process that has its rehearsal."""
    params = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in studies or FIXTURES]
    return pytest.mark.parametrize("rehearsal", params, indirect=True)


@pytest.fixture
def rehearsal(request: pytest.FixtureRequest) -> Rehearsal:
    found: Rehearsal = request.getfixturevalue(FIXTURES[request.param])
    return found


def test_every_study_is_tested() -> None:
    assert set(FIXTURES) == set(STUDIES)


@of_each()
def test_existing_results_are_reused(rehearsal: Rehearsal) -> None:
    """By the command, as it is typed."""
    options = ["--rehearse", "--seeds", str(rehearsal.seeds), "--device", "cpu", "--json"]
    places = [word for name, place in rehearsal.data.items() for word in ("--data", f"{name}={place}")]
    done = CliRunner().invoke(
        app, ["reproduce", rehearsal.study, *options, *places, "--output", str(rehearsal.folder)]
    )
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    assert (outcome["done"], outcome["left"], outcome["finished"]) == (0, 0, True)
    assert outcome["there"] > 0
    message = done.stderr.splitlines()
    assert "README.md written" in message
    assert all((rehearsal.folder / line.removesuffix(" written")).is_file() for line in message)


@of_each()
def test_pages_say_that_it_is_a_rehearsal(rehearsal: Rehearsal) -> None:
    for path in (rehearsal.folder / name for name in ("README.md", "index.html")):
        if path.name == "README.md" or rehearsal.study != "mined-digits":
            page = path.read_text(encoding="utf-8")
            assert "rehearsal" in page
            assert 'src="http' not in page


@of_each()
def test_runs_are_noted(rehearsal: Rehearsal) -> None:
    record = json.loads((rehearsal.folder / "study.json").read_text())
    assert record["rehearse"] is True
    first = record["runs"][0]
    command = f"beaufort reproduce {rehearsal.study} --device cpu --seeds {rehearsal.seeds} --jobs 1"
    assert first["command"] == f"{command} --rehearse"
    assert first["tasks"] > 0


@of_each()
def test_a_rehearsal_and_a_full_run_have_different_folders(rehearsal: Rehearsal) -> None:
    with pytest.raises(OptionError, match="a rehearsal"):
        rehearsal.again(rehearse=False)


@of_each()
def test_stopped_at_once(rehearsal: Rehearsal, tmp_path: Path) -> None:
    stopped = rehearsal.again(tmp_path, stop_after_s=0)
    assert (stopped.done, stopped.there, stopped.finished) == (0, 0, False)
    assert {path.name for path in tmp_path.iterdir()} == {"study.json"}


@pytest.mark.parametrize(
    ("rehearsal", "part", "file"),
    [
        pytest.param(study, part, file, marks=pytest.mark.xdist_group(study))
        for study, part, file in (
            ("icons-50", "style,resnet20", "predictions/resnet20@style-seed0.npz"),
            ("mnist-c", "pessimal", "predictions/conv1-seed0.npz"),
        )
    ],
    indirect=["rehearsal"],
)
def test_a_part_gives_the_predictions_of_the_whole(
    rehearsal: Rehearsal, part: str, file: str, tmp_path: Path
) -> None:
    made = rehearsal.again(tmp_path, only=part.split(","), seeds=1)
    assert made.finished
    whole, alone = read_predictions(rehearsal.folder / file), read_predictions(tmp_path / file)
    np.testing.assert_array_equal(whole.predicted, alone.predicted)


@pytest.mark.xdist_group("icons-50")
def test_processes_make_the_same_predictions(icons_50: Rehearsal, tmp_path: Path) -> None:
    """Only missing outputs are computed, here in another process."""
    folder, name = tmp_path / "copy", "resnet20@style-seed0"
    shutil.copytree(icons_50.folder, folder)
    (folder / "predictions" / f"{name}.npz").unlink()
    shutil.rmtree(folder / "models" / name)
    again = icons_50.again(folder, only=["style", "resnet20"], jobs=2)
    assert (again.done, again.there, again.left) == (1, 0, 0)
    one, other = (
        read_predictions(place / "predictions" / f"{name}.npz") for place in (icons_50.folder, folder)
    )
    np.testing.assert_array_equal(one.predicted, other.predicted)


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ["fig9"]}, r"only must name parts of {study} \(.*\), got 'fig9'"),
        ({"data": {"nothing": "x"}}, "data must be given as .*=PATH, got 'nothing'"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"jobs": 0}, "jobs must be a positive integer, got 0"),
    ],
)
def test_invalid_options_are_rejected(
    study: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if study == "mined-digits":
        pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")
    with pytest.raises(OptionError, match=message.format(study=study)):
        reproduce(study, tmp_path, rehearse=True, **options)
    assert not list(tmp_path.iterdir())


def test_errors_name_the_cause(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mnist-c'"):
        reproduce("mnistc", tmp_path)
    for study, message in (("mnist-c", "Conv1"), ("icons-50", "no predictions yet")):
        with pytest.raises(BeaufortError, match=message):
            reproduce(study, tmp_path / study, only=["page"], rehearse=True)
    assert CliRunner().invoke(app, ["reproduce", "mnist-c", "--data", "nowhere"]).exit_code == 2


@pytest.mark.parametrize("only", ["", " , "])
def test_an_empty_list_of_parts_is_not_all_of_them(
    only: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beaufort.studies.reproduce", lambda *_, **__: pytest.fail("it began"))
    made = CliRunner().invoke(app, ["reproduce", "mnist-c", "--only", only, "--output", str(tmp_path)])
    assert made.exit_code == 2
    assert shows(made.stderr, "only", "part", repr(only))


LIGHT = """
import json, sys
absent = {"cv2", "duckdb", "plotly", "pyarrow", "pydantic", "ray", "rich", "typer"}
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from beaufort.studies import reproduce
icons, digits, output = sys.argv[1:]
message, options = [], {"device": "cpu", "seeds": 1, "rehearse": True}
options |= {"data": {"icons-50": icons}, "only": ["style", "resnet20"], "log": message.append}
made = [vars(reproduce("icons-50", output + "/icons", **options))]
absent -= {"cv2", "pyarrow"}
options |= {"data": {"mnist": digits}, "only": ["pessimal"]}
made.append(vars(reproduce("mnist-c", output + "/digits", **options)))
print(json.dumps([made, message]))
"""


@pytest.mark.slow
@pytest.mark.xdist_group("icons-50")
def test_it_needs_little(icons: Path, digits: Path, tmp_path: Path) -> None:
    """A machine with a GPU often has torch and not much else; pages can be made elsewhere."""
    words = [sys.executable, "-c", LIGHT, str(icons), str(digits), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made, message = json.loads(done.stdout)
    assert made == [{"done": 1, "there": 0, "left": 0}, {"done": 2, "there": 0, "left": 0}]
    assert shows(message[1], "not installed", "--only page")
    assert (tmp_path / "digits" / "fig3.csv").is_file()
    reproduce("icons-50", tmp_path / "icons", only=["page"], rehearse=True)
    assert (tmp_path / "icons" / "accuracy.csv").is_file()


def wait_long(folder: Path, deadline: float | None) -> bool:
    """A task that records its process, and takes longer than the test."""
    (folder / f"{os.getpid()}.pid").touch()
    time.sleep(600)
    return True


def fail_after_one(folder: Path, deadline: float | None, *, place: int) -> bool:
    """A task that is made, or, from the second on, cannot be."""
    if place:
        raise OptionError("photos must be there")
    (folder / "0").touch()
    return True


def make_file(folder: Path, deadline: float | None, *, file: str, sees: str = "", lacks: str = "") -> bool:
    """A task that waits for one file, and cannot be made where another is not there yet."""
    if sees:
        _within(60, (folder / sees).exists)
    if lacks and not (folder / lacks).exists():
        raise OptionError(f"{lacks} must be there")
    (folder / file).touch()
    return True


def file_task(file: str, after: tuple[str, ...] | None = None, **options: str) -> StudyTask:
    call = "tests.studies.test_studies:make_file"
    return StudyTask(file, file, call, {"file": file, **options}, after=after)


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_wait_for_what_they_need(tmp_path: Path, jobs: int) -> None:
    own = [file_task("first"), file_task("second", ("first",), lacks="first")]
    last = file_task("last", lacks="second")  # says nothing, so it comes after the phase before it
    assert run_tasks([own, [last]], tmp_path, jobs=jobs) == StudyOutcome(done=3, there=0, left=0)


def test_tasks_wait_for_no_more_than_they_need(tmp_path: Path) -> None:
    """A task that takes long does not hold up a later phase that does not need it."""
    phases = [[file_task("long", sees="short"), file_task("first")], [file_task("short", ("first",))]]
    assert run_tasks(phases, tmp_path, jobs=2).finished


def not_made(folder: Path, deadline: float | None) -> bool:
    """A task that stopped at its deadline."""
    return False


def test_tasks_after_an_unfinished_one_are_left(tmp_path: Path) -> None:
    stopped = StudyTask("stopped", "stopped", "tests.studies.test_studies:not_made")
    tasks = [stopped, file_task("needs it", ("stopped",)), file_task("does not", ())]
    assert run_tasks([tasks], tmp_path, jobs=2) == StudyOutcome(done=1, there=0, left=2)
    assert (tmp_path / "does not").exists()


def end_process(folder: Path, deadline: float | None) -> bool:
    """A task whose process is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def test_the_task_of_a_killed_process_is_named(tmp_path: Path) -> None:
    tasks = [file_task("first"), StudyTask("large", "large", "tests.studies.test_studies:end_process")]
    with pytest.raises(LostProcessError, match=r"killed.*: large;"):
        run_tasks([[one] for one in tasks], tmp_path, jobs=2)
    assert (tmp_path / "first").exists()


def test_processes_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from beaufort.studies.study_tasks import StudyTask, run_tasks\n"
        "if __name__ == '__main__':\n"
        "    tasks = [StudyTask(n, n, 'tests.studies.test_studies:wait_long') for n in 'ab']\n"
        f"    run_tasks([tasks], Path({str(tmp_path)!r}), jobs=2)\n"
    )
    file = tmp_path / "killed.py"
    file.write_text(program)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    command = subprocess.Popen([sys.executable, str(file)], env={**os.environ, "PYTHONPATH": paths})
    try:
        workers = _within(60, lambda: found if len(found := list(tmp_path.glob("*.pid"))) == 2 else None)
    finally:
        command.kill()
        command.wait()
    pids = [int(path.stem) for path in workers]
    assert _within(20, lambda: not any(_lives(pid) for pid in pids))


def _within(seconds: float, look: Callable[[], Any]) -> Any:
    """Call `look` until it returns something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run_that_fails_is_noted_with_what_it_made(tmp_path: Path) -> None:
    tasks = [
        StudyTask(f"task {n}", str(n), "tests.studies.test_studies:fail_after_one", {"place": n})
        for n in (0, 1)
    ]
    code: Any = SimpleNamespace(plan=lambda *_: [tasks], study_files=lambda *_: [])
    settings = StudySettings(study="mnist-c")
    with pytest.raises(OptionError, match="photos must be there"):
        run_study(code, tmp_path, settings)
    (run,) = json.loads((tmp_path / "study.json").read_text())["runs"]
    assert run["tasks"] == 1
    with pytest.raises(
        OptionError, match="photos must be there"
    ):  # nothing more was made, so nothing is noted
        run_study(code, tmp_path, settings)
    assert json.loads((tmp_path / "study.json").read_text())["runs"] == [run]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"runs": []}',
        '{"rehearse": 0, "runs": []}',
        '{"rehearse": false, "runs": [{}]}',
    ],
)
def test_a_damaged_record_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(OptionError, match=r"study\.json.* record"):
        reproduce("icons-50", tmp_path, only=["page"])


def test_a_page_of_nothing_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no predictions yet"):
        reproduce("icons-50", tmp_path / "new", only=["page"])
    assert not (tmp_path / "new").exists()


def test_the_command_counts_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    for outcome, message in (
        (StudyOutcome(1, 0, 0), ["1", "0"]),
        (StudyOutcome(2, 1, 3), ["2", "1", "3"]),
    ):
        monkeypatch.setattr("beaufort.studies.reproduce", lambda *_, made=outcome, **__: made)
        assert re.findall(r"\d+", CliRunner().invoke(app, ["reproduce", "mnist-c"]).stdout) == message
