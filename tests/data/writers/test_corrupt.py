"""Corruption of directories: layout, resuming, and bad files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from PIL import Image

import beaufort
from beaufort._core import files
from beaufort._core.errors import AssetError, OptionError, UnknownNameError
from beaufort.corruptions import corruptions
from beaufort.data.images import FORMATS, encode
from beaufort.data.writers import Outcome, corrupt_tree
from beaufort.data.writers.image_tree import run_bounded
from tests.data.writers.outputs import contents, opened

FAST: dict[str, Any] = {"names": ["brightness", "gaussian_noise"], "severities": [1, 4]}


def messages(report: Outcome) -> dict[str, str]:
    return dict(report.failures)


def test_outputs_lie_where_imagenet_c_has_them(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = corrupt_tree(tree, out, **FAST)
    assert report == Outcome(done=20, ignored=1)
    names = {"cat/a.png", "cat/b.jpg", "cat/deep/c.JPEG", "dog/a.png", "dog/d.png"}
    expected = {f"{c}/{s}/{name}" for c in FAST["names"] for s in (1, 4) for name in names}
    assert set(contents(out)) == expected | {"beaufort.json"}


def test_pixels_are_those_of_the_corruption_with_the_path_as_identity(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", **FAST, seed=3, scale="cifar")
    clean = np.asarray(opened(tree / "cat/a.png"))
    made = np.asarray(opened(tmp_path / "out/gaussian_noise/4/cat/a.png"))
    expected = beaufort.corrupt(clean, "gaussian_noise", 4, seed=3, scale="cifar", image_id="cat/a.png")
    np.testing.assert_array_equal(made, expected)


def test_a_single_file_has_its_name_as_identity(tree: Path, tmp_path: Path) -> None:
    report = corrupt_tree(tree / "cat/a.png", tmp_path / "out", **FAST)
    assert report == Outcome(done=4)
    made = np.asarray(opened(tmp_path / "out/gaussian_noise/1/a.png"))
    clean = np.asarray(opened(tree / "cat/a.png"))
    np.testing.assert_array_equal(made, beaufort.corrupt(clean, "gaussian_noise", 1, image_id="a.png"))


def test_threads_change_no_byte_and_seeds_do(tree: Path, tmp_path: Path) -> None:
    for name, jobs, seed in (("one", 1, 0), ("two", 2, 0), ("other", 1, 1)):
        corrupt_tree(tree, tmp_path / name, **FAST, jobs=jobs, seed=seed)
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one["brightness/1/dog/a.png"] == other["brightness/1/dog/a.png"]
    assert one["gaussian_noise/1/dog/a.png"] != other["gaussian_noise/1/dog/a.png"]


def test_a_second_run_makes_only_missing_files(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    corrupt_tree(tree, out, **FAST)
    before = contents(out)
    (out / "brightness/4/dog/a.png").unlink()
    kept = out / "brightness/1/dog/a.png"
    kept.write_bytes(b"mine")
    assert corrupt_tree(tree, out, **FAST) == Outcome(done=1, skipped=19, ignored=1)
    assert contents(out) == before | {"brightness/1/dog/a.png": b"mine"}
    assert corrupt_tree(tree, out, names=["contrast"], severities=[2]).done == 5


def test_other_settings_are_rejected(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    corrupt_tree(tree, out, **FAST)
    before = contents(out)
    changes: list[dict[str, Any]] = [{"seed": 1}, {"scale": "tiny"}, {"file_format": "png"}, {"quality": 90}]
    for option in changes:
        named = next(iter(option)).removeprefix("file_")
        with pytest.raises(OptionError, match=rf"{named} .*another"):
            corrupt_tree(tree, out, **FAST, **option)
    assert contents(out) == before


def test_other_versions_of_a_corruption_are_rejected(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    corrupt_tree(tree, out, names=["brightness"], severities=[1])
    note = json.loads((out / "beaufort.json").read_text())
    assert note["corruptions"] == {"brightness": 1}
    (out / "beaufort.json").write_text(json.dumps(note | {"corruptions": {"brightness": 0}}))
    with pytest.raises(OptionError, match="version of brightness 0"):
        corrupt_tree(tree, out, names=["brightness"], severities=[2])
    assert corrupt_tree(tree, out, names=["contrast"], severities=[2]).ok


@pytest.mark.parametrize("text", ["", "[]", "{", '{"settings": 3}'])
def test_a_damaged_note_is_reported(tree: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/beaufort.json").write_text(text)
    with pytest.raises(OptionError, match=r"beaufort\.json"):
        corrupt_tree(tree, tmp_path / "out", **FAST)


def test_invalid_requests_write_nothing(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UnknownNameError, match="did you mean 'fog'"):
        corrupt_tree(tree, out, names=["fogg"])
    wrong: list[dict[str, Any]] = [
        {"names": ["stripe"], "scale": "imagenet"},
        {"names": []},
        {"severities": [6]},
        {"severities": []},
        {"scale": "huge"},
        {"file_format": "gif"},
        {"quality": 0},
        {"jobs": 0},
        {"seed": 0.5},
    ]
    for options in wrong:
        with pytest.raises((OptionError, UnknownNameError)):
            corrupt_tree(tree, out, **options)
    with pytest.raises(OptionError, match="source not found"):
        corrupt_tree(tmp_path / "nothing", out)
    for inside in (tree, tree / "cat/out", tree / "../source/x"):
        with pytest.raises(OptionError, match="outside the source"):
            corrupt_tree(tree, inside)
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=r"directory, got .*file"):
        corrupt_tree(tree, tmp_path / "file")
    with pytest.raises(OptionError, match="cannot write"):
        corrupt_tree(tree, tmp_path / "file/below")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "source"]


def test_bad_files_are_reported_and_the_others_are_processed(tree: Path, tmp_path: Path) -> None:
    def save(name: str, image: Image.Image, **options: Any) -> None:
        image.save(tree / name, **options)

    content = (tree / "cat/a.png").read_bytes()
    (tree / "cut.png").write_bytes(content[:-30])
    (tree / "empty.jpg").touch()
    (tree / "text.jpg").write_text("no image")
    (tree / "dangling.png").symlink_to(tmp_path / "nothing")
    save("moving.gif", Image.new("L", (20, 20)), save_all=True, append_images=[Image.new("L", (20, 20), 255)])
    save("small.png", Image.new("RGB", (15, 40)))
    (tree / ".hidden.png").touch()
    report = corrupt_tree(tree, tmp_path / "out", **FAST)
    assert report.done == 20
    assert not report.ok
    found = messages(report)
    assert list(found) == ["cut.png", "dangling.png", "empty.jpg", "moving.gif", "small.png", "text.jpg"]
    assert "truncated" in found["cut.png"]
    assert "0 bytes" in found["empty.jpg"]
    assert "has several frames" in found["moving.gif"]
    assert "at least 16" in found["small.png"]
    assert len(contents(tmp_path / "out")) == 21
    (tree / "cut.png").write_bytes(content)
    again = corrupt_tree(tree, tmp_path / "out", **FAST)
    assert (again.done, again.skipped, len(again.failures)) == (4, 20, 5)


def test_unreadable_folders_are_reported(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: Path) -> object:
        if Path(path) == tree / "cat":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr("beaufort.data.folder.os.scandir", scandir)
    report = corrupt_tree(tree, tmp_path / "out", **FAST)
    assert report.done == 8
    assert "Permission denied" in messages(report)["cat"]


@pytest.mark.parametrize(
    ("name", "image", "expected"),
    [
        ("a.gif", Image.new("P", (20, 20)), ("a.png", "PNG", "RGB")),
        ("a.png", Image.new("RGBA", (20, 20), (255, 0, 0, 90)), ("a.png", "PNG", "RGBA")),
        ("a.png", Image.new("LA", (20, 20), (255, 90)), ("a.png", "PNG", "LA")),
        ("a.png", Image.new("I;16", (20, 20), 9000), ("a.png", "PNG", "L")),
        ("a.jpg", Image.new("CMYK", (20, 20)), ("a.jpg", "JPEG", "RGB")),
        ("a.tiff", Image.new("RGB", (20, 20)), ("a.tiff", "TIFF", "RGB")),
        ("a.webp", Image.new("RGBA", (20, 20), (255, 0, 0, 90)), ("a.webp", "WEBP", "RGBA")),
    ],
)
def test_keep_writes_the_source_format(
    tmp_path: Path, name: str, image: Image.Image, expected: tuple[str, str, str]
) -> None:
    (tmp_path / "in").mkdir()
    image.save(tmp_path / "in" / name)
    assert corrupt_tree(tmp_path / "in", tmp_path / "out", names=["contrast"], severities=[1]) == Outcome(
        done=1
    )
    made = opened(tmp_path / "out/contrast/1" / expected[0])
    assert (made.format, made.mode) == expected[1:]


@pytest.mark.parametrize(("file_format", "suffix"), [("png", ".png"), ("jpeg", ".jpg")])
def test_formats(tmp_path: Path, file_format: str, suffix: str) -> None:
    (tmp_path / "in").mkdir()
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(tmp_path / "in/clear.webp", lossless=True)
    corrupt_tree(
        tmp_path / "in", tmp_path / "out", names=["contrast"], severities=[1], file_format=file_format
    )
    made = opened(tmp_path / f"out/contrast/1/clear{suffix}")
    assert made.format == file_format.upper()
    if file_format == "jpeg":
        assert np.asarray(made).min() == 255  # laid on white, then corrupted


def test_images_with_the_same_output_name_are_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.jpg", "a.png", "b.png"):
        Image.new("RGB", (20, 20)).save(tmp_path / "in" / name)
    report = corrupt_tree(
        tmp_path / "in", tmp_path / "out", names=["contrast"], severities=[1], file_format="png"
    )
    assert report.done == 2
    assert "as those of a.jpg" in messages(report)["a.png"]


def test_links_are_read_and_never_written_through(tree: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Image.new("RGB", (20, 20)).save(elsewhere / "x.png")
    (tree / "linked").symlink_to(elsewhere)
    (tree / "loop").symlink_to(tree)
    out = tmp_path / "out"
    (out / "brightness").mkdir(parents=True)
    (out / "brightness/1").symlink_to(elsewhere)
    (tree / "back").symlink_to(out)
    report = corrupt_tree(tree, out, names=["brightness", "contrast"], severities=[1])
    assert [path.name for path in elsewhere.iterdir()] == ["x.png"]
    assert all("leads out of" in failure.message for failure in report.failures)
    assert report.failures
    (out / "brightness/1").unlink()
    assert corrupt_tree(tree, out, names=["brightness", "contrast"], severities=[1]) == Outcome(
        done=12, ignored=1
    )


@pytest.mark.parametrize("after", [0, 1, 7])
def test_a_full_disk_stops_the_job(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    real, calls = files._create, []

    def create(path: Path) -> object:
        calls.append(path)
        file = real(path)
        if len(calls) > after:
            file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return file

    monkeypatch.setattr(files, "_create", create)
    out = tmp_path / "out"
    report = corrupt_tree(tree, out, **FAST, jobs=1)
    assert report.stopped is not None
    assert "No space left" in report.stopped
    assert not report.ok
    assert report.failures == ()
    assert len(calls) == after + 1
    assert not [name for name in contents(out) if name.endswith(".part")]
    monkeypatch.undo()
    assert corrupt_tree(tree, out, **FAST).done == 20 - report.done
    assert corrupt_tree(tree, tmp_path / "fresh", **FAST).done == 20
    assert contents(out) == contents(tmp_path / "fresh")


def test_an_interruption_leaves_no_draft(tree: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        corrupt_tree(tree, out, **FAST, jobs=2, progress=interrupt)
    assert not [name for name in contents(out) if name.endswith(".part")]
    assert corrupt_tree(tree, out, **FAST).ok


def test_a_corruption_without_its_assets_is_reported_once(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: object) -> None:
        raise AssetError("frost/frost1.png could not be had")

    recipes = corruptions["frost"].recipes
    monkeypatch.setitem(recipes, "cifar", replace(recipes["cifar"], draw=draw))
    report = corrupt_tree(tree, tmp_path / "out", names=["frost", "contrast"], scale="cifar", jobs=1)
    assert report.done == 25
    assert list(messages(report)) == ["frost"]


def test_progress_ends_at_the_total(tree: Path, tmp_path: Path) -> None:
    (tree / "empty.png").touch()
    seen: list[tuple[int, int]] = []
    corrupt_tree(tree, tmp_path / "out", **FAST, progress=lambda *state: seen.append(state))
    assert seen[-1] == (24, 24)
    assert seen == sorted(seen)


def test_odd_names_are_identities_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.new("RGB", (20, 20), "red").save(tmp_path / "in" / "plain.png")
    odd = os.fsencode(tmp_path / "in") + b"/caf\xe9 \n.png"
    os.rename(tmp_path / "in" / "plain.png", odd)  # noqa: PTH104
    assert corrupt_tree(tmp_path / "in", tmp_path / "out", **FAST) == Outcome(done=4)


def test_the_stream_of_tasks_is_taken_as_needed() -> None:
    taken: list[int] = []
    finished: list[int] = []

    def tasks() -> Iterator[int]:
        for i in range(100):
            taken.append(i)
            assert len(taken) - len(finished) <= 2 * 3 + 1
            yield i

    run_bounded(lambda i: i * i, tasks(), finished.append, jobs=3, stop=Event())
    assert sorted(finished) == [i * i for i in range(100)]


def test_errors_in_threads_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_bounded(lambda i: 1 // i, range(5), lambda _: None, jobs=2, stop=Event())


def test_a_directory_without_images_is_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/notes.txt").touch()
    report = corrupt_tree(tmp_path / "in", tmp_path / "out", **FAST)
    assert "no images found" in messages(report)["."]
    assert report.ignored == 1


@pytest.mark.parametrize(
    "content",
    [b"no image", encode(Image.new("RGB", (1, 1)), FORMATS["png"])],
    ids=["no image", "one pixel"],
)
def test_an_unusable_image_is_reported_once(tmp_path: Path, content: bytes) -> None:
    """A single image has one task per corruption, but one failure."""
    (tmp_path / "one.png").write_bytes(content)
    outcome = corrupt_tree(tmp_path / "one.png", tmp_path / "out", names=["fog", "snow"], severities=[1, 2])
    assert [failure.path for failure in outcome.failures] == ["one.png"]
    assert outcome.done == 0


def test_a_severity_in_a_single_name(tmp_path: Path) -> None:
    """The error names the severity instead of an unknown corruption."""
    Image.new("RGB", (32, 32)).save(tmp_path / "one.png")
    with pytest.raises(OptionError, match="'fog@3'; pass 'fog'"):
        corrupt_tree(tmp_path / "one.png", tmp_path / "out", names=["fog@3"])
    with pytest.raises(UnknownNameError, match=r"'fogg'.*'fog'"):
        corrupt_tree(tmp_path / "one.png", tmp_path / "out", names=["fogg@3"])
