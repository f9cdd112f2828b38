"""How fast the corruptions are on a CUDA GPU, and what they add to a model that looks at them.

python benchmarks/gpu.py [--parts check,table,mnist,imagenet] [--photos FOLDER_OR_ZIP] [--json FILE]

What is measured and why this way is in the README beside this file.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from PIL import Image

from beaufort import corruptions, get_corruption_names
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
    parser.add_argument("--parts", default="check,table,mnist,imagenet")
    parser.add_argument("--photos", type=Path, help="folder or zip of pictures; drawn ones if not given")
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--images", type=int, default=8192, help="how many of the 50,000 go end to end")
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
            case "imagenet":
                found[part] = imagenet(photos, options.images)
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
    taken = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) / 1000)
    return median(taken)


def check(photos: np.ndarray) -> dict[str, Any]:
    """Every corruption and severity beside the CPU engine, and each image alone beside itself in a batch."""
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


def imagenet(photos: np.ndarray, count: int, size: int = 512) -> dict[str, Any]:
    """75 conditions through a compiled bf16 ResNet-50 of random weights: with and without corruption.

    How fast the model is depends a little on what it looks at: values that change less cost less power. So
    inference alone looks at the same corrupted images, condition by condition, in turn with the whole.
    """
    model = compiled_resnet()
    count -= count % size
    whole = torch.from_numpy(photos[np.arange(count) % len(photos)]).cuda().permute(0, 3, 1, 2)
    resident = torch.cuda.memory_allocated()
    parts = [slice(start, start + size) for start in range(0, count, size)]
    ids = [f"val/{i:08d}" for i in range(count)]
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()

    def corrupted(name: str, severity: int, part: slice) -> torch.Tensor:
        return corruptions[name](whole[part], severity, ids=ids[part], scale="imagenet")

    def everything(name: str, severity: int) -> list[torch.Tensor]:
        return [corrupted(name, severity, part) for part in parts]

    def look(batches: list[torch.Tensor]) -> None:
        for batch in batches:
            model(batch)

    def both(name: str, severity: int) -> None:
        seen: list[torch.cuda.Event] = []
        for part in parts:
            with torch.cuda.stream(side):
                if len(seen) >= 2:  # no more than two batches wait to be seen
                    side.wait_event(seen[-2])
                made = corrupted(name, severity, part)
                ready = side.record_event()
            here.wait_event(ready)
            made.record_stream(here)
            model(made)
            seen.append(here.record_event())

    taken: dict[str, float] = dict.fromkeys(("inference", "corruption", "both"), 0.0)
    peak = dict.fromkeys(taken, 0.0)

    def clock(what: str, work: Callable[[], Any]) -> None:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken[what] += time.perf_counter() - start
        peak[what] = max(peak[what], (torch.cuda.max_memory_allocated() - before) / 1e9)

    conditions = [(name, severity) for name in COMMON for severity in range(1, 6)]
    with torch.inference_mode():
        for name, severity in conditions:  # compiled and warm
            model(corrupted(name, severity, parts[0]))
        for name, severity in conditions:
            clock("corruption", partial(everything, name, severity))
            clock("inference", partial(look, everything(name, severity)))
            clock("both", partial(both, name, severity))
    scale = 50_000 / count
    found: dict[str, Any] = {"images": count, "batch": size, "resident_gb": resident / 1e9}
    for what, value in taken.items():
        each = value / count / len(conditions) * 1e6
        found[what] = {"s": value, "us": each, "s_for_50k": value * scale, "peak_gb": peak[what]}
    ratio = found["ratio"] = taken["both"] / taken["inference"]
    print(f"\nImageNet-C, 75 × {count:,} images, batch {size}; ResNet-50, bf16, compiled, random weights:\n")
    print("| | µs an image | s for 75 × 50,000 | peak memory beyond images and model |\n|---|---:|---:|---:|")
    for what in taken:
        row = found[what]
        print(f"| {what} | {row['us']:.2f} | {row['s_for_50k']:.0f} | {row['peak_gb']:.2f} GB |")
    print(f"\nboth / inference: {ratio:.3f} (goal ≤ 1.25{'' if ratio <= 1.25 else ', **missed**'})")
    return found


def compiled_resnet() -> Callable[[torch.Tensor], torch.Tensor]:
    """Images `(n, 3, 224, 224)` in, logits out; the weights are random, batch norm is folded in."""
    import torchvision

    torch.manual_seed(0)
    torch._inductor.config.freezing = True
    network = torchvision.models.resnet50(weights=None).cuda().eval()
    network = network.to(torch.bfloat16, memory_format=torch.channels_last)
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1) * 255
    std = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1) * 255

    @torch.compile(dynamic=False)
    def look(images: torch.Tensor) -> torch.Tensor:
        prepared = ((images.float() - mean) / std).to(torch.bfloat16)
        return network(prepared)

    return look


if __name__ == "__main__":
    main()
