"""Files that are whole or absent, and what is in them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.errors import ImageFileError
from beaufort.images import FORMATS, draft, encode, is_leftover, remove_leftover, write_bytes
from beaufort.images import files as files_module


def noise(mode: str) -> Image.Image:
    pixels = np.random.default_rng(1).integers(0, 256, (20, 24, 4), np.uint8)
    return Image.fromarray(pixels).convert(mode)


@pytest.mark.parametrize("kind", [name for name, kind in FORMATS.items() if kind.lossless])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_lossless_formats_keep_every_value(kind: str, mode: str) -> None:
    image = noise(mode)
    if not FORMATS[kind].alpha:
        image = image.convert("RGB")
    back = Image.open(io.BytesIO(encode(image, FORMATS[kind])))
    np.testing.assert_array_equal(np.asarray(back), np.asarray(image))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_mode_can_be_written_as_every_format(kind: str, mode: str) -> None:
    content = encode(noise(mode), FORMATS[kind])
    assert Image.open(io.BytesIO(content)).size == (24, 20)
    assert content == encode(noise(mode), FORMATS[kind])


def test_transparent_pixels_are_white_in_jpeg() -> None:
    clear = Image.new("RGBA", (16, 16), (200, 0, 0, 0))
    back = Image.open(io.BytesIO(encode(clear, FORMATS["jpeg"])))
    assert np.asarray(back).min() == 255


def test_what_a_format_cannot_hold_is_told() -> None:
    with pytest.raises(ImageFileError, match="WEBP"):
        encode(Image.new("L", (20_000, 16)), FORMATS["webp"])


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
