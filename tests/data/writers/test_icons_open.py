"""icons-open from packages that the tests make: found, drawn, compared, and the same twice."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort._core.errors import AssetError, ImageFileError, OptionError
from beaufort.cli import app
from beaufort.data import ICON_PACKAGES, IconPackage, assets, entries
from beaufort.data.labels import class_names
from beaufort.data.writers import make_icons_open
from beaufort.data.writers.icons_open import build
from beaufort.data.writers.icons_open.artwork import (
    SIDE,
    Artwork,
    IconSubtype,
    difference,
    icon_subtypes,
    rasterize,
    thumbnail,
)
from tests.commands import shows

pytest.importorskip("resvg_py", reason="resvg_py is not installed; the extra icons has it")


def tarball(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def circle(color: str, radius: int = 6) -> dict[str, str]:
    return {"body": f'<circle cx="8" cy="8" r="{radius}" fill="{color}"/>'}


def iconify(
    path: Path, icons: dict[str, Any], chars: dict[str, str], aliases: dict[str, Any] | None = None
) -> Path:
    whole = {"icons": icons, "aliases": aliases or {}, "width": 16, "height": 16}
    files = {"package/icons.json": whole, "package/chars.json": chars}
    return tarball(path, {name: json.dumps(content).encode() for name, content in files.items()})


def webp(color: tuple[int, int, int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGBA", (256, 256), color).save(buffer, "WEBP", lossless=True)
    return buffer.getvalue()


def package(style: str, rendition: int, name: str) -> IconPackage:
    return IconPackage(style, rendition, name, "1.0.0", "MIT", "Somebody", "https://example.org")


PACKAGES = (
    package("plain", 0, "@some/plain"),
    package("plain", 2, "@some/old"),
    package("photo", 0, "photo"),
)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three packages: one by code points, one by name, one of WebP files."""
    folder = tmp_path / "packages"
    iconify(
        folder / PACKAGES[0].file,
        {"duck": circle("red"), "penguin": circle("red"), "family-man-boy": circle("blue")},
        {"1f986": "duck", "1f427": "penguin", "1f468-200d-1f466": "family-man-boy"},
    )
    iconify(
        folder / PACKAGES[1].file,
        {"duck": circle("#fe0000"), "penguin": circle("black", 3), "tropicalfish": circle("green")},
        {},
        {"bird": {"parent": "duck"}, "rooster": {"parent": "duck", "hFlip": True}},
    )
    images = {
        "package/assets/1f986.webp": webp((0, 200, 0, 255)),
        "package/assets/2764-fe0f.webp": webp((200, 0, 0, 255)),
    }
    tarball(folder / PACKAGES[2].file, images)
    monkeypatch.setattr(build, "fetch", lambda name: folder / name)
    return folder


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("mirror")
def test_icons_are_found_drawn_and_written_once(tmp_path: Path) -> None:
    outcome = make_icons_open(tmp_path / "icons", packages=PACKAGES)
    assert outcome.ok
    with (tmp_path / "icons" / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    files = [row["file"] for row in rows]
    assert (
        files
        == [
            "bird/photo_0_duck.png",  # a WebP file
            "bird/plain_0_duck.png",  # the penguin of the same package is the same drawing, and comes later
            "bird/plain_2_bird.png",  # by an alias; the old duck looks like the new one
            "bird/plain_2_penguin.png",  # by name
            "family/plain_0_family_man_boy.png",
            "heart/photo_0_heavy_black_heart.png",  # the code points without the variation selector
            "marine_animals/plain_2_tropical_fish.png",  # by name, however it is spelled
        ]
        or files
    )
    for row in rows:
        content = (tmp_path / "icons" / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
        with Image.open(io.BytesIO(content)) as image:
            assert (image.mode, image.size) == ("RGB", (SIDE, SIDE))
            assert image.getpixel((0, 0)) in ((255, 255, 255), (200, 0, 0), (0, 200, 0))
    sheet = (tmp_path / "icons" / "README.md").read_text(encoding="utf-8")
    assert "| plain | 2 |" in sheet
    assert f"{len(rows)} icons of" in sheet


@pytest.mark.usefixtures("mirror")
def test_builds_are_identical_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_icons_open(tmp_path / "a", packages=PACKAGES)
    make_icons_open(tmp_path / "b", packages=PACKAGES)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    whole = tree(tmp_path / "b")
    for name in ("manifest.csv", "README.md", "bird/plain_2_penguin.png"):
        (tmp_path / "b" / name).unlink()
    again = make_icons_open(tmp_path / "b", packages=PACKAGES)
    assert (again.done, again.skipped) == (1, first.done - 1)
    assert tree(tmp_path / "b") == whole
    Image.new("RGB", (SIDE, SIDE)).save(tmp_path / "b" / "bird" / "plain_0_duck.png")  # another image
    cut = tmp_path / "b" / "bird" / "plain_2_penguin.png"
    cut.write_bytes(cut.read_bytes()[:99])
    repaired = make_icons_open(tmp_path / "b", packages=PACKAGES)
    assert (repaired.done, repaired.skipped, repaired.failures) == (2, first.done - 2, ())
    assert tree(tmp_path / "b") == whole
    calls: list[tuple[int, int]] = []
    make_icons_open(
        tmp_path / "b", packages=PACKAGES, progress=lambda done, total: calls.append((done, total))
    )
    assert calls[-1][0] == calls[-1][1]


def test_artwork_that_cannot_be_rasterized_is_reported(mirror: Path, tmp_path: Path) -> None:
    bad = {"duck": {"body": "<circle"}, "penguin": {"body": "<g/>"}}
    iconify(mirror / PACKAGES[0].file, bad, {"1f986": "duck", "1f427": "penguin"})
    outcome = make_icons_open(tmp_path / "icons", packages=PACKAGES)
    assert not outcome.ok
    assert [failure.path for failure in outcome.failures] == [
        "bird/plain_0_duck.png",
        "bird/plain_0_penguin.png",
    ]
    assert outcome.failures[0].message.startswith("cannot rasterize the SVG")
    assert outcome.failures[0].message.endswith("(from @some/plain 1.0.0)")
    assert shows(outcome.failures[1].message, "transparent", "@some/plain 1.0.0")
    assert not (tmp_path / "icons" / "manifest.csv").exists()
    assert (tmp_path / "icons" / "bird" / "photo_0_duck.png").exists()


@pytest.mark.usefixtures("mirror")
def test_silhouettes_are_not_used(tmp_path: Path) -> None:
    some = replace(PACKAGES[0], without=("family",))
    make_icons_open(tmp_path / "icons", packages=[some])
    assert not (tmp_path / "icons" / "family").exists()
    assert {one.style for one in ICON_PACKAGES if "family" in one.without} == {"google", "twitter"}


def test_a_folder_of_other_packages_is_rejected(mirror: Path, tmp_path: Path) -> None:
    make_icons_open(tmp_path / "icons", packages=PACKAGES)
    with pytest.raises(OptionError, match="was made with packages"):
        make_icons_open(tmp_path / "icons", packages=PACKAGES[:1])


def test_invalid_packages(tmp_path: Path) -> None:
    icon = IconSubtype("bird", "duck", ("1f986",), "duck", True)
    (tmp_path / "a.tgz").write_bytes(b"nothing")
    with pytest.raises(AssetError, match=r"cannot read.* npm"):
        Artwork(tmp_path / "a.tgz").find(icon)
    with pytest.raises(AssetError, match=r"JSON.*chars\.json"):
        Artwork(tarball(tmp_path / "b.tgz", {"package/x.json": b"{}"})).find(icon)
    broken = iconify(tmp_path / "c.tgz", {}, {"1f986": "duck"})
    with pytest.raises(AssetError, match=r"'duck'"):
        Artwork(broken).find(icon)


def test_drawings_that_look_alike() -> None:
    colors = ("#ff0000", "#fb0000", "#0000ff")
    red, nearly, blue = (thumbnail(Image.new("RGB", (SIDE, SIDE), color)) for color in colors)
    assert difference(red, red) == 0
    assert difference(red, nearly) == pytest.approx(4 / 3)
    assert difference(red, blue) == pytest.approx(170)


def test_drawing_does_not_depend_on_fonts() -> None:
    with pytest.raises(ImageFileError, match="every pixel is transparent"):
        rasterize(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text y="9">A</text></svg>')


def test_the_catalog_has_every_package() -> None:
    assert set(entries["icons-open"].files) == {one.file for one in ICON_PACKAGES} <= set(assets)
    assert len({(one.style, one.rendition) for one in ICON_PACKAGES}) == len(ICON_PACKAGES)
    assert {one.license for one in ICON_PACKAGES} <= {"MIT", "Apache-2.0", "CC-BY-4.0", "CC-BY-SA-4.0"}


def test_subtypes_are_those_of_the_classes() -> None:
    every = icon_subtypes()
    assert len(every) == 823
    assert sum(icon.published for icon in every) == 568
    assert {icon.kind for icon in every} == set(class_names("icons-50"))
    assert len({(icon.kind, icon.subtype) for icon in every}) == 823
    assert all("fe0f" not in icon.codepoints for icon in every)


@pytest.mark.usefixtures("mirror")
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ICON_PACKAGES", PACKAGES)
    monkeypatch.setattr(build.make_icons_open, "__kwdefaults__", {"packages": PACKAGES, "progress": None})
    result = CliRunner().invoke(app, ["make", "icons-open", str(tmp_path / "icons")])
    assert result.exit_code == 0, result.output
    assert "7 written to" in result.output
    result = CliRunner().invoke(app, ["make", "icons-open", "a", "b"])
    assert result.exit_code == 2
    assert "icons-open takes only" in result.output
    result = CliRunner().invoke(app, ["make", "imagenet-c", "photos"])
    assert result.exit_code == 2
    assert "imagenet-c" in result.output
