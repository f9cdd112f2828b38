"""Write flips.csv and the tables of README.md from the published predictions.

    python results/quantization/tables.py
    python results/quantization/tables.py --times run1.json run2.json run3.json

With `--times`, times.csv is written first, from the output of `beaufort run --time --json`.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beaufort.metrics.stats import Estimate, holm
from beaufort.results import Deployment, Predictions, Results, compare_deployment, gate, open_results
from beaufort.results.linear import Linear

HERE = Path(__file__).parent
BUNDLE = HERE / "bundle"
NETWORKS = {
    "efficientnet_lite0_224": "EfficientNet-Lite0",
    "mobilenet_v1_1.0_224": "MobileNet v1",
    "resnet50_224": "ResNet-50",
}
VERSIONS = {"float16": "float16", "dynamic": "dynamic int8", "static": "static int8"}
NUMBERS = ("first", "second", "flips", "broken", "fixed", "changed")
TIMES = ("seconds", "cpu_seconds", "ratio", "cpu_ratio")


class Group(NamedTuple):
    """Predictions of a version that differ from float32 under one corruption, the mean over severities."""

    flips: Estimate
    more_flips: bool
    """Whether there are more than on clean images (Holm over corruptions, 5 %)."""
    gap: Estimate
    """Accuracy lost under the corruption minus that lost on clean images."""
    more_lost: bool
    """Whether the gap differs from zero (Holm over corruptions, 5 %)."""


def comparisons(results: Results) -> Iterator[tuple[str, str, Deployment]]:
    """Yield the comparison of each version with float32."""
    for network in NETWORKS:
        for version in VERSIONS:
            models = [f"{network}-float32", f"{network}-{version}"]
            yield network, version, compare_deployment(results, models)


def by_corruption(first: Predictions, second: Predictions) -> dict[str, Group]:
    """Return the differences under each corruption."""
    rows: dict[str, list[int]] = {}
    for row, condition in enumerate(first.conditions):
        rows.setdefault("" if condition.clean else condition.done.partition("@")[0], []).append(row)
    clean = rows.pop("")
    flips = first.top[..., 0] != second.top[..., 0]
    groups = [some + clean for some in rows.values()]
    gaps = [
        _against_clean(first.correct[some], "first") - _against_clean(second.correct[some], "second")
        for some in groups
    ]
    more = [_against_clean(flips[some]) for some in groups]
    p_gaps, p_more = (holm([form.p_value() for form in forms]) for forms in (gaps, more))
    return {
        name: Group(
            _mean(flips[some]).estimate(0.95),
            bool(p_more[i] < 0.05 and more[i].value > 0),
            gaps[i].estimate(0.95),
            bool(p_gaps[i] < 0.05),
        )
        for i, (name, some) in enumerate(rows.items())
    }


def _mean(flags: np.ndarray) -> Linear:
    """Return the mean over conditions and images."""
    return Linear.of(0.0, {"": (flags.T.astype(float), np.full(len(flags), 1 / len(flags)))})


def _against_clean(flags: np.ndarray, name: str = "") -> Linear:
    """Return the mean over all conditions but the last, minus that under the last."""
    weights = np.append(np.full(len(flags) - 1, 1 / (len(flags) - 1)), -1.0)
    return Linear.of(0.0, {name: (flags.T.astype(float), weights)})


def versions_table(results: Results, times: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """Yield a row for each version."""
    yield [
        *("network", "version", "agreement, mean over conditions", "flips, clean", "most flips"),
        *("accuracy lost, clean", "mean over corruptions", "`gate --max-flips 1`"),
        *("processor time", "memory"),
    ]
    for network, version, one in comparisons(results):
        clean, *rest = one.conditions
        worst = one.most_flips
        new, old = (open_results(str(BUNDLE), models=[name]) for name in (one.second, one.first))
        decision = next(
            check for check in gate(new, old, max_flips=0.01).checks if check.name == "flips"
        ).decision
        lost = [100 * (each.first.value - each.second.value) for each in (clean, *rest)]
        cost = times[f"{network}-{version}"]
        yield [
            NETWORKS[network],
            VERSIONS[version],
            f"{one.agreement:.1%}",
            f"{clean.flips:.1%}",
            f"{worst.flips:.1%}, `{worst.condition.done or 'clean'}`" if worst.flips.value else "none",
            f"{lost[0]:.1f}",
            f"{np.mean(lost[1:]):.1f}",
            str(decision),
            "{cpu_ratio:.2f} [{cpu_ratio_low:.2f}, {cpu_ratio_high:.2f}]".format(**cost),
            f"{cost['memory_ratio']:.2f}",
        ]


def corruptions_table(results: Results, what: str) -> Iterator[list[str]]:
    """Yield a row for each corruption: `flips` in percent, or `gap` in points."""
    found = {}
    for network, title in NETWORKS.items():
        for version in ("dynamic", "static"):
            names = [f"{network}-float32", f"{network}-{version}"]
            pair = [results.predictions(name) for name in names]
            found[f"{title}, {version}"] = by_corruption(*pair)
    yield ["corruption", *found]
    for corruption in next(iter(found.values())):
        cells = []
        for groups in found.values():
            one = groups[corruption]
            value, marked = (one.flips, one.more_flips) if what == "flips" else (one.gap, one.more_lost)
            text = f"{100 * value.value:z.1f} [{100 * value.low:z.1f}, {100 * value.high:z.1f}]"
            cells.append(f"**{text}**" if marked else text)
        yield [corruption, *cells]


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns of numbers are on the right."""
    head, *rest = rows
    marks = ["---:" if re.match(r"[*−-]?\**\d", cell) else "---" for cell in rest[0]]
    lines = [f"| {' | '.join(row)} |" for row in (head, *rest)]
    return "\n".join([lines[0], f"|{'|'.join(marks)}|", *lines[1:]])


def write_flips(results: Results) -> None:
    """Write flips.csv: a row for each version and condition, as fractions."""
    ends = [f"{name}{end}" for name in NUMBERS for end in ("", "_low", "_high")]
    with (HERE / "flips.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["network", "version", "condition", *ends])
        for network, version, found in comparisons(results):
            for one in found.conditions:
                parts = [getattr(one, name) for name in NUMBERS]
                numbers = [f"{each:.4f}" for part in parts for each in (part.value, part.low, part.high)]
                writer.writerow([network, version, one.condition.done or "clean", *numbers])


def write_times(files: Sequence[Path]) -> None:
    """Write times.csv: latency, processor time and memory of each version."""
    names = [f"{name}{end}" for name in TIMES for end in ("", "_low", "_high")]
    with (HERE / "times.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", *names, "memory", "memory_ratio", "rounds"])
        for path in files:
            for cost in json.loads(path.read_text(encoding="utf-8"))["costs"]:
                numbers = [cost[name][end] for name in TIMES for end in ("value", "low", "high")]
                memory = [cost["memory"], f"{cost['memory_ratio']:.4f}", cost["ratio"]["n"]]
                writer.writerow([cost["model"], *(f"{one:.6f}" for one in numbers), *memory])


def read_times() -> dict[str, dict[str, float]]:
    """Return the rows of times.csv by model."""
    with (HERE / "times.csv").open(newline="", encoding="utf-8") as file:
        return {row.pop("model"): {k: float(v) for k, v in row.items()} for row in csv.DictReader(file)}


def main() -> None:
    """Write all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=Path, nargs="+", help="Output of `beaufort run --time --json`.")
    if files := parser.parse_args().times:
        write_times(files)
    results = open_results(str(BUNDLE))
    write_flips(results)
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    tables = {
        "versions": versions_table(results, read_times()),
        "flips": corruptions_table(results, "flips"),
        "gap": corruptions_table(results, "gap"),
    }
    for name, rows in tables.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        text = before + start + markdown(rows) + end + rest.partition(end)[2]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
