"""Pack the figures of the testbed into the Parquet files that come with `beaufort.testbed`.

    python tools/pack_testbed.py DIRECTORY

DIRECTORY contains `imagenet_testbed/` (grids, model types, base-model pairs, settings), `timm_results/` (a
CSV file per test set) and `robustbench/` (leaderboards on corruptions). Accuracies are stored as integers in
hundred-thousandths of a percent, finer than one image of any of these sets, so that equal numbers give equal
bytes. The metadata of each file name its source, date and license.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beaufort.testbed.timm_tables import read_timm

OUTPUT = Path(__file__).resolve().parent.parent / "src" / "beaufort" / "testbed" / "data"
UNIT = 100_000
"""Steps per percent."""

TESTBED = {
    "source": "github.com/modestyachts/imagenet-testbed (Taori et al., NeurIPS 2020)",
    "license": "MIT, Copyright (c) 2020 Rohan Taori, Achal Dave, Vaishaal Shankar, Nicholas Carlini, "
    "Benjamin Recht, Ludwig Schmidt",
}
TIMM = {
    "source": "github.com/huggingface/pytorch-image-models, folder results, commit aa4b5850c154",
    "date": "as of that commit",
    "license": "Apache-2.0",
    "caveat": "each entry is a model at one input size, with its own resize and crop",
}
ROBUSTBENCH = {
    "source": "github.com/RobustBench/robustbench, model_info, commit 78fcc9e48a07",
    "date": "as of that commit",
    "license": "MIT, Copyright (c) 2020 Francesco Croce, Maksym Andriushchenko, Vikash Sehwag",
    "caveat": "ImageNet entries were evaluated on 5,000 images of ImageNet-C, not 50,000, "
    "and with each model's own crop",
}

TIMM_SETS = {  # setting: (images, setting of its standard accuracy, class subset)
    "val": (50_000, "", ""),
    "imagenet-real": (46_837, "val", ""),
    "imagenetv2-matched-frequency": (10_000, "val", ""),
    "imagenet-sketch": (50_889, "val", ""),
    "val-on-imagenet-a-classes": (10_000, "", "imagenet_a"),
    "imagenet-a": (7_500, "val-on-imagenet-a-classes", "imagenet_a"),
    "val-on-imagenet-r-classes": (10_000, "", "imagenet_r"),
    "imagenet-r": (30_000, "val-on-imagenet-r-classes", "imagenet_r"),
}
ROBUSTBENCH_IMAGES = {"cifar10": 10_000, "cifar100": 10_000, "imagenet": 5_000}
ROBUSTBENCH_SETS = {
    "clean": "clean_acc",
    "corruptions": "corruptions_acc",
    "corruptions-3d": "corruptions_acc_3d",
}


def main() -> None:
    """Pack, and say how large the files are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    pack(options.folder, options.output)
    files = sorted(options.output.glob("*.parquet"))
    for path in files:
        print(f"{path.stat().st_size:9,} {path.name}")
    print(f"{sum(path.stat().st_size for path in files):9,} bytes together")


def pack(folder: Path, output: Path) -> None:
    """Write all files from the directory of sources."""
    testbed = folder / "imagenet_testbed"
    for name, file, date in (
        ("grid-paper", "grid_paper_204x213.csv", "31 August 2020, commit 28477dc"),
        ("grid-latest", "grid_latest_338x213.csv", "September 2021, commit f4083a2"),
    ):
        write(output / name, grid(rows(testbed / file)), {**TESTBED, "date": date})
    facts = {**TESTBED, "date": "September 2021, commit f4083a2"}
    write(output / "models", texts(rows(testbed / "model_types.csv")), facts)
    caveat = (
        "base models are named by the paper for the 13 ResNet-50s trained against lp attacks, else inferred"
    )
    write(output / "pairs", texts(rows(testbed / "base_model_pairs.csv")), {**facts, "caveat": caveat})
    write(output / "settings", texts(settings(testbed / "eval_settings.csv")), facts)
    write(output / "grid-timm", timm(folder / "timm_results"), TIMM)
    write(output / "grid-robustbench", robustbench(folder / "robustbench" / "corruptions.csv"), ROBUSTBENCH)


def grid(table: Sequence[Mapping[str, str]]) -> dict[str, pa.Array[Any]]:
    """Return one row per model and one column per setting."""
    names = [name for name in table[0] if name != "model"]
    columns = {name: accuracies(row[name] for row in table) for name in names}
    return {"model": pa.array([row["model"] for row in table]), **columns}


def settings(path: Path) -> list[dict[str, str]]:
    """Return the settings of all grids in one table."""
    made = []
    for row in rows(path):
        row = {"grid": "testbed", **row}
        row["filter"] = "resnet50" if row["setting"] == "imagenet-a" else ""
        made.append(row)
    blank = dict.fromkeys(made[0], "")
    for name, (images, clean, subset) in TIMM_SETS.items():
        kind, group = ("natural", "dataset_shift") if clean else ("standard", "s1")
        made.append(
            {**blank, "grid": "timm", "setting": name, "kind": kind, "group": group, "n_images": str(images)}
            | {"s1_setting": clean, "class_subset": subset}
        )
        if name == "imagenet-a":
            made[-1] |= {"group": "adversarially_filtered", "filter": "resnet50.tv_in1k@224"}
    for dataset, images in ROBUSTBENCH_IMAGES.items():
        for name in ROBUSTBENCH_SETS:
            if name != "corruptions-3d" or dataset == "imagenet":
                kind, group, clean = (
                    ("standard", "s1", "") if name == "clean" else ("synthetic", "corruption", "clean")
                )
                row = {"kind": kind, "group": group, "n_images": str(images), "s1_setting": clean}
                made.append({**blank, "grid": f"robustbench-{dataset}", "setting": name, **row})
    return made


def timm(folder: Path) -> dict[str, pa.Array[Any]]:
    """Return one row per model and input size."""
    models, columns = read_timm(folder)
    return {"model": pa.array(models), **{name: accuracies(map(str, tops)) for name, tops in columns.items()}}


def robustbench(path: Path) -> dict[str, pa.Array[Any]]:
    """Return one row per entry of a leaderboard."""
    table = rows(path)
    texts_of = {name: [row[name] for row in table] for name in ("dataset", "model", "architecture", "venue")}
    return {
        **{name: pa.array(values) for name, values in texts_of.items()},
        "more_data": pa.array([row["additional_data"] == "True" for row in table]),
        **{name: accuracies(row[key] for row in table) for name, key in ROBUSTBENCH_SETS.items()},
        "mce": accuracies(row["corruptions_mce"] for row in table),
    }


def accuracies(values: Iterable[str]) -> pa.Array[Any]:
    """Return percentages as integer steps, null if missing."""
    steps = [round(float(text) * UNIT) if text not in {"", "nan"} else None for text in values]
    return pa.array(steps, pa.int32())


def texts(table: Sequence[Mapping[str, str]]) -> dict[str, pa.Array[Any]]:
    """Return a table of strings."""
    return {name: pa.array([row[name] for row in table]) for name in table[0]}


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: Mapping[str, pa.Array[Any]], facts: Mapping[str, str]) -> None:
    """Write a Parquet file with its metadata."""
    table = pa.table(dict(columns))
    numbers = [name for name in table.column_names if pa.types.is_int32(table.schema.field(name).type)]
    others = [name for name in table.column_names if name not in numbers]
    with pq.ParquetWriter(
        path.with_suffix(".parquet"),
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=others,  # type: ignore[arg-type]  # the stubs know no lists
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**facts, "made by": "tools/pack_testbed.py"})


if __name__ == "__main__":
    main()
