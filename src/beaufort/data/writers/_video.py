"""Videos as ImageNet-P has them: H.264 by the program ffmpeg, which is not part of this package."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError, MissingExtraError

_LONGEST_S = 600


@cache
def ffmpeg() -> str:
    """The program: that of the system, or of the package imageio-ffmpeg."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingExtraError(
            "videos need the program ffmpeg: install it, or pip install 'beaufort[video]'"
        ) from error
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def encode_video(frames: Sequence[Bytes], *, grain: bool) -> bytes:
    """The bytes of an MP4 file of frames `(h, w, 3)`, one a second, compressed as the published ones are.

    Args:
        frames: all of one shape.
        grain: whether they are noise: then the codec is told so, at its default quality instead of 20.
    """
    height, width = frames[0].shape[:2]
    quality = ["-tune", "grain"] if grain else ["-crf", "20"]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "1", "-i", "-"]
    codec = ["-c:v", "libx264", "-preset", "veryslow", *quality, "-pix_fmt", "yuv444p", "-threads", "1"]
    with tempfile.TemporaryDirectory() as folder:  # MP4 cannot be written to a pipe
        target = Path(folder) / "film.mp4"
        done = subprocess.run(
            [ffmpeg(), "-v", "error", "-y", *raw, *codec, str(target)],
            input=np.stack(frames).tobytes(),
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
        if done.returncode or not target.is_file():
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
            raise ImageFileError(f"ffmpeg cannot write the video ({said or done.returncode})")
        return target.read_bytes()
