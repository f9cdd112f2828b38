"""Measure the corruptions on a CUDA GPU and the overhead of `evaluate` there.

python -m benchmarks gpu [--parts check,table,mnist,product] [--photos DIRECTORY_OR_ZIP]

The README in this directory explains what is measured and why.
"""

from __future__ import annotations

import argparse
import io
import platform
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from PIL import Image

from beaufort import evaluate, get_corruption_names
from beaufort.corruptions import corruptions
from beaufort.data import Dataset, from_arrays, load_dataset
from beaufort.evaluation import RunOptions
from beaufort.models import as_model
from beaufort.suites import get_suite
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import digit, example_image
from benchmarks.recording import record

BANDWIDTH = 4.8e12
"""Bytes per second of the memory of an H200, by its data sheet."""
SIDE = 224
CALLS = 8
"""Calls between two events."""
LIMITS = dict.fromkeys(("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"), 2.0)
LIMITS |= dict.fromkeys(("brightness", "contrast", "saturate"), 1.0)
COMMON = get_corruption_names("common")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="check,table,mnist,product")
    parser.add_argument(
        "--photos", type=Path, help="directory or zip file with photos (default: synthetic ones)"
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--images", type=int, default=4000, help="images of the end-to-end runs")
    parser.add_argument("--turns", type=int, default=3, help="end-to-end runs; the median counts")
    parser.add_argument("--networks", nargs="+", default=["compiled", "eager"])
    options = parser.parse_args()
    photos = load_photos(options.photos, 64)
    found: dict[str, Any] = {"facts": facts(len(photos) if options.photos else 0)}
    print("\n".join(f"- {key}: {value}" for key, value in found["facts"].items()), flush=True)
    for part in options.parts.split(","):
        start = time.perf_counter()
        match part:
            case "check":
                found[part] = check(photos[:16])
            case "table":
                found[part] = table(photos, options.batch, options.repeats)
            case "mnist":
                found[part] = mnist()
            case "product":
                found[part] = product(photos, options.images, options.turns, options.networks)
        print(f"\n({part}: {time.perf_counter() - start:.0f} s)", flush=True)


def facts(photos: int) -> dict[str, Any]:
    """Return facts about the device and the images."""
    import triton

    x = torch.empty(1 << 31, dtype=torch.uint8, device="cuda").random_(0, 255)
    y = torch.empty_like(x)
    taken = seconds(lambda: y.copy_(x), 10)
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "copy": f"{2 * x.numel() / taken / 1e12:.2f} TB/s read and written",
        "images": f"{photos} photos, repeated" if photos else "synthetic",
    }


def load_photos(source: Path | None, count: int) -> np.ndarray:
    """Return images `(n, 224, 224, 3)`: short side resized to 256, center crop."""
    if source is None:
        return np.stack([example_image(SIDE, SIDE, variant=i) for i in range(count)])
    if source.suffix == ".zip":
        packed = zipfile.ZipFile(source)
        names = [name for name in packed.namelist() if name.lower().endswith((".jpg", ".jpeg", ".png"))]
        opened: Iterator[Any] = (io.BytesIO(packed.read(name)) for name in names[:count])
    else:
        opened = iter(
            sorted(path for path in source.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[:count]
        )
    return np.stack([middle(Image.open(one).convert("RGB")) for one in opened])


def middle(image: Image.Image) -> np.ndarray:
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)))
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))


def on_device(images: np.ndarray) -> torch.Tensor:
    """Return a tensor `(n, c, h, w)` in channels-last format."""
    return torch.from_numpy(images).cuda().permute(0, 3, 1, 2)


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of a warm call, by CUDA events."""
    for _ in range(3):
        work()
    taken: list[float] = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        work()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) / 1000)
    return median(taken)


def check(photos: np.ndarray) -> dict[str, Any]:
    """Compare every corruption and severity with the CPU, and images alone with images in a batch."""
    print("\n| corruption | equal | within 1 level | largest mean difference | alone as in a batch |")
    print("|---|---:|---:|---:|---|")
    found = {}
    digits = np.stack([digit(variant=i % 6) for i in range(len(photos))])
    for name in [*get_corruption_names("all"), *get_corruption_names("mnist-c-all")]:
        scale = "mnist" if name in found or "imagenet" not in corruptions[name].recipes else "imagenet"
        images = digits if scale == "mnist" else photos
        rows = [beside_cpu(name, images, scale, severity) for severity in range(1, 6)]
        label = f"{name} (mnist)" if scale == "mnist" else name
        found[label] = row = {
            "equal": min(row["equal"] for row in rows),
            "within": min(row["within"] for row in rows),
            "mean": max(row["mean"] for row in rows),
            "alone": all(row["alone"] for row in rows),
        }
        record(f"{label}, equal to CPU", 100 * row["equal"], "%")
        ok = row["within"] >= 0.995 and row["mean"] <= 0.25 and row["alone"]
        print(
            f"| {label} | {row['equal']:.4%} | {row['within']:.4%} | {row['mean']:.4f} | "
            f"{'yes' if row['alone'] else '**no**'} |{'' if ok else ' **missed**'}",
            flush=True,
        )
    return found


def beside_cpu(name: str, images: np.ndarray, scale: str, severity: int) -> dict[str, Any]:
    ids = [f"image {i}" for i in range(len(images))]
    wanted = corruptions[name](images, severity, ids=ids, scale=scale)
    tensor = on_device(images)
    out = corruptions[name](tensor, severity, ids=ids, scale=scale)
    one = len(images) // 2
    alone = corruptions[name](tensor[one], severity, ids=ids[one : one + 1], scale=scale)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(severity)).tolist()
    turned = corruptions[name](tensor[order], severity, ids=[ids[i] for i in order], scale=scale)
    same = torch.equal(alone, out[one]) and torch.equal(turned, out[order])
    off = np.abs(out.permute(0, 2, 3, 1).cpu().numpy().astype(int) - wanted)
    return {
        "equal": float((off == 0).mean()),
        "within": float((off <= 1).mean()),
        "mean": float(off.reshape(len(off), -1).mean(axis=1).max()),
        "alone": same,
    }


def table(photos: np.ndarray, batches: list[int], repeats: int) -> dict[str, Any]:
    """Measure microseconds per image at severity 3 for all 19 corruptions."""
    floor = 2 * SIDE * SIDE * 3 / BANDWIDTH * 1e6
    print(f"\n| corruption | {' | '.join(f'µs, batch {size}' for size in batches)} | floor µs | goal |")
    print("|---|" + "---:|" * (len(batches) + 2))
    found: dict[str, Any] = {"floor_us": floor}
    for name in get_corruption_names("all"):
        row = {size: microseconds(name, photos, size, repeats) for size in batches}
        limit = LIMITS.get(name, 25.0)
        found[name] = {str(size): value for size, value in row.items()}
        for size, value in row.items():
            record(f"{name}, batch {size}", value, "µs/image", f"≤ {limit:g}")
        best = min(row.values())
        shown = " | ".join(f"{value:.2f}" for value in row.values())
        print(
            f"| {name} | {shown} | {floor:.3f} | ≤ {limit:g}{'' if best <= limit else ' **missed**'} |",
            flush=True,
        )
    for size in batches:
        mean = fmean(found[name][str(size)] for name in COMMON)
        found[f"mean_of_15_batch_{size}"] = mean
        record(f"mean of the 15, batch {size}", mean, "µs/image", "≤ 8")
        print(f"\nmean of the 15 at batch {size}: {mean:.2f} µs per image (goal ≤ 8)")
    return found


def microseconds(name: str, photos: np.ndarray, size: int, repeats: int) -> float:
    sets = [on_device(np.roll(photos, k, axis=0)[np.arange(size) % len(photos)]) for k in range(4)]
    ids = [range(k * size, (k + 1) * size) for k in range(4)]
    turn = iter(range(1 << 60))

    def work() -> None:
        for _ in range(CALLS):
            k = next(turn) % 4
            corruptions[name](sets[k], 3, ids=ids[k], scale="imagenet")

    return seconds(work, repeats) / CALLS / size * 1e6


def mnist() -> dict[str, Any]:
    """Measure the wall time of MNIST-C on 10,000 digits."""
    digits = on_device(np.stack([digit(variant=i % 6) for i in range(10_000)]))
    ids = range(len(digits))
    found: dict[str, Any] = {}
    for name in get_corruption_names("mnist-c"):
        for warm in (False, True):
            torch.cuda.synchronize()
            start = time.perf_counter()
            corruptions[name](digits, ids=ids, scale="mnist")
            torch.cuda.synchronize()
            if warm:
                found[name] = time.perf_counter() - start
    total = record("MNIST-C, 15 corruptions of 10,000 digits", sum(found.values()), "s", "≤ 1")
    print("\n| MNIST-C | ms for 10,000 digits |\n|---|---:|")
    for name, taken in found.items():
        print(f"| {name} | {taken * 1000:.1f} |")
    print(f"| all 15 | {total * 1000:.0f} (goal ≤ 1000{'' if total <= 1 else ', **missed**'}) |", flush=True)
    return {**found, "total": total}


def product(photos: np.ndarray, count: int, turns: int, names: list[str], size: int = 500) -> dict[str, Any]:
    """Compare ImageNet-C through the public `evaluate` with loops that only run the network.

    The loops use the same corrupted images, already on the device, because the speed of a network depends a
    little on its input.
    """
    networks: dict[str, Any] = {"compiled": torch.compile(resnet(), dynamic=False), "eager": resnet()}
    networks = {name: network for name, network in networks.items() if name in names}
    images = photos[np.arange(count) % len(photos)]
    labels = np.arange(count) % 1000
    found: dict[str, Any] = {"images": count, "batch": size, "conditions": len(conditions())}
    with tempfile.TemporaryDirectory() as folder:
        data = {
            "arrays": (replace(SUITE, prepare=()), from_arrays("photos", images, labels)),
            "files": (SUITE, write_files(folder, photos, count)),
        }
        for name, network in networks.items():
            predict, model = bare(network), as_model(network, name=name, classes=1000, **PREPARATION)
            with torch.inference_mode():
                loop = seconds_of_loop(predict, images, size)
            found[name] = {"bare": loop / count / len(conditions()) * 1e6}
            print(f"  {name}, bare loop: {loop:.2f} s", flush=True)
            for kind, (suite, source) in data.items():
                warm = source.first(2 * size)
                settings: dict[str, Any] = {"labels": "identity", "options": RunOptions(batch_size=size)}
                evaluate([model], suite, warm, f"{folder}/warm-{name}-{kind}", **settings)
                runs = []
                for turn in range(turns):
                    store = f"{folder}/{name}-{kind}-{turn}"
                    runs.append(run := timed([model], suite, source, store, **settings))
                    print(
                        f"  {name}, {kind}: {run['whole']:.2f} s: {run['start']:.2f} until the first "
                        f"batch, {run['steady']:.2f} to the last, {run['end']:.2f} after it",
                        flush=True,
                    )
                found[name][kind] = median(run["whole"] for run in runs) / count / len(conditions()) * 1e6
                found[name][f"{kind}, seconds"] = runs
    print(f"\nImageNet-C, {len(conditions())} × {count:,} images, batch {size}, ResNet-50 in bf16:\n")
    print("| network | bare loop | evaluate, arrays | evaluate, JPEG files |\n|---|---:|---:|---:|")
    for name in networks:
        row = found[name]
        for kind in data:
            record(f"{name}, {kind}, evaluate / bare loop", row[kind] / row["bare"], "×")
        shown = [f"{row[kind]:.1f} µs, {row[kind] / row['bare']:.2f} ×" for kind in data]
        print(f"| {name} | {row['bare']:.1f} µs | {' | '.join(shown)} |")
    for kind, goal in (("arrays", 1.10), ("files", 1.20)) if "compiled" in names else ():
        ratio = found["compiled"][kind] / found["compiled"]["bare"]
        missed = "" if ratio <= goal else ", **missed**"
        print(f"\n{kind}: {ratio:.3f} × the compiled loop (goal ≤ {goal}{missed})")
    return found


def timed(*arguments: Any, **options: Any) -> dict[str, float]:
    """Return seconds of `evaluate`: in total, until the first batch, between the batches, and after them."""
    times: list[float] = []
    start = time.perf_counter()
    evaluate(*arguments, **options, progress=lambda _: times.append(time.perf_counter()))
    end = time.perf_counter()
    first, last = times[0], times[-1]
    return {"whole": end - start, "start": first - start, "steady": last - first, "end": end - last}


SUITE = get_suite("imagenet-c")
PREPARATION: dict[str, Any] = {
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "channels_last": True,
    "device": "cuda",
}


def conditions() -> list[Condition]:
    return SUITE.conditions("photos")


class InBf16(torch.nn.Module):
    """A network that computes in bfloat16."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network.to(torch.bfloat16, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(images.to(torch.bfloat16))
        return logits


def resnet() -> torch.nn.Module:
    """Return a ResNet-50 with random weights; batch norm is folded when it is compiled."""
    import torchvision

    torch.manual_seed(0)
    torch._inductor.config.freezing = True
    return InBf16(torchvision.models.resnet50(weights=None).cuda().eval()).eval()


def bare(network: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the network on bytes `(n, 3, 224, 224)`, normalized by hand, compiled if the network is."""
    mean, std = (
        torch.tensor(PREPARATION[name], device="cuda").view(1, 3, 1, 1) * 255 for name in ("mean", "std")
    )
    inner = getattr(network, "_orig_mod", network)

    def predict(images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = inner((images.float() - mean) / std)
        return logits.argmax(dim=1)

    return predict if inner is network else torch.compile(predict, dynamic=False)


def seconds_of_loop(predict: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray, size: int) -> float:
    ids = [f"test/{i}" for i in range(len(images))]
    whole = on_device(images)
    predict(whole[:size])
    taken = 0.0
    for condition in conditions():
        batches = [
            condition.apply(whole[start : start + size], ids=ids[start : start + size], scale="imagenet")
            for start in range(0, len(images), size)
        ]
        torch.cuda.synchronize()
        start = time.perf_counter()
        outputs = [predict(batch) for batch in batches]
        torch.cuda.synchronize()
        taken += time.perf_counter() - start
        del outputs
    return taken


def write_files(folder: str, photos: np.ndarray, count: int) -> Dataset:
    """Write JPEG files of 500×375 pixels and about 110 kB in class directories, repeating a few photos."""
    for i in range(count):
        file = Path(folder, "files", "photos", f"class{i % 1000:03}", f"{i:06}.jpg")
        file.parent.mkdir(parents=True, exist_ok=True)
        if i < len(photos):
            Image.fromarray(photos[i]).resize((500, 375), Image.Resampling.BICUBIC).save(file, quality=99)
            first = file.parent.parent
        else:
            pool = i % len(photos)
            shutil.copyfile(first / f"class{pool % 1000:03}" / f"{pool:06}.jpg", file)
    return load_dataset(f"folder:{folder}/files/photos")
