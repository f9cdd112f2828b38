"""Decoding of untrusted image files."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from beaufort._core.errors import ImageFileError
from beaufort.data.images import MAX_PIXELS, MAX_SIDE, SUFFIXES, decode_image, read_image


def image(mode: str = "RGB", size: tuple[int, int] = (24, 20)) -> Image.Image:
    width, height = size
    ramp = np.add.outer(np.arange(height) * 5, np.arange(width) * 4).astype(np.uint8)
    return Image.merge(
        "RGB", [Image.fromarray(ramp), Image.fromarray(ramp.T.copy()).resize(size), Image.new("L", size, 40)]
    ).convert(mode)


@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("RGB", "a.png", "RGB"),
        ("RGB", "a.jpg", "RGB"),
        ("RGB", "a.webp", "RGB"),
        ("RGBA", "a.png", "RGBA"),
        ("L", "a.png", "L"),
        ("LA", "a.png", "LA"),
        ("1", "a.png", "L"),
        ("P", "a.png", "RGB"),
        ("P", "a.gif", "RGB"),
        ("CMYK", "a.jpg", "RGB"),
        ("CMYK", "a.tif", "RGB"),
        ("YCbCr", "a.tif", "RGB"),
    ],
)
def test_every_mode_becomes_one_of_four(tmp_path: Path, mode: str, name: str, expected: str) -> None:
    image(mode).save(tmp_path / name)
    read = read_image(tmp_path / name)
    assert read.mode == expected
    assert read.size == (24, 20)
    assert not read.info


def test_cmyk_keeps_its_colors(tmp_path: Path) -> None:
    image("CMYK").save(tmp_path / "a.tif")
    difference = np.asarray(read_image(tmp_path / "a.tif"), int) - np.asarray(image(), int)
    assert np.abs(difference).max() <= 3


def test_transparent_palette_becomes_rgba(tmp_path: Path) -> None:
    image("P").save(tmp_path / "a.png", transparency=0)
    assert read_image(tmp_path / "a.png").mode == "RGBA"


def test_transparent_gray_value_becomes_alpha(tmp_path: Path) -> None:
    image("L").save(tmp_path / "a.png", transparency=7)
    assert read_image(tmp_path / "a.png").mode == "LA"


def test_16_bit_gray_loses_its_low_byte(tmp_path: Path) -> None:
    values = (np.arange(20 * 24, dtype=np.uint16) * 131).reshape(20, 24)
    for name in ("a.png", "a.tif"):
        Image.fromarray(values).save(tmp_path / name)
        np.testing.assert_array_equal(np.asarray(read_image(tmp_path / name)), values >> 8)


def png(width: int, height: int, bits: int, color: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_16_bit_color_loses_its_low_byte(tmp_path: Path) -> None:
    values = (np.arange(20 * 24 * 3, dtype=np.uint16) * 45).reshape(20, 24, 3)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    (tmp_path / "a.png").write_bytes(png(24, 20, 16, 2, rows))
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "a.png")), values >> 8)


def test_32_bit_values_are_rejected(tmp_path: Path) -> None:
    Image.fromarray(np.full((20, 20), 1 << 20, np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(ImageFileError, match="up to 16 bits"):
        read_image(tmp_path / "a.tif")


def test_floating_point_values_are_rejected(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((20, 20), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(ImageFileError, match="8-bit"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    image().save(tmp_path / "a.png", exif=exif)
    swapped = orientation >= 5
    assert read_image(tmp_path / "a.png").size == ((20, 24) if swapped else (24, 20))
    assert read_image(tmp_path / "a.png", upright=False).size == (24, 20)


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    image().save(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "a.jpg")), np.asarray(image()))


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_animations_are_rejected(tmp_path: Path, name: str) -> None:
    frames = [Image.new("RGB", (20, 20), (i * 80, 255 - i * 80, 0)) for i in range(3)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(ImageFileError, match="has several frames"):
        read_image(tmp_path / name)


def test_bombs_are_rejected_from_the_header(tmp_path: Path) -> None:
    side = 11_000
    assert side**2 > MAX_PIXELS
    (tmp_path / "a.png").write_bytes(png(side, side, 8, 2, b"\0"))
    with pytest.raises(ImageFileError, match="pixels"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["png", "jpg", "webp", "gif", "bmp", "tif"])
@pytest.mark.parametrize("fraction", [0.02, 0.5, 0.95])
def test_truncated_files_are_rejected(tmp_path: Path, kind: str, fraction: float) -> None:
    path = tmp_path / f"a.{kind}"
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8)).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * fraction)])
    with pytest.raises(ImageFileError):
        read_image(path)


def test_empty_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(ImageFileError, match="0 bytes") as caught:
        read_image(tmp_path / "a.png")
    assert str(tmp_path / "a.png") in caught.value.__notes__[0]


def test_text_is_not_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("no image")
    with pytest.raises(ImageFileError, match="not an image"):
        read_image(tmp_path / "a.jpg")


def test_missing_files_and_pipes_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match="No such file"):
        read_image(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ImageFileError, match="regular file"):
        read_image(tmp_path / "pipe.png")


def test_only_listed_formats_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's reader of EPS starts Ghostscript."""
    started: list[object] = []
    monkeypatch.setattr("subprocess.Popen", lambda *args, **_: started.append(args))
    monkeypatch.setattr("subprocess.check_call", lambda *args, **_: started.append(args))
    image = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / "cat.jpg").write_bytes(image)
    with pytest.raises(ImageFileError, match="supported format"):
        read_image(tmp_path / "cat.jpg")
    with pytest.raises(ImageFileError):
        decode_image(image)
    assert not started


@pytest.mark.parametrize("name", ["a.ico", "a.pcx", "a.sgi", "a.dds", "a.icns", "a.eps", "a.pdf"])
def test_other_formats_of_pillow_are_rejected(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / name)
    with pytest.raises(ImageFileError, match="not an image"):
        read_image(tmp_path / name)


@pytest.mark.parametrize("ending", sorted(SUFFIXES))
def test_every_extension_can_be_read(tmp_path: Path, ending: str) -> None:
    Image.new("1" if ending == ".pbm" else "L" if ending == ".pgm" else "RGB", (32, 32)).save(
        tmp_path / f"a{ending}", "PPM" if ending == ".pnm" else None
    )
    assert read_image(tmp_path / f"a{ending}").size == (32, 32)


@pytest.mark.parametrize("size", [(1, 10**8), (10**8, 1), (MAX_SIDE + 1, 16), (10**5, 10**5), (2**31 - 1, 1)])
def test_extreme_sides_are_rejected_from_the_header(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "a.png").write_bytes(png(*size, 8, 0, b"\0"))
    assert (tmp_path / "a.png").stat().st_size < 100
    Image.new("RGB", (16, 16)).save(tmp_path / "b.png")
    read_image(tmp_path / "b.png")  # what is imported with the first image is not counted
    tracemalloc.start()
    try:
        with pytest.raises(ImageFileError, match="pixels"):
            read_image(tmp_path / "a.png")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_tiff_of_very_many_frames_is_rejected_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [(256, 1), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 1)]
    size = 2 + 12 * len(entries) + 4
    content = bytearray(b"II*\0" + struct.pack("<I", 8))
    for _ in range(50_000):
        content += struct.pack("<H", len(entries))
        for tag, value in entries:
            content += struct.pack("<HHII", tag, 4, 1, value)
        content += struct.pack("<I", len(content) + 4)
    content[-4:] = bytes(4)
    assert len(content) == 8 + 50_000 * size
    (tmp_path / "a.tif").write_bytes(content)
    looked_at: list[object] = []
    load = TiffImagePlugin.ImageFileDirectory_v2.load

    def noted(frame: TiffImagePlugin.ImageFileDirectory_v2, file: IO[bytes]) -> None:
        looked_at.append(frame)
        load(frame, file)

    monkeypatch.setattr(TiffImagePlugin.ImageFileDirectory_v2, "load", noted)
    with pytest.raises(ImageFileError, match="has several frames"):
        read_image(tmp_path / "a.tif")
    assert 1 <= len(looked_at) <= 3
