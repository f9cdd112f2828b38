"""How fast the corruptions are on a CUDA GPU, and what they add to a model that looks at them.

python benchmarks/gpu.py [--parts check,table,mnist,product] [--photos FOLDER_OR_ZIP] [--json FILE]

What is measured and why this way is in the README beside this file.
"""

from __future__ import annotations

import argparse
import io
import json
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
from beaufort.testing._contracts import digit, picture

BANDWIDTH = 4.8e12
"""Bytes a second that the memory of an H200 moves by its data sheet."""
SIDE = 224
CALLS = 8
"""Calls between two events."""
LIMITS = dict.fromkeys(("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"), 2.0)
LIMITS |= dict.fromkeys(("brightness", "contrast", "saturate"), 1.0)
COMMON = get_corruption_names("common")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Beaufort's corruptions on a CUDA GPU.")
    parser.add_argument("--parts", default="check,table,mnist,product")
    parser.add_argument("--photos", type=Path, help="folder or zip of pictures; drawn ones if not given")
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--images", type=int, default=4000, help="how many go end to end")
    parser.add_argument("--turns", type=int, default=3, help="runs end to end, of which the median counts")
    parser.add_argument("--networks", nargs="+", default=["compiled", "eager"])
    parser.add_argument("--json", type=Path, help="file for all numbers")
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
        if options.json:
            options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def facts(photos: int) -> dict[str, Any]:
    """What was measured on what."""
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
        "pictures": f"{photos} photos, repeated" if photos else "drawn",
    }


def load_photos(source: Path | None, count: int) -> np.ndarray:
    """Pictures `(n, 224, 224, 3)`, the middle of each, at 256 on the short side before."""
    if source is None:
        return np.stack([picture(SIDE, SIDE, variant=i) for i in range(count)])
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
    """`(n, c, h, w)`, channels last in memory."""
    return torch.from_numpy(images).cuda().permute(0, 3, 1, 2)


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median time of a call by CUDA events, warm."""
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
    """Every corruption and severity beside the CPU backend, and each image alone beside itself in a batch."""
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
    """Microseconds an image at severity 3, all 19."""
    floor = 2 * SIDE * SIDE * 3 / BANDWIDTH * 1e6
    print(f"\n| corruption | {' | '.join(f'µs, batch {size}' for size in batches)} | floor µs | goal |")
    print("|---|" + "---:|" * (len(batches) + 2))
    found: dict[str, Any] = {"floor_us": floor}
    for name in get_corruption_names("all"):
        row = {size: microseconds(name, photos, size, repeats) for size in batches}
        limit = LIMITS.get(name, 25.0)
        found[name] = {str(size): value for size, value in row.items()}
        best = min(row.values())
        shown = " | ".join(f"{value:.2f}" for value in row.values())
        print(
            f"| {name} | {shown} | {floor:.3f} | ≤ {limit:g}{'' if best <= limit else ' **missed**'} |",
            flush=True,
        )
    for size in batches:
        mean = fmean(found[name][str(size)] for name in COMMON)
        found[f"mean_of_15_batch_{size}"] = mean
        print(f"\nmean of the 15 at batch {size}: {mean:.2f} µs an image (goal ≤ 8)")
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
    """All of MNIST-C, 15 × 10,000 digits, by the clock."""
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
    total = sum(found.values())
    print("\n| MNIST-C | ms for 10,000 digits |\n|---|---:|")
    for name, taken in found.items():
        print(f"| {name} | {taken * 1000:.1f} |")
    print(f"| all 15 | {total * 1000:.0f} (goal ≤ 1000{'' if total <= 1 else ', **missed**'}) |", flush=True)
    return {**found, "total": total}


def product(photos: np.ndarray, count: int, turns: int, names: list[str], size: int = 500) -> dict[str, Any]:
    """ImageNet-C through the public `evaluate`, beside loops that do nothing but run the network.

    The loops look at the same corrupted images, made beforehand and on the device already, and keep the most
    probable classes there: how fast a network is depends a little on what it looks at.
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
            looks, model = bare(network), as_model(network, name=name, classes=1000, **PREPARATION)
            with torch.inference_mode():
                loop = seconds_of_loop(looks, images, size)
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
                        f"answers, {run['steady']:.2f} to the last, {run['end']:.2f} after them",
                        flush=True,
                    )
                found[name][kind] = median(run["whole"] for run in runs) / count / len(conditions()) * 1e6
                found[name][f"{kind}, seconds"] = runs
    print(f"\nImageNet-C, {len(conditions())} × {count:,} images, batch {size}, ResNet-50 in bf16:\n")
    print("| network | bare loop | evaluate, arrays | evaluate, JPEG files |\n|---|---:|---:|---:|")
    for name in networks:
        row = found[name]
        shown = [f"{row[kind]:.1f} µs, {row[kind] / row['bare']:.2f} ×" for kind in data]
        print(f"| {name} | {row['bare']:.1f} µs | {' | '.join(shown)} |")
    for kind, goal in (("arrays", 1.10), ("files", 1.20)) if "compiled" in names else ():
        ratio = found["compiled"][kind] / found["compiled"]["bare"]
        missed = "" if ratio <= goal else ", **missed**"
        print(f"\n{kind}: {ratio:.3f} × the compiled loop (goal ≤ {goal}{missed})")
    return found


def timed(*arguments: Any, **options: Any) -> dict[str, float]:
    """Seconds of `evaluate`: in all, until the first answers, from there to the last, and after them."""
    answered: list[float] = []
    start = time.perf_counter()
    evaluate(*arguments, **options, progress=lambda _: answered.append(time.perf_counter()))
    end = time.perf_counter()
    first, last = answered[0], answered[-1]
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
    """A network that computes in bfloat16, whatever it gets."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network.to(torch.bfloat16, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(images.to(torch.bfloat16))
        return logits


def resnet() -> torch.nn.Module:
    """Normalized images in, logits out; the weights are random, batch norm is folded in when compiled."""
    import torchvision

    torch.manual_seed(0)
    torch._inductor.config.freezing = True
    return InBf16(torchvision.models.resnet50(weights=None).cuda().eval()).eval()


def bare(network: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """The network on bytes `(n, 3, 224, 224)`, with a preparation by hand; compiled as a whole if it is."""
    mean, std = (
        torch.tensor(PREPARATION[name], device="cuda").view(1, 3, 1, 1) * 255 for name in ("mean", "std")
    )
    inner = getattr(network, "_orig_mod", network)

    def look(images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = inner((images.float() - mean) / std)
        return logits.argmax(dim=1)

    return look if inner is network else torch.compile(look, dynamic=False)


def seconds_of_loop(look: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray, size: int) -> float:
    ids = [f"test/{i}" for i in range(len(images))]
    whole = on_device(images)
    look(whole[:size])
    taken = 0.0
    for condition in conditions():
        shown = [
            condition.apply(whole[start : start + size], ids=ids[start : start + size], scale="imagenet")
            for start in range(0, len(images), size)
        ]
        torch.cuda.synchronize()
        start = time.perf_counter()
        answers = [look(batch) for batch in shown]
        torch.cuda.synchronize()
        taken += time.perf_counter() - start
        del answers
    return taken


def write_files(folder: str, photos: np.ndarray, count: int) -> Dataset:
    """JPEG files of 500×375 pixels and about 110 kB, a few pictures under many names, in class folders."""
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


if __name__ == "__main__":
    main()
