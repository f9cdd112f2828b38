"""Tables in the documentation that are made by code are what the code makes."""

from __future__ import annotations

import pytest
from doc_tables import TABLES, placed

from beaufort._core.catalog import fetch
from beaufort._core.errors import AssetError


@pytest.mark.parametrize("table", TABLES)
def test_tables(table: str) -> None:
    if table == "severities":
        try:
            fetch("frost/frost1.png")
        except AssetError as error:
            pytest.skip(str(error))
    assert placed(table)[2] == "\n".join(TABLES[table]()), "run python tools/doc_tables.py"
