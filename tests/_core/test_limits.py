"""Memory limits of a process in bytes per pixel, as in docs/explanation/reliability.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from beaufort.corruptions import get_corruption_names

READING, CORRUPTING = 28, 40
"""Bytes per pixel of an image that is read, and in addition to one that is corrupted."""

HEIGHT, WIDTH = 1500, 2000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux to tell the memory of one step"
)

PROBE = """
import json, sys
from pathlib import Path
import numpy as np

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def taken(work):
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    work()
    return status("VmHWM") - before
"""

CORRUPT = """
from beaufort.corruptions import corruptions
image = np.random.default_rng(0).integers(0, 256, ({height}, {width}, 3), dtype=np.uint8)
found = {{}}
for name in json.loads(sys.argv[1]):
    corruptions[name](image[:64, :64].copy(), 5, scale="imagenet")
    found[name] = taken(lambda: corruptions[name](image, 5)) / image[..., 0].size
print(json.dumps(found))
"""

READ = """
from beaufort.data.images import decode_file
decode_file(Path(sys.argv[1]).with_name("small.png"))
path = Path(sys.argv[1])
print(json.dumps(taken(lambda: decode_file(path)) / ({height} * {width})))
"""


def probe(code: str, argument: str) -> object:
    text = PROBE + code.format(height=HEIGHT, width=WIDTH)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text, argument], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_corrupt_an_image() -> None:
    names = [name for name in get_corruption_names("all") if name != "frost"]  # its files may not be here
    found = probe(CORRUPT, json.dumps(names))
    assert isinstance(found, dict)
    assert len(found) == 18
    over = {name: bytes_a_pixel for name, bytes_a_pixel in found.items() if bytes_a_pixel > CORRUPTING}
    assert not over
    assert max(found.values()) > 5  # or nothing was measured


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.png", "RGBA"),
        ("a.jpg", "RGB"),
        ("a.jpg", "CMYK"),
        ("a.png", "1"),
        ("a.webp", "RGBA"),
        ("a.jp2", "RGBA"),
    ],
)
def test_read_an_image(tmp_path: Path, name: str, mode: str) -> None:
    Image.new(mode, (WIDTH, HEIGHT)).save(tmp_path / name)
    Image.new("RGB", (20, 20)).save(tmp_path / "small.png")
    found = probe(READ, str(tmp_path / name))
    assert isinstance(found, float)
    assert 0 < found <= READING
