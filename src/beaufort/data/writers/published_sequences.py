"""Writers of P-sets: arrays for CIFAR-10-P, one video per image for the others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import islice
from pathlib import Path, PurePath

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError, MissingExtraError, OptionError
from beaufort._core.validation import validate_choice
from beaufort.corruptions.sequences import VERSION, sequences
from beaufort.data.images import FORMATS, Format
from beaufort.data.writers.image_sources import SourceImages
from beaufort.data.writers.image_tree import Content, TreeJob, run_tree
from beaufort.data.writers.output_folder import Outcome
from beaufort.data.writers.published_arrays import ArrayFile, CleanImages, Request, load_cifar, write_arrays
from beaufort.data.writers.variants import Variant

_CHUNK = 32
"""Number of images in a task of a thread."""


def sequence_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of sequences without duplicates; raise an error for unknown names."""
    found = tuple(dict.fromkeys(names))
    for name in found:
        validate_choice("sequence", name, sequences)
    if not found:
        raise OptionError("names must contain at least one sequence, such as 'rotate'")
    return found


def make_cifar_p(request: Request) -> Outcome:
    """Write `output/<sequence>.npy`, with shape `(n, frames, 32, 32, 3)`, and `output/labels.npy`."""
    test = load_cifar(request)
    if full := request.claim(version=VERSION, limit=request.limit):
        return Outcome(stopped=full)
    arrays = [ArrayFile.of(request.output / "labels.npy", test.labels.astype(np.uint8))]
    for name in request.names:
        length = sequences[name][0].length("cifar")
        shape = (len(test.images), length, *test.images.shape[1:])
        rows = partial(_rows, request, name, test)
        arrays.append(ArrayFile(request.output / f"{name}.npy", name, np.uint8, shape, rows))
    return write_arrays(arrays, request.progress)


def _rows(request: Request, name: str, clean: CleanImages) -> Iterator[Bytes]:
    """Yield the frames of images in chunks, computed by threads."""
    starts = range(0, len(clean.images), _CHUNK)

    def frames(start: int) -> Bytes:
        some = slice(start, start + _CHUNK)
        return np.stack(_frames(name, "cifar", clean.images[some], clean.ids[some], request.seed), axis=1)

    with ThreadPoolExecutor(request.jobs) as pool:
        for first in range(0, len(starts), 2 * request.jobs):  # limits the memory
            yield from pool.map(frames, starts[first : first + 2 * request.jobs])


def make_videos(request: Request, images: SourceImages, scale: str) -> Outcome:
    """Write `output/<sequence>/<class>/<name>.mp4`."""
    ffmpeg()  # raises an error if it is missing
    if full := request.claim(version=VERSION):
        return Outcome(stopped=full)
    made = [Variant(name, None) for name in request.names]
    content = _video(scale, request.seed)
    job = TreeJob(images, request.output, made, _target, content, limit=request.limit)
    return run_tree(job, jobs=request.jobs, progress=request.progress)


def _video(scale: str, seed: int) -> Content:
    def content(image: Image.Image, variant: Variant, identity: str, _kind: Format) -> bytes:
        frames = _frames(variant.name, scale, np.asarray(image)[None], [identity], seed)
        return encode_video([frame[0] for frame in frames], grain=sequences[variant.name][0].noise)

    return content


def _frames(name: str, scale: str, images: Bytes, ids: Sequence[str], seed: int) -> list[Bytes]:
    perturbation, difficulty = sequences[name]
    made = perturbation.frames(images, scale=scale, ids=ids, seed=seed, difficulty=difficulty)
    return [np.asarray(frame) for frame in islice(made, perturbation.length(scale))]


def _target(name: str) -> tuple[str, Format]:
    return f"{PurePath(name).stem}.mp4", FORMATS["png"]


_TIMEOUT_S = 600


@cache
def ffmpeg() -> str:
    """Return the path of ffmpeg, from the system or from the package imageio-ffmpeg."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingExtraError(
            "videos require ffmpeg: install it, or run: pip install 'beaufort[video]'"
        ) from error
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def encode_video(frames: Sequence[Bytes], *, grain: bool) -> bytes:
    """Return the bytes of an MP4 file with one frame per second, compressed like the published ones.

    Args:
        frames: arrays `(h, w, 3)` of one shape.
        grain: tune the codec for noise, at its default quality instead of 20.
    """
    height, width = frames[0].shape[:2]
    quality = ["-tune", "grain"] if grain else ["-crf", "20"]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "1", "-i", "-"]
    codec = ["-c:v", "libx264", "-preset", "veryslow", *quality, "-pix_fmt", "yuv444p", "-threads", "1"]
    with tempfile.TemporaryDirectory() as folder:  # MP4 cannot be written to a pipe
        target = Path(folder) / "video.mp4"
        done = subprocess.run(
            [ffmpeg(), "-v", "error", "-y", *raw, *codec, str(target)],
            input=np.stack(frames).tobytes(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode or not target.is_file():
            reason = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
            raise ImageFileError(f"ffmpeg cannot write the video: {reason or done.returncode}")
        return target.read_bytes()
