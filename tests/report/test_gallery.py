"""The gallery contains everything registered, on a complete page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import beaufort
from beaufort._core.errors import AssetError, OptionError, UnknownNameError
from beaufort.corruptions import corruptions
from beaufort.data.writers import Outcome
from beaufort.report.gallery import make_gallery
from beaufort.report.painted_scene import paint_digit, paint_scene
from tests.data.writers.outputs import opened

VOID = {"meta", "img", "link"}


class Page(HTMLParser):
    """Ids, alternative texts and addresses; tags must match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.links: list[str | None] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "img":
            self.images.append(found)
        if tag == "a":
            self.links.append(found["href"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_corruption_of_a_subset_at_every_severity(tmp_path: Path) -> None:
    assert make_gallery(tmp_path / "out", subset="noise") == Outcome(done=2)
    page = Page((tmp_path / "out/gallery.html").read_text(encoding="utf-8"))
    names = beaufort.get_corruption_names("noise")
    assert [found for found in page.ids if found in names] == names
    assert len(page.images) == len(names) * 6
    assert all(image["alt"] and str(image["src"]).startswith("data:image/") for image in page.images)
    assert set(page.links) == {f"#{name}" for name in ("main", *names)}
    sheet = opened(tmp_path / "out/gallery.png")
    assert sheet.mode == "RGB"
    assert sheet.height > 3 * 160


def test_page_describes_each_corruption(tmp_path: Path) -> None:
    make_gallery(tmp_path, subset="contrast")
    text = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert corruptions["contrast"].summary in text
    assert "://" not in text
    assert "script-src &#39;none&#39;" in text
    assert "<script" not in text


def test_digits_are_painted_for_mnist(tmp_path: Path) -> None:
    report = make_gallery(tmp_path, subset="mnist-c")
    assert report == Outcome(done=2)
    page = Page((tmp_path / "gallery.html").read_text(encoding="utf-8"))
    assert page.images[0]["width"] == "28"
    assert "canny_edges" in page.ids


@pytest.mark.parametrize(
    ("subset", "says", "marked"),
    [
        ("fog", "1 corruption of a painted image; constants of the scale imagenet, seed 0.", False),
        ("lines", "constants of the scale relative, seed 0.", False),
        ("cifar10-c-bar", "constants of the scales imagenet and relative, seed 0.", False),
        ("quantize", "constants of the scale mnist, seed 0.", True),
        ("inverse", "constants of the scale mnist, seed 0.", False),
    ],
)
def test_page_text_about_the_published_severity(subset: str, says: str, marked: bool, tmp_path: Path) -> None:
    make_gallery(tmp_path, subset=subset)
    text = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert says in text
    assert ("severity that was published" in text) == marked


def test_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    paint_scene(300).save(tmp_path / "<b>.png")
    for name, seed in {"a": 0, "b": 0, "c": 1}.items():
        make_gallery(tmp_path / name, tmp_path / "<b>.png", subset="gaussian_noise", seed=seed)
    a, b, c = ((tmp_path / name / "gallery.html").read_bytes() for name in "abc")
    assert a == b != c
    assert b"<b>" not in a
    assert b"&lt;b&gt;.png" in a


def test_missing_assets_of_a_corruption_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*_: object) -> None:
        raise AssetError("frost/frost1.png could not be had")

    recipes = corruptions["frost"].recipes
    monkeypatch.setitem(recipes, "imagenet", replace(recipes["imagenet"], draw=draw))
    report = make_gallery(tmp_path, subset="weather")
    assert [failure.path for failure in report.failures] == ["frost"]
    assert Page((tmp_path / "gallery.html").read_text(encoding="utf-8")).ids[3:] == [
        "snow",
        "fog",
        "brightness",
    ]


def test_unknown_subsets_name_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="weather"):
        make_gallery(tmp_path / "out", subset="wether")
    assert not (tmp_path / "out").exists()


def test_a_chain_is_no_subset(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'fog@2\+snow@3'"):
        make_gallery(tmp_path / "out", subset="fog@2+snow@3")
    assert not (tmp_path / "out").exists()


def test_the_paintings_have_texture_and_color() -> None:
    scene, digit = np.asarray(paint_scene()), np.asarray(paint_digit())
    assert scene.shape == (224, 224, 3)
    assert digit.shape == (28, 28)
    assert scene.std(axis=(0, 1)).min() > 30
    assert (digit == 0).mean() > 0.5
    assert digit.max() == 255
