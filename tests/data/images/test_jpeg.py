"""JPEG files decoded by simplejpeg have the pixels and the errors of Pillow."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError
from beaufort.data.images import decode_file, decode_pixels, read

simplejpeg = pytest.importorskip("simplejpeg", reason="simplejpeg is not installed; the extra jpeg has it")


def jpeg(mode: str = "RGB", **options: Any) -> bytes:
    y, x = np.mgrid[:75, :101]
    image = Image.fromarray(np.stack([x * 2, y * 3, x * y % 256], axis=-1).astype(np.uint8)).convert(mode)
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(exif=exif)


def of_pillow(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(read, "_simplejpeg", lambda: None)
        return outcome(content)


def outcome(content: bytes) -> Any:
    try:
        pixels = decode_pixels(content)
    except ImageFileError as error:
        return str(error)
    return pixels.shape, pixels.tobytes(), pixels.flags.writeable


def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the color spaces that simplejpeg is asked for from now on."""
    made: list[str] = []
    decode = simplejpeg.decode_jpeg

    def noted(content: bytes, colors: str) -> Any:
        made.append(colors)
        return decode(content, colors)

    monkeypatch.setattr(simplejpeg, "decode_jpeg", noted)
    return made


@pytest.mark.parametrize(
    ("content", "used"),
    [
        (jpeg(subsampling="4:4:4"), ["RGB"]),
        (jpeg(subsampling="4:2:2"), ["RGB"]),
        (jpeg(subsampling="4:2:0"), ["RGB"]),
        (jpeg(progressive=True, quality=30), ["RGB"]),
        (jpeg(restart_marker_blocks=3), ["RGB"]),
        (turned(), ["RGB"]),
        (jpeg("L"), ["GRAY"]),
        (jpeg("CMYK"), []),
        (jpeg(keep_rgb=True), []),
    ],
    ids=["444", "422", "420", "progressive", "restarts", "turned", "gray", "cmyk", "rgb"],
)
def test_pixels_are_those_of_pillow(content: bytes, used: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls(monkeypatch)
    assert outcome(content) == of_pillow(content, monkeypatch)
    assert made == used
    assert decode_pixels(content).shape == (75, 101, 1 if used == ["GRAY"] else 3)


def test_frames_of_a_camera_are_read_by_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    first, second = Image.new("RGB", (40, 30), "red"), Image.new("RGB", (40, 30), "blue")
    first.save(file, "MPO", save_all=True, append_images=[second])
    made = calls(monkeypatch)
    assert outcome(file.getvalue()) == of_pillow(file.getvalue(), monkeypatch)
    assert not made


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"mode": "L"}], ids=["color", "scans", "gray"]
)
def test_damaged_files_end_as_with_pillow(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    whole = jpeg(**options)
    damaged = [whole[:-2], whole + b"more", whole[:2000], whole[:2000] + b"\xff\xd9", whole[:300]]
    for _ in range(60):
        changed = bytearray(whole)
        for place in rng.integers(2, len(whole), rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        damaged.append(bytes(changed))
    outcomes = [outcome(content) for content in damaged]
    assert outcomes == [of_pillow(content, monkeypatch) for content in damaged]
    assert any(isinstance(one, str) for one in outcomes)


def test_too_large_images_are_rejected_from_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(jpeg())
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = (12_000).to_bytes(2, "big") * 2
    made = calls(monkeypatch)
    with pytest.raises(ImageFileError, match="100,000,000 pixels"):
        decode_pixels(bytes(content))
    assert not made


def test_very_long_files_are_read_by_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_JPEG_BYTES", 1000)
    (tmp_path / "a.jpg").write_bytes(jpeg())
    assert decode_file(tmp_path / "a.jpg").tobytes() == of_pillow(jpeg(), monkeypatch)[1]


def test_photos_have_the_pixels_of_pillow(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(shared / "data" / "imagenet_val_1k" / "images_0.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg")][:100]
        photos = [archive.read(name) for name in names]
    made = calls(monkeypatch)
    different = [
        name
        for name, photo in zip(names, photos, strict=True)
        if outcome(photo) != of_pillow(photo, monkeypatch)
    ]
    assert not different
    assert len(made) == 100
