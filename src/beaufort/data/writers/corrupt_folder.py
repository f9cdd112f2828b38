"""Corruption of an image file or a directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath

from PIL import Image

from beaufort._core.validation import validate_choice, validate_integer
from beaufort.corruptions import SEVERITIES, Severity, validate_seed
from beaufort.data.images import FORMATS, Format, flatten, format_of, read_image
from beaufort.data.writers.image_sources import FolderImages, check_apart
from beaufort.data.writers.image_tree import TreeJob, corrupted, run_tree
from beaufort.data.writers.output_folder import Outcome, Progress, claim_folder
from beaufort.data.writers.variants import corruption_names, variants, worker_count

OUTPUT_FORMATS = ("keep", "png", "jpeg")


def corrupt_tree(
    source: Path | str,
    output: Path | str,
    *,
    names: Iterable[str] = ("common",),
    severities: Sequence[Severity] = SEVERITIES,
    seed: int = 0,
    scale: str = "auto",
    file_format: str = "keep",
    quality: int = 85,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Write `output/<corruption>/<severity>/<path in source>` for all images of a source.

    The pixels depend only on the image, its path in the source, the seed and the scale. Existing outputs are
    skipped, so an interrupted job can be resumed. Unreadable images become failures in the outcome.

    Args:
        source: an image, or a directory, which is searched recursively.
        output: a directory outside the source; created if missing.
        names: corruptions, subsets such as `common`, `all`, `weather`, or chains such as
            `fog@2+jpeg_compression@3`, which are written to `output/<chain>/<path in source>`.
        severities: numbers from 1 to 5, also fractional; chains have their own.
        seed: an integer.
        scale: published constants to use; see `Corruption.__call__`.
        file_format: `png`, `jpeg`, or `keep` for the format of the source. Formats that cannot be written,
            such as GIF, become PNG. For formats without transparency, images get a white background before
            they are corrupted.
        quality: quality of JPEG files.
        jobs: number of threads; by default, that of the processors.
        progress: called with the number of finished outputs and their total.
    """
    source, output = Path(source), Path(output)
    chosen = corruption_names(names)
    made = variants(chosen, severities, scale)
    workers = worker_count(jobs)
    seed = validate_seed(seed)
    validate_choice("file_format", file_format, OUTPUT_FORMATS)
    validate_integer("quality", quality, 1, 100)
    check_apart(source, output)
    settings = {"command": "corrupt", "seed": seed, "scale": scale, "format": file_format, "quality": quality}
    if full := claim_folder(output, settings, chosen):
        return Outcome(stopped=full)
    job = TreeJob(
        FolderImages(source, output, partial(_read, file_format=file_format)),
        output,
        made,
        partial(_target, file_format=file_format),
        corrupted(seed=seed, scale=scale, quality=quality),
    )
    return run_tree(job, jobs=workers, progress=progress)


def _kind(name: str, file_format: str) -> Format:
    return format_of(name) if file_format == "keep" else FORMATS[file_format]


def _target(name: str, file_format: str) -> tuple[str, Format]:
    kind = _kind(name, file_format)
    path = PurePath(name)
    keeps = path.suffix.lower() in kind.suffixes
    return (name if keeps else path.stem + kind.suffixes[0]), kind


def _read(path: Path, file_format: str) -> Image.Image:
    image = read_image(path)
    return image if _kind(path.name, file_format).alpha else flatten(image)
