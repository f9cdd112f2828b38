"""A model's error on the common corruptions is listed with its error on C-bar."""

from __future__ import annotations

from statistics import fmean
from types import SimpleNamespace

import pytest

from beaufort.metrics.stats import Estimate
from beaufort.report import to_markdown
from beaufort.report.summary_tables import optional_tables
from beaufort.suites import Suite

COMMON, BAR = ("fog", "snow"), ("sparkles", "perlin_noise", "plasma_noise")


def suite(*names: str) -> Suite:
    return Suite(
        name="mine", version=1, dataset="made", scale="imagenet", corruptions=names, severities=(1, 3)
    )


def test_both_means_and_their_difference(make: SimpleNamespace) -> None:
    scores = make.scored(make.results_of(["a", "b"], suite(*COMMON, *BAR), 40))
    table = optional_tables(scores)["C-bar"]
    assert table.header == ("Model", "Common (2)", "C-bar (3)", "C-bar minus common")
    for row in table.rows:
        forms = next(one.error_forms for one in scores.models if one.model == row[0])
        common, bar = (fmean(forms[name].value for name in names) for names in (COMMON, BAR))
        found = [cell for cell in row[1:] if isinstance(cell, Estimate)]
        assert [cell.value for cell in found] == pytest.approx([common, bar, bar - common])
        assert all(cell.low <= cell.value <= cell.high for cell in found)
    assert "of C-bar" in to_markdown(scores)


@pytest.mark.parametrize("names", [COMMON, BAR])
def test_one_of_them_alone_has_no_table(make: SimpleNamespace, names: tuple[str, ...]) -> None:
    assert optional_tables(make.scored(make.results_of(["a"], suite(*names), 20))) == {}
