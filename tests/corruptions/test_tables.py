"""The generated tables of the documentation are up to date."""

from __future__ import annotations

import pytest
from doc_tables import TABLES, generated, placed

from beaufort._core.catalog import fetch
from beaufort._core.errors import AssetError


@pytest.mark.parametrize("table", TABLES)
def test_tables(table: str) -> None:
    if table == "severities":
        try:
            fetch("frost/frost1.png")
        except AssetError as error:
            pytest.skip(str(error))
    assert placed(table)[2] == generated(table), f"run python tools/doc_tables.py {table}"
