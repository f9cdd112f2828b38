"""The P-sets in their published layouts: arrays for CIFAR-10-P, a video an image for the others."""

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
from beaufort._core.registry import unknown_message
from beaufort.corruptions.sequences import VERSION, sequences
from beaufort.data.images import FORMATS, Format
from beaufort.data.writers.image_sources import SourceImages
from beaufort.data.writers.image_tree import Content, TreeJob, run_tree
from beaufort.data.writers.output_folder import Outcome
from beaufort.data.writers.published_arrays import ArrayFile, CleanImages, Request, load_cifar, write_arrays
from beaufort.data.writers.variants import Variant

_AT_ONCE = 32
"""Images that a thread makes the frames of."""


def sequence_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of sequences, each once; an error for others."""
    found = tuple(dict.fromkeys(names))
    for name in found:
        if name not in sequences:
            raise OptionError(unknown_message("sequence", name, sequences))
    if not found:
        raise OptionError("expected at least one sequence, got none; give names such as 'rotate'")
    return found


def make_cifar_p(request: Request) -> Outcome:
    """`output/<sequence>.npy`, `(n, frames, 32, 32, 3)` in the order of the images; `output/labels.npy`."""
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
    """The frames of some images after the other, in threads."""
    starts = range(0, len(clean.images), _AT_ONCE)

    def film(start: int) -> Bytes:
        some = slice(start, start + _AT_ONCE)
        return np.stack(_frames(name, "cifar", clean.images[some], clean.ids[some], request.seed), axis=1)

    with ThreadPoolExecutor(request.jobs) as pool:
        for first in range(0, len(starts), 2 * request.jobs):  # not all at once: they lie in memory
            yield from pool.map(film, starts[first : first + 2 * request.jobs])


def make_videos(request: Request, images: SourceImages, scale: str) -> Outcome:
    """`output/<sequence>/<class>/<name>.mp4`."""
    ffmpeg()  # before anything is made
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
