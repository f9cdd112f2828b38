"""Writing of a tree of images for each corruption and severity: `output/corruption/severity/…`.

An image is decoded once for all missing outputs. The outputs of an image do not depend on other images, their
order, or the number of threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from threading import Event, Lock
from typing import NamedTuple, TypeVar

from PIL import Image

from beaufort._core.arrays import MIN_SIDE
from beaufort._core.errors import AssetError, BeaufortError, ImageFileError, OptionError
from beaufort._core.files import is_leftover, remove_leftover, write_bytes
from beaufort.data.images import Format, encode
from beaufort.data.writers.image_sources import SourceImages
from beaufort.data.writers.output_folder import Failure, Outcome, Progress, stop_reason
from beaufort.data.writers.variants import Variant

_LARGE = 16_000_000
"""Images of more pixels are processed one at a time, so that memory does not grow with threads."""


Content = Callable[[Image.Image, Variant, str, Format], bytes]
"""Returns the bytes of an output file for an image, a variant, an image id and a format."""


@dataclass(frozen=True)
class TreeJob:
    """The images and outputs of a job."""

    images: SourceImages
    output: Path
    variants: Sequence[Variant]
    target: Callable[[str], tuple[str, Format]]
    """Returns the name and format of the output for the name of a source."""
    content: Content
    limit: int | None = None
    """Maximum number of images."""


def corrupted(*, seed: int, scale: str = "auto", quality: int = 85) -> Content:
    """Return a function that makes the file of a corrupted image; `quality` is that of JPEG."""

    def content(image: Image.Image, variant: Variant, identity: str, kind: Format) -> bytes:
        made = variant.chain(image, ids=[identity], seed=seed, scale=scale)
        return encode(made, kind, quality)

    return content


class _Task(NamedTuple):
    """An image and its missing outputs."""

    image: PurePosixPath
    """Path below a corruption and severity."""
    kind: Format
    outputs: tuple[tuple[Variant, Path], ...]


class _TaskOutcome(NamedTuple):
    outputs: int
    """Number of outputs, including failures."""
    done: int = 0
    failures: Sequence[Failure] = ()


def run_tree(job: TreeJob, *, jobs: int, progress: Progress | None = None) -> Outcome:
    """Write the missing outputs of a tree."""
    run = _TreeRun(job, progress)
    run_bounded(run.make, run.tasks(), run.collect, jobs=jobs, stop=run.stop)
    missing = [Failure(name, message) for name, message in run.unavailable.items()]
    if not (run.dealt_with or run.failures or run.stopped):
        missing.append(Failure(".", "no images found; files are recognized by their extensions"))
    failures = tuple(sorted({*run.failures, *missing}))  # one image may have several tasks
    return Outcome(run.done, run.skipped, failures, run.ignored, run.stopped)


class _TreeRun:
    """The state of a running job, shared by its threads."""

    def __init__(self, job: TreeJob, progress: Progress | None) -> None:
        self.job = job
        self.progress = progress
        self.stop = Event()
        self.stopped: str | None = None
        self.unavailable: dict[str, str] = {}
        self.large = Lock()
        self.total = 0
        if progress:
            found = sum(len(folder.images) for folder in job.images.folders())
            self.total = min(found, job.limit or found) * len(job.variants)
        self.dealt_with = self.done = self.skipped = self.ignored = 0
        self.failures: list[Failure] = []

    # The following methods run in the thread of the caller.

    def collect(self, outcome: _TaskOutcome) -> None:
        self.dealt_with += outcome.outputs
        self.done += outcome.done
        self.failures += outcome.failures
        if self.progress is not None and outcome.outputs:
            self.progress(self.dealt_with, self.total)

    def tasks(self) -> Iterator[_Task]:
        left = self.job.limit
        for folder in self.job.images.folders():
            images = folder.images[:left]
            self.ignored += folder.ignored
            self.failures += [folder.failure] if folder.failure else []
            for task in self.folder_tasks(folder.relative, images) if images else ():
                yield from _by_corruption(task) if self.job.images.alone else [task]
            if left is not None and not (left := left - len(images)):
                return

    def folder_tasks(self, relative: PurePosixPath, images: Sequence[str]) -> Iterator[_Task]:
        folders = {variant: self.job.output / variant.folder / relative for variant in self.job.variants}
        try:
            present = {variant: self.present(folder) for variant, folder in folders.items()}
        except (OSError, RuntimeError, BeaufortError) as error:  # a link to itself is a RuntimeError
            failure = Failure(relative.as_posix(), f"cannot write its outputs: {_reason(error)}")
            self.collect(_TaskOutcome(len(images) * len(folders), failures=[failure]))
            return
        taken: dict[str, str] = {}
        for name in images:
            target, kind = self.job.target(name)
            if (first := taken.setdefault(target, name)) != name:
                message = f"its outputs would have the same name {target} as those of {first}"
                failure = Failure((relative / name).as_posix(), message)
                self.collect(_TaskOutcome(len(folders), failures=[failure]))
                continue
            missing = [
                (one, folder / target) for one, folder in folders.items() if target not in present[one]
            ]
            skipped = len(folders) - len(missing)
            self.skipped += skipped
            self.collect(_TaskOutcome(skipped))
            if missing:
                yield _Task(relative / name, kind, tuple(missing))

    def present(self, folder: Path) -> set[str]:
        """Return the names in an output directory, and delete drafts of killed runs."""
        root = self.job.output.resolve()
        if not folder.resolve().is_relative_to(root):
            raise OptionError(f"the link {folder} leads out of {root}")
        try:
            with os.scandir(folder) as entries:
                names = {entry.name for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return set()
        for name in filter(is_leftover, names):
            remove_leftover(folder / name)
        return names

    # The following methods run in worker threads.

    def make(self, task: _Task) -> _TaskOutcome:
        """Decode an image and write its outputs; failures are part of the outcome."""
        with self.large if self.job.images.size(task.image) > _LARGE else nullcontext():
            path, count, done = task.image.as_posix(), len(task.outputs), 0
            try:
                image = self.job.images.read(task.image)
                if min(image.size) < MIN_SIDE:
                    raise ImageFileError(
                        f"both sides of an image must be at least {MIN_SIDE} pixels, got {image.height} × "
                        f"{image.width}"
                    )
            except (BeaufortError, OSError) as error:
                return _TaskOutcome(count, failures=[Failure(path, _reason(error))])
            failed: dict[str, list[Variant]] = {}
            for variant, target in task.outputs:
                try:
                    done += self.make_one(image, task, variant, target)
                except (BeaufortError, OSError, MemoryError) as error:
                    failed.setdefault(_reason(error), []).append(variant)
            failures = [Failure(path, f"{_listed(some)}: {reason}") for reason, some in failed.items()]
            return _TaskOutcome(count, done, failures)

    def make_one(self, image: Image.Image, task: _Task, variant: Variant, target: Path) -> bool:
        """Write one output; return False if the job is stopping or files of the corruption are missing."""
        if self.stop.is_set() or variant.name in self.unavailable:
            return False
        try:
            identity = self.job.images.identity(task.image)
            content = self.job.content(image, variant, identity, task.kind)
        except AssetError as error:
            self.unavailable[variant.name] = str(error)
            return False
        try:
            write_bytes(target, content)
        except OSError as error:
            if not (reason := stop_reason(target, error)):
                raise
            self.stopped = reason
            self.stop.set()
            return False
        return True


def _by_corruption(task: _Task) -> Iterator[_Task]:
    """Yield a task for each corruption, so that a single image can use several threads."""
    for _, outputs in groupby(task.outputs, key=lambda output: output[0].name):
        yield task._replace(outputs=tuple(outputs))


def _listed(variants: Sequence[Variant]) -> str:
    return str(variants[0]) if len(variants) == 1 else f"{variants[0]} and {len(variants) - 1} more"


def _reason(error: BaseException) -> str:
    if isinstance(error, BeaufortError):
        return str(error)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


T = TypeVar("T")
R = TypeVar("R")

_TASKS_PER_THREAD = 2
"""Number of submitted tasks for each thread, running or waiting."""


def run_bounded(
    work: Callable[[T], R], tasks: Iterable[T], collect: Callable[[R], None], *, jobs: int, stop: Event
) -> None:
    """Call `work` on each task in `jobs` threads, and `collect` on each result in the thread of the caller.

    The order of results is arbitrary. When `stop` is set, no further tasks are taken. An error or an
    interruption sets it, waits for running tasks, and is raised again.
    """
    waiting: set[Future[R]] = set()

    def drain(most: int) -> None:
        nonlocal waiting
        while len(waiting) > most:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                collect(future.result())

    with _one_thread_in_opencv(), ThreadPoolExecutor(jobs) as pool:
        try:
            for task in tasks:
                if stop.is_set():
                    break
                waiting.add(pool.submit(work, task))
                drain(_TASKS_PER_THREAD * jobs - 1)
            drain(0)
        except BaseException:
            stop.set()
            for future in waiting:
                future.cancel()
            raise


@contextlib.contextmanager
def _one_thread_in_opencv() -> Iterator[None]:
    """Disable the threads of OpenCV."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
