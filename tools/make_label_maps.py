"""Write the label maps of natural shifts, `src/beaufort/data/labels/data/maps`, from published class lists.

    python tools/make_label_maps.py DIRECTORY

DIRECTORY contains `imagenet_testbed/class_subsets.json` and `imagenet_d/category_to_imagenet_ids.json`. A map
lists which classes of ImageNet count as each class of a dataset.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from beaufort.data.labels import class_ids

TARGET = Path(__file__).parents[1] / "src" / "beaufort" / "data" / "labels" / "data" / "maps"

Rows = list[tuple[str, list[int]]]


def main() -> None:
    """Write the maps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    subsets = json.loads((folder / "imagenet_testbed" / "class_subsets.json").read_text())
    mined = json.loads((folder / "imagenet_d" / "category_to_imagenet_ids.json").read_text())
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, rows in maps(subsets, mined).items():
        lines = [f"{one}\t{' '.join(map(str, outputs))}" for one, outputs in rows]
        (TARGET / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(name, len(rows), sum(len(outputs) for _, outputs in rows))


def maps(subsets: dict[str, object], mined: dict[str, list[int]]) -> dict[str, Rows]:
    """Return the classes of each map, in order."""
    return {
        "imagenet-a": single(subsets["imagenet_a"]),
        "imagenet-r": single(subsets["imagenet_r"]),
        "one-eighth": single(subsets["one_eighth"]),
        "objectnet": list(subsets["objectnet_folder_to_imagenet"].items()),  # type: ignore[attr-defined]
        "objectnet-125": single(sorted(subsets["objectnet_order"])),  # type: ignore[call-overload]
        "imagenet-d": list(mined.items()),
        "vid-robust": grouped(subsets["vid_robust"], dict(enumerate(subsets["vid_robust_class_names"]))),  # type: ignore[arg-type]
        "ytbb-robust": grouped(
            subsets["ytbb_robust"],
            {int(key): name for key, name in subsets["ytbb_class_names"].items()},  # type: ignore[attr-defined]
        ),
    }


def single(numbers: object) -> Rows:
    """Return classes of ImageNet that count as themselves."""
    wnids = class_ids("imagenet-1k")
    return [(wnids[number], [number]) for number in numbers]  # type: ignore[attr-defined]


def grouped(members: object, names: dict[int, str]) -> Rows:
    """Return classes by number; a class that ImageNet does not have keeps its position, without members."""
    return [(names[number], list(members.get(str(number), ()))) for number in sorted(names)]  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
