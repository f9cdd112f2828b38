"""The tables of this study, from `predictions.parquet`; a store replaces its content first.

python tables.py [STORE]
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beaufort.metrics import collapse_position, stream_mean
from beaufort.store import FileStore
from beaufort.suites.streams import Stream, split_id

FOLDER = Path(__file__).parent
PREDICTIONS = FOLDER / "predictions.parquet"
SOURCE = "ResNet-20"
SEEDS = 5
LABELS = {
    "": "no adaptation",
    "+bn": "BN",
    "+bn-prior16": "BN, prior of 16 images",
    "+tent": "TENT",
    "+tent-lr0.01": "TENT, learning rate 0.01",
    "+eata-lr0.005-d_margin0.4-fisher_alpha1-fisher_size200": "EATA",
    "+sar-lr0.005": "SAR",
}
"""What the tables call the models, by the ends of their names."""


def pack(store: FileStore) -> None:
    """Write the position, condition and image of each prediction, and whether it is wrong."""
    tables: dict[tuple[str, str], dict[int, pa.Table]] = {}
    for cell in store.cells().values():
        rows = store.read(cell, columns=["id", "label", "top"]).to_pydict()
        ids = [split_id(text) for text in rows["id"]]
        stream = Stream.parse(cell.condition["level"])
        count = len(ids)
        columns = {
            "stream": pa.array([str(replace(stream, seed=0))] * count).dictionary_encode(),
            "model": pa.array([cell.model["name"]] * count).dictionary_encode(),
            "seed": pa.array([stream.seed] * count, pa.int8()),
            "position": pa.array([one[0] for one in ids], pa.int32()),
            "condition": pa.array([one[1] for one in ids]).dictionary_encode(),
            "image": pa.array([one[2] for one in ids]).dictionary_encode(),
            "wrong": pa.array(
                [top[0] != label for top, label in zip(rows["top"], rows["label"], strict=True)]
            ),
        }
        key = columns["stream"].dictionary[0].as_py(), str(cell.model["name"])
        tables.setdefault(key, {})[stream.seed] = pa.table(columns)
    longest = {stream: max(map(len, tables[stream, SOURCE].values())) for stream, _ in tables}
    whole = [
        seeds[number]
        for (stream, _), seeds in sorted(tables.items())
        if len(seeds) == SEEDS and all(len(one) == longest[stream] for one in seeds.values())
        for number in sorted(seeds)
    ]
    pq.write_table(pa.concat_tables(whole).unify_dictionaries(), PREDICTIONS, compression="zstd")


def scores() -> list[dict[str, Any]]:
    """Return a row for each stream and model."""
    frame = pq.read_table(PREDICTIONS).to_pandas()
    found = []
    for text, stream in frame.groupby("stream", observed=True):
        batch = Stream.parse(str(text)).batch
        arrays = {name: _arrays(rows) for name, rows in stream.groupby("model", observed=True)}
        for name, (wrong, images, conditions) in arrays.items():
            better = arrays[SOURCE][0] - wrong
            error = stream_mean(wrong, images, conditions, batch, low=0)
            gain = stream_mean(better, images, conditions, batch)
            falls = [collapse_position(-one, batch) for one in better]
            starts = sorted(one for one in falls if one is not None)
            found.append(
                {
                    "stream": text,
                    "images": wrong.shape[1],
                    "model": name,
                    "error": error,
                    "gain": gain,
                    "collapsed": len(starts),
                    "seeds": len(falls),
                    "from": starts[len(starts) // 2] if starts else "",
                }
            )
    return found


def _arrays(rows: Any) -> tuple[Any, Any, Any]:
    """Return wrong predictions, images and conditions, `(seeds, positions)`."""
    seeds = rows["seed"].nunique()
    wrong = rows["wrong"].to_numpy().astype(float)
    coded = (np.unique(rows[key].astype(str), return_inverse=True)[1] for key in ("image", "condition"))
    images, conditions = (one.reshape(seeds, -1) for one in coded)
    return wrong.reshape(seeds, -1), images, conditions


def main() -> None:
    """Write `scores.csv` and the tables of the page."""
    if len(sys.argv) > 1:
        pack(FileStore(sys.argv[1]))
    rows = scores()
    with (FOLDER / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        ends = [f"{kind}{end}" for kind in ("error", "gain") for end in ("", "_low", "_high")]
        writer.writerow(["stream", "images", "model", *ends, "collapsed", "seeds", "from"])
        for row in rows:
            numbers = [f"{v:.4f}" for k in ("error", "gain") for v in (row[k].value, row[k].low, row[k].high)]
            numbers[3:] = ["", "", ""] if row["model"] == SOURCE else numbers[3:]
            counts = [row[key] for key in ("collapsed", "seeds", "from")]
            writer.writerow([row["stream"], row["images"], row["model"], *numbers, *counts])
    page = FOLDER / "README.md"
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- tables -->\n")
    after = rest.partition("<!-- end of tables -->\n")[2]
    tables = "\n".join(table_lines(rows)).lstrip("\n")
    content = f"{before}<!-- tables -->\n{tables}\n<!-- end of tables -->\n{after}"
    page.write_text(content, encoding="utf-8")


def table_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table for each stream, the best model first."""
    for text in dict.fromkeys(row["stream"] for row in rows):
        mine = sorted((row for row in rows if row["stream"] == text), key=lambda row: row["error"].value)
        title = str(text).rpartition(",seed=")[0]
        yield f"\n`{title}`, {mine[0]['images']:,} images:\n"
        yield "| model | error | gain | collapsed |\n|---|---:|---:|---|"
        for row in mine:
            gain = "" if row["model"] == SOURCE else f"{row['gain']:.1%}"
            fall = f"{row['collapsed']} of {row['seeds']}"
            at = f", from image {row['from']}" if row["collapsed"] else ""
            name = LABELS[row["model"].removeprefix(SOURCE)]
            yield f"| {name} | {row['error']:.1%} | {gain} | {fall + at if gain else ''} |"


if __name__ == "__main__":
    main()
