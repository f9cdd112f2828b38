"""The papers' tables follow from one another through our functions.

A printed number is an interval: 97 stands for anything from 96.5 to 97.5, 43.5 for 43.45 to 43.55. Table 1 of
ImageNet-C implies an interval for a network's average error under a corruption, and so does Table 2 with the
clean errors. The rule: for every intact cell the two must meet. A network's errors by severity are not
printed. Our formulas only need their average, so they are tested whatever the errors are; for wrong ones that
need more, the errors are taken to be AlexNet's, shifted on the logit scale.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.errors import UnknownNameError
from beaufort.metrics import (
    TABLE_NAMES,
    corruption_error,
    get_baseline,
    mean_accuracy,
    mean_corruption_error,
    published_table,
    relative_corruption_error,
    relative_mean_corruption_error,
)

CE = Callable[[Any, Any], Any]
RelativeCE = Callable[[Any, Any, Any, Any], Any]

TABLE1, TABLE2 = published_table("imagenet-c-table1"), published_table("imagenet-c-table2")
ALEXNET = get_baseline("alexnet")
SEVERITIES = (1, 2, 3, 4, 5)
NETWORKS = [name for name in TABLE1 if name != "AlexNet"]
INTACT = [
    (network, corruption)
    for network, corruption in product(NETWORKS, ALEXNET.benchmark)
    if corruption in TABLE1[network]
]


def rounded(value: float, decimals: int) -> tuple[float, float]:
    """Return the range of a fraction that is printed in percent with some decimals."""
    half = 0.5 * 10.0 ** -(decimals + 2)
    return value - half, value + half


def shifted(shift: Any) -> Callable[[Any], NDArray[np.float64]]:
    def errors(baseline: Any) -> NDArray[np.float64]:
        odds = np.asarray(baseline) / (1 - np.asarray(baseline))
        return np.asarray(1 / (1 + np.exp(-np.asarray(shift)[:, None]) / odds), np.float64)

    return errors


def solve(formula: Callable[[NDArray[np.float64]], Any], baseline: Any, wanted: Any) -> NDArray[np.float64]:
    """Average errors at which a formula, which grows with the errors, has the wanted values."""
    low, high = np.full(len(wanted), -12.0), np.full(len(wanted), 12.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = formula(shifted(middle)(baseline)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    average: NDArray[np.float64] = shifted(low)(baseline).mean(axis=-1)
    return average


def from_table1(network: str, corruption: str, ce: CE) -> tuple[float, float]:
    baseline = ALEXNET.errors[corruption]
    wanted = np.array(rounded(TABLE1[network][corruption], 0))
    found = solve(lambda errors: ce(errors, baseline), baseline, wanted)
    return float(found.min()), float(found.max())


def from_table2(network: str, corruption: str, relative_ce: RelativeCE) -> tuple[float, float]:
    baseline = ALEXNET.errors[corruption]
    assert ALEXNET.clean is not None
    ends = (
        rounded(TABLE2[network][corruption], 0),
        rounded(TABLE2[network]["clean_error"], 1),
        rounded(ALEXNET.clean, 1),
    )
    wanted, clean, base_clean = np.array(list(product(*ends))).T
    found = solve(lambda errors: relative_ce(errors, clean, baseline, base_clean), baseline, wanted)
    return float(found.min()), float(found.max())


def misses(ce: CE, relative_ce: RelativeCE) -> list[tuple[str, str]]:
    """The intact cells at which the two tables contradict each other."""
    found = []
    for network, corruption in INTACT:
        low1, high1 = from_table1(network, corruption, ce)
        low2, high2 = from_table2(network, corruption, relative_ce)
        if high1 < low2 or high2 < low1:
            found.append((network, corruption))
    return found


def test_table1_follows_from_table2() -> None:
    assert len(INTACT) == 81
    assert misses(corruption_error, relative_corruption_error) == []


def subtract_once(errors: Any, clean: Any, baseline: Any, base_clean: Any) -> Any:
    return (np.sum(errors, axis=-1) - clean) / (np.sum(baseline, axis=-1) - base_clean)


def subtract_nothing(errors: Any, clean: Any, baseline: Any, base_clean: Any) -> Any:
    return np.sum(errors, axis=-1) / np.sum(baseline, axis=-1)


def divide_each(errors: Any, baseline: Any) -> Any:
    return np.mean(np.asarray(errors) / np.asarray(baseline), axis=-1)


def divide_each_difference(errors: Any, clean: Any, baseline: Any, base_clean: Any) -> Any:
    added = np.asarray(errors) - np.asarray(clean)[:, None]
    return np.mean(added / (np.asarray(baseline) - np.asarray(base_clean)[:, None]), axis=-1)


@pytest.mark.parametrize(
    ("ce", "relative_ce", "least"),
    [
        (corruption_error, subtract_once, 80),
        (corruption_error, subtract_nothing, 75),
        (divide_each, relative_corruption_error, 30),
        (corruption_error, divide_each_difference, 50),
    ],
)
def test_a_wrong_formula_does_not(ce: CE, relative_ce: RelativeCE, least: int) -> None:
    assert len(misses(ce, relative_ce)) >= least


@pytest.mark.parametrize("network", NETWORKS)
def test_the_means_follow_too(network: str) -> None:
    assert ALEXNET.clean is not None
    intervals = {}
    for corruption in ALEXNET.benchmark:
        low, high = from_table2(network, corruption, relative_corruption_error)
        if corruption in TABLE1[network]:
            low1, high1 = from_table1(network, corruption, corruption_error)
            low, high = max(low, low1), min(high, high1)
        intervals[corruption] = low, high
    baseline = ALEXNET.select(ALEXNET.benchmark, SEVERITIES)
    ends = [
        mean_corruption_error({name: (interval[end],) * 5 for name, interval in intervals.items()}, baseline)
        for end in (0, 1)
    ]
    low, high = rounded(TABLE1[network]["mce"], 1)
    assert ends[0] <= high
    assert low <= ends[1]
    row = [rounded(TABLE2[network][name], 0) for name in ALEXNET.benchmark]
    low, high = rounded(TABLE2[network]["relative_mce"], 1)
    assert np.mean(row, axis=0)[0] <= high
    assert low <= np.mean(row, axis=0)[1]


def test_damaged_cells_are_missing(shared: Path) -> None:
    with (shared / "reference/tables/imagenet_c_tables_damaged_cells.csv").open() as file:
        lost = [row for row in csv.DictReader(file) if row["status"].startswith("unknown")]
    assert {(row["network"], row["column"]) for row in lost} == TABLE1.damaged
    assert len(TABLE1.damaged) == 9
    for row in lost:
        assert row["column"] not in TABLE1[row["network"]]
        # The reference gives the interval of CE that Table 2 implies, to two decimals.
        ends = from_table2(row["network"], row["column"], relative_corruption_error)
        average = float(np.mean(ALEXNET.errors[row["column"]]))
        assert ends[0] / average == pytest.approx(float(row["implied_low"]) / 100, abs=1e-3)
        assert ends[1] / average == pytest.approx(float(row["implied_high"]) / 100, abs=1e-3)


def errors_of(
    row: Mapping[str, float], *, without: tuple[str, ...] = ("clean", "mean_accuracy")
) -> dict[str, Any]:
    return {name: (1 - value,) for name, value in row.items() if name not in without}


FIGURE2, FIGURE3, FIGURE4 = (published_table(f"mnist-c-figure{number}") for number in (2, 3, 4))


@pytest.mark.parametrize("network", FIGURE3)
def test_figure2_follows_from_figure3_as_printed(network: str) -> None:
    row, printed = FIGURE3[network], FIGURE2[network]
    conv1 = get_baseline("conv1")
    assert conv1.clean is not None
    baseline = conv1.select(conv1.benchmark, "published")
    relative = relative_mean_corruption_error(errors_of(row), 1 - row["clean"], baseline, conv1.clean)
    assert len(row) == 16
    assert round(100 * mean_accuracy(row), 2) == round(100 * printed["mean_accuracy"], 2)
    assert round(100 * relative, 2) == round(100 * printed["relative_mce"], 2)
    without_clean = {name: value for name, value in row.items() if name != "clean"}
    assert round(100 * mean_accuracy(without_clean), 2) != round(100 * printed["mean_accuracy"], 2)
    if network != "Conv1":
        plain = mean_corruption_error(errors_of(row), baseline)
        assert round(100 * plain, 2) != round(100 * printed["relative_mce"], 2)


@pytest.mark.parametrize("training", FIGURE4)
def test_figure4_means_have_16_rows(training: str) -> None:
    row = dict(FIGURE4[training])
    printed = row.pop("mean_accuracy")
    assert len(row) == 16
    assert round(100 * mean_accuracy(row), 2) == round(100 * printed, 2)


def test_conv1_is_the_same_everywhere() -> None:
    conv1 = get_baseline("conv1")
    row = FIGURE3["Conv1"]
    assert {name: 1 - value[0] for name, value in conv1.errors.items()} == pytest.approx(
        {name: value for name, value in row.items() if name != "clean"}
    )
    assert conv1.clean == pytest.approx(1 - row["clean"])
    assert dict(row) == {name: value for name, value in FIGURE4["clean"].items() if name != "mean_accuracy"}


FILES = {
    "imagenet-c-table1": "imagenet_c_table1",
    "imagenet-c-table2": "imagenet_c_table2_relative",
    "mnist-c-figure2": "mnist_c_fig2",
    "mnist-c-figure3": "mnist_c_fig3",
    "mnist-c-figure4": "mnist_c_fig4",
}


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_as_in_the_reference(name: str, shared: Path) -> None:
    with (shared / f"reference/tables/{FILES[name]}.csv").open() as file:
        rows = list(csv.reader(file))
    if name.startswith("mnist"):
        rows = [list(column) for column in zip(*rows, strict=True)]
    ours = {"none": "clean", "mean_acc": "mean_accuracy"}
    columns = [ours.get(text, text).removesuffix("_percent") for text in rows[0][1:]]
    table = published_table(name)
    assert list(table) == [row[0] for row in rows[1:]]
    for network, *cells in rows[1:]:
        theirs = {column: float(text) / 100 for column, text in zip(columns, cells, strict=True) if text}
        assert dict(table[network]) == pytest.approx(theirs, abs=1e-12)
    assert table.title
    assert "arXiv" in table.source
    assert set(table.decimals) == set(columns)


def test_unknown_name_error_suggests_near_names() -> None:
    with pytest.raises(UnknownNameError, match="mean 'imagenet-c-table"):
        published_table("imagenet-table1")
    with pytest.raises(UnknownNameError, match="did you mean 'ResNet-50'"):
        TABLE1["ResNet50"]
    assert TABLE1.get("ResNet50") is None
