"""Compare loading, corrupting and normalizing JPEG files with the loaders of torchvision and timm.

python -m benchmarks pipeline                          # synthetic photos of 500 × 375 pixels
python -m benchmarks pipeline --photos imagenet/val    # directory or zip file with photos

Every pipeline decodes, resizes the short side to 256 pixels, crops the central 224 × 224, corrupts (or not),
and produces normalized float32 batches, channels first. Each has two workers (threads or processes, whatever
it uses) and runs in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from beaufort.data import Step
from beaufort.evaluation import LocalOptions, RunOptions
from benchmarks.recording import record

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STEPS = (Step("resize", 256), Step("crop", 224))
BATCH = 64
ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
ROUTES = ("beaufort, evaluate", "beaufort, DataLoader", "torchvision, DataLoader", "timm, create_loader")
CORRUPTIONS = ("none", "fog@3")
WARM_UP = 2 * BATCH
"""Images that each process handles before it is measured."""


def main() -> None:
    """Prepare the photos, run the routes in turns and print a table."""
    options = parse()
    if options.route:
        print(json.dumps(measure(options.route, options.corruption, options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "photos"
        count = gather(options.photos, folder, options.images)
        turns_of: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(options.turns):  # interleaved, so that a busy machine slows all of them
            for corruption in CORRUPTIONS:
                for route in ROUTES:
                    turns_of.setdefault((route, corruption), []).append(
                        in_a_process(route, corruption, folder)
                    )
    rows = [
        {"route": route, "corruption": corruption}
        | {key: median(turn[key] for turn in turns) for key in turns[0]}
        for (route, corruption), turns in turns_of.items()
    ]
    facts = {
        "photos": "synthetic, 500 × 375" if options.photos is None else options.photos.name,
        "images": count,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "versions": {name: version(name) for name in ("pillow", "torch", "torchvision", "timm", "numpy")},
    }
    for row in rows:
        name = f"{row['route']}, {row['corruption']}"
        record(f"{name}, throughput", float(row["images_a_second"]), "images/s")
        record(f"{name}, CPU", float(row["cpu_ms_an_image"]), "ms/image")
    print(markdown(rows, facts))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, help="directory or zip file (default: synthetic photos)")
    parser.add_argument("--images", type=int, default=1000, help="number of images; files are repeated")
    parser.add_argument("--turns", type=int, default=3, help="turns of each route; the median counts")
    parser.add_argument("--route", choices=ROUTES, help=argparse.SUPPRESS)
    parser.add_argument("--corruption", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def gather(photos: Path | None, folder: Path, count: int) -> int:
    """Copy photos into a directory of one class, repeated if there are too few, and return their number."""
    home = folder / "photo"
    home.mkdir(parents=True)
    few = list(contents(photos) if photos else synthetic())[:count]
    if not few:
        raise SystemExit(f"no JPEG files found in {photos}")
    for number in range(count):
        (home / f"{number:06}.jpg").write_bytes(few[number % len(few)])
    return count


def contents(photos: Path) -> Iterator[bytes]:
    """Yield the JPEG files of a directory or zip file."""
    endings = (".jpg", ".jpeg")
    if photos.is_file():
        with zipfile.ZipFile(photos) as archive:
            for name in sorted(archive.namelist()):
                if name.lower().endswith(endings):
                    yield archive.read(name)
        return
    for path in sorted(photos.rglob("*")):
        if path.suffix.lower() in endings:
            yield path.read_bytes()


def synthetic(count: int = 64) -> Iterator[bytes]:
    """Yield scenes with grain, of the dimensions and file size of typical ImageNet photos."""
    import io

    from PIL import Image

    from beaufort.testing._contracts import example_image

    rng = np.random.default_rng(0)
    for number in range(count):
        size = (375, 500) if number % 4 else (500, 375)
        grain = rng.normal(0, 8, (*size, 3))
        scene = np.clip(example_image(*size, variant=number % 16) + grain, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(scene).save(file, "JPEG", quality=90)
        yield file.getvalue()


def in_a_process(route: str, corruption: str, folder: Path) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "pipeline",
        "--route",
        route,
        "--corruption",
        corruption,
        "--folder",
        str(folder),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(route: str, corruption: str, folder: Path) -> dict[str, float]:
    """Return images per second and milliseconds of CPU time per image, workers included."""
    from beaufort._core.optional import prepare_torchvision

    prepare_torchvision()
    makers: dict[str, Callable[[Path, str], Callable[[int | None], int]]] = dict(
        zip(ROUTES, (evaluation, own_loader, torchvision_loader, timm_loader), strict=True)
    )
    go = makers[route](folder, corruption)
    go(WARM_UP)
    start, before = time.perf_counter(), cpu_seconds()
    count = go(None)
    seconds, used = time.perf_counter() - start, cpu_seconds() - before
    return {"images_a_second": count / seconds, "cpu_ms_an_image": 1000 * used / count}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished workers."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))


def evaluation(folder: Path, corruption: str) -> Callable[[int | None], int]:
    """Evaluate as `beaufort run` does, with a model that only normalizes its batches."""
    from beaufort.data import load_dataset
    from beaufort.models import Preprocessing, as_model
    from beaufort.results import evaluate
    from beaufort.suites import Suite

    preprocessing = Preprocessing(size=(224, 224), mean=MEAN, std=STD)
    batches: list[int] = []

    def predict(images: np.ndarray) -> np.ndarray:
        batch = preprocessing.apply(images)
        assert batch.shape[1:] == (3, 224, 224)
        batches.append(len(batch))
        return np.zeros((len(batch), 2), np.float32)

    data = load_dataset(str(folder))
    clean = corruption == "none"
    name, _, severity = corruption.partition("@")
    suite = Suite(
        name="photos",
        version=1,
        dataset="photos",
        prepare=STEPS,
        clean=clean,
        corruptions=() if clean else (name,),
        severities=() if clean else (int(severity),),
    )

    def go(first: int | None) -> int:
        batches.clear()
        model = as_model(predict, name="constant", classes=2, version="1")
        evaluate(
            [model],
            suite,
            data,
            engine=LocalOptions(WORKERS),
            options=RunOptions(first=first, batch_size=BATCH),
            labels="identity",
        )
        return sum(batches)

    return go


class OwnPhotos:
    """Photos as a run reads them, as a dataset for a `DataLoader`."""

    def __init__(self, folder: Path, corruption: str) -> None:
        from beaufort.corruptions import Corrupt
        from beaufort.data import PreparedImages, load_dataset

        data = load_dataset(str(folder))
        self.images = PreparedImages(data, STEPS, gray=False)
        self.ids = data.ids
        self.corrupt = None if corruption == "none" else Corrupt(corruption)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: int) -> np.ndarray:
        image = self.images(place)
        assert isinstance(image, np.ndarray)
        return image if self.corrupt is None else self.corrupt(image, image_id=self.ids[place])


def own_loader(folder: Path, corruption: str) -> Callable[[int | None], int]:
    """Read and corrupt in the workers of a `DataLoader`; normalize in the process that receives the bytes."""
    import torch

    from beaufort.models import Preprocessing

    preprocessing = Preprocessing(size=(224, 224), mean=MEAN, std=STD)

    def collate(images: list[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.stack(images))

    return loading(
        OwnPhotos(folder, corruption),
        collate,
        lambda batch: torch.from_numpy(preprocessing.apply(batch.numpy())),
    )


def torchvision_loader(folder: Path, corruption: str) -> Callable[[int | None], int]:
    """Use `ImageFolder` and transforms v2 in the order of torchvision's presets."""
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = [
        v2.Resize(256),
        v2.CenterCrop(224),
        *corrupting(corruption),
        v2.PILToTensor(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
    return loading(ImageFolder(str(folder), transform=v2.Compose(steps)))


def timm_loader(folder: Path, corruption: str) -> Callable[[int | None], int]:
    """Use `create_dataset` and `create_loader` for evaluation, without the GPU prefetcher."""
    timm: Any = import_module("timm.data")

    def go(first: int | None) -> int:
        data = timm.create_dataset("", root=str(folder))
        loader = timm.create_loader(
            subset(data, first) if first else data,
            input_size=(3, 224, 224),
            batch_size=BATCH,
            is_training=False,
            use_prefetcher=False,
            interpolation="bilinear",
            mean=MEAN,
            std=STD,
            crop_pct=0.875,
            num_workers=WORKERS,
            pin_memory=False,
            persistent_workers=False,
        )
        whole = getattr(loader.dataset, "dataset", loader.dataset)
        made = whole.transform = loader.dataset.transform
        made.transforms[2:2] = corrupting(corruption)  # after Resize and CenterCrop
        whole[0]
        return sum(check(batch[0]) for batch in loader)

    return go


def corrupting(corruption: str) -> list[Any]:
    """Return our corruption as a transform, because neither loader has any."""
    from beaufort.corruptions import Corrupt

    return [] if corruption == "none" else [Corrupt(corruption)]


def loading(
    data: Any,
    collate: Callable[[list[Any]], Any] | None = None,
    finish: Callable[[Any], Any] = lambda b: b[0],
) -> Callable[[int | None], int]:
    from torch.utils.data import DataLoader

    data[0]

    def go(first: int | None) -> int:
        loader = DataLoader(
            subset(data, first) if first else data, batch_size=BATCH, num_workers=WORKERS, collate_fn=collate
        )
        return sum(check(finish(batch)) for batch in loader)

    return go


def subset(data: Any, count: int) -> Any:
    from torch.utils.data import Subset

    return Subset(data, range(min(count, len(data))))


def check(batch: Any) -> int:
    """Return the number of images in a batch after checking its shape and dtype."""
    assert batch.shape[1:] == (3, 224, 224)
    assert str(batch.dtype) == "torch.float32"
    return len(batch)


def markdown(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """Return the results as a table."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    lines = [
        f"{facts['images']:,} photos ({facts['photos']}), batches of {BATCH}, {WORKERS} workers:",
        "",
        "| pipeline | corruption | images a second | CPU ms an image |",
        "|---|---|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['route']} | {row['corruption']} | {row['images_a_second']:.0f} | "
            f"{row['cpu_ms_an_image']:.2f} |"
        )
    return "\n".join(
        [*lines, "", f"{facts['cores']} cores, Python {platform.python_version()}, {versions}.", ""]
    )
