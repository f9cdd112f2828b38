"""Files are written completely or not at all, and are flushed to disk."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from beaufort._core import files as files_module
from beaufort._core.errors import OptionError
from beaufort._core.files import draft, is_leftover, put_in_place, remove_leftover, write_bytes, write_output


def test_a_file_appears_with_its_folders(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a" / "b" / "c.png", b"content")
    assert (tmp_path / "a" / "b" / "c.png").read_bytes() == b"content"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["c.png"]


def test_a_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    write_bytes(tmp_path / "ours", b"")
    (tmp_path / "plain").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_file_leaves_nothing_and_keeps_the_old(tmp_path: Path, error: BaseException) -> None:
    write_bytes(tmp_path / "a", b"old")

    def fail() -> None:
        with draft(tmp_path / "a") as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def leftover(folder: Path, pid: int, *, host: str | None = None, token: str = "0" * 8) -> Path:
    path = folder / f".beaufort-{host or files_module._HOST}-{pid}-{token}-0.part"
    path.write_bytes(b"half")
    return path


def test_drafts_of_dead_processes_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert remove_leftover(leftover(tmp_path, dead.pid))
    assert remove_leftover(leftover(tmp_path, os.getpid()))  # same number, another life
    assert not list(tmp_path.iterdir())


def test_drafts_that_may_be_written_to_stay(tmp_path: Path) -> None:
    assert not remove_leftover(leftover(tmp_path, os.getppid()))
    assert not remove_leftover(leftover(tmp_path, os.getpid(), token=files_module._TOKEN))
    elsewhere = leftover(tmp_path, 1, host="f" * 8)
    assert not remove_leftover(elsewhere)
    os.utime(elsewhere, (0, 0))
    assert remove_leftover(elsewhere)


def test_other_files_are_never_leftovers(tmp_path: Path) -> None:
    (tmp_path / ".beaufort-notes.part").touch()
    assert not is_leftover(".beaufort-notes.part")
    assert not remove_leftover(tmp_path / ".beaufort-notes.part")


def test_the_file_and_its_folders_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content before it has its name, and every folder that got a new name after that."""
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        where = Path(f"/proc/self/fd/{descriptor}").readlink()
        kind = "folder " if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append(kind + (where.name if kind == "folder " else ""))
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        steps.append(f"name {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    write_bytes(tmp_path / "a" / "b" / "c", b"content")
    assert steps == [f"folder {tmp_path.name}", "folder a", "file", "name c", "folder b"]
    steps.clear()
    (tmp_path / "passing").write_bytes(b"more")
    put_in_place(tmp_path / "passing", tmp_path / "d")
    assert steps == ["file", "name d", f"folder {tmp_path.name}"]


@pytest.mark.parametrize(("number", "passes"), [(errno.EINVAL, True), (errno.EIO, False)])
def test_a_file_system_that_cannot_sync_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    if passes:
        write_bytes(tmp_path / "a", b"content")
        assert (tmp_path / "a").read_bytes() == b"content"
    else:
        with pytest.raises(OSError, match="Input/output"):
            write_bytes(tmp_path / "a", b"content")


def test_writing_output_removes_leftovers(tmp_path: Path) -> None:
    left = tmp_path / f".beaufort-{files_module._HOST}-{2**22 + 1}-{'0' * 8}-0.part"
    left.write_bytes(b"half")
    write_output(tmp_path / "page.html", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_an_output_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OptionError, match=r"page\.html.*No"):
        write_output(tmp_path / "page.html", b"whole")
    with pytest.raises(OptionError, match="output must be a file"):
        write_output(tmp_path, b"whole")
    assert not list(tmp_path.iterdir())


def test_drafts_of_ended_processes_are_removed_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the functions of Windows that tell whether a process runs, as they are documented."""
    import ctypes

    from beaufort._core import files

    running, ended, foreign = 4001, 4002, 4003
    closed: list[int] = []

    class Kernel:
        def OpenProcess(self, access: int, inherit: bool, pid: int) -> int:  # noqa: N802
            assert (access, inherit) == (0x1000, False)
            return {running: 11, ended: 12}.get(pid, 0)

        def GetExitCodeProcess(self, handle: int, code: object) -> int:  # noqa: N802
            code._obj.value = {11: 259, 12: 1}[handle]  # type: ignore[attr-defined]
            return 1

        def CloseHandle(self, handle: int) -> int:  # noqa: N802
            closed.append(handle)
            return 1

    monkeypatch.setattr("os.name", "nt")
    monkeypatch.setattr(ctypes, "WinDLL", lambda *_, **__: Kernel(), raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 5, raising=False)
    assert [files._alive(pid) for pid in (running, ended, foreign)] == [True, False, True]
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 87, raising=False)
    assert not files._alive(foreign)
    assert closed == [11, 12]
    monkeypatch.undo()

    monkeypatch.setattr(files, "_alive", lambda pid: pid == running)
    drafts = [tmp_path / f".beaufort-{files._HOST}-{pid}-{'ab' * 4}-0.part" for pid in (running, ended)]
    for path in drafts:
        path.write_bytes(b"x")
    files.remove_leftovers(tmp_path)
    assert [path.exists() for path in drafts] == [True, False]


def test_files_are_locked_without_fcntl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, the first byte is locked by `msvcrt`."""
    import sys
    from types import SimpleNamespace

    from beaufort._core.files import lock_file

    with (tmp_path / "lock").open("a") as one, (tmp_path / "lock").open("a") as other:
        lock_file(one, wait=False)
        with pytest.raises(BlockingIOError):
            lock_file(other, wait=False)
    calls: list[tuple[int, int]] = []
    fake = SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=lambda _, how, size: calls.append((how, size)))
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    with (tmp_path / "lock").open("a") as file:
        lock_file(file, wait=False)
        lock_file(file, wait=True)
    assert calls == [(2, 1), (1, 1)]
