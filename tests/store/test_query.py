"""Queries see only the views of a store; results round-trip through CSV and JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.evaluation import predictions
from beaufort.store import FileStore, StoreError, connect, query, to_bytes
from tests.commands import shows
from tests.torture.stores import cell, make_predictions


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    monkeypatch.chdir(tmp_path)
    Path("secret.txt").write_text("a secret")
    Path("secret.csv").write_text("a\nsecret\n")
    store = FileStore(tmp_path / "store")
    store.write(cell(), 0, make_predictions(0, 20))
    store.write_run({"suite": {}}, {})
    return store


FORBIDDEN = [
    "copy (select 1) to 'out.csv'",
    "copy cells to 'out.parquet'",
    "copy (select 1) to 'beaufort://out.csv'",
    "copy (select 1) to '.tmp/out.csv'",
    "export database 'out'",
    "import database 'out'",
    "select * from read_text('secret.txt')",
    "select * from read_blob('secret.txt')",
    "select * from read_csv('secret.csv')",
    "select * from 'secret.csv'",
    "select * from read_json('store/runs/*.json')",
    "select * from read_parquet('store/predictions/*/*/*.parquet')",
    "select * from glob('*')",
    "select * from read_csv('https://example.org/a.csv')",
    "attach 'out.db'",
    "attach 'out.db' as other (read_only)",
    "install httpfs",
    "load httpfs",
    "install 'secret.txt'",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "set lock_configuration = false",
    "reset lock_configuration",
    "set temp_directory = '.'",
    "set log_query_path = 'out.log'",
    "pragma profiling_output = 'out.json'",
    "create persistent secret s (type s3)",
    "select * from store",
    "call enable_logging(storage := 'file', storage_path := 'out')",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_outside_can_be_read_or_written(store: FileStore, sql: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="query failed"):
        query(store, sql)
    assert sorted(tmp_path.rglob("*")) == before


def test_variables_of_the_program_are_no_tables(store: FileStore) -> None:
    hidden = make_predictions(0, 3)
    assert len(hidden) == 3
    with pytest.raises(StoreError, match="hidden"):
        query(store, "select * from hidden")


def test_a_large_question_writes_nothing(store: FileStore, tmp_path: Path) -> None:
    query(store, "select i, count(*) from range(200000) t(i) group by i order by i desc limit 1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv", "secret.txt", "store"]


@pytest.mark.parametrize("name", ["1", "2024-01-01", "null", "1e5"])
def test_names_stay_text(tmp_path: Path, name: str) -> None:
    store = FileStore(tmp_path)
    store.write(cell(name), 0, make_predictions(0, 20))
    assert query(store, "select distinct model from predictions").to_pylist() == [{"model": name}]


def test_unsafe_lifts_it(store: FileStore) -> None:
    assert query(store, "select content from read_text('secret.txt')", unsafe=True).to_pylist() == [
        {"content": "a secret"}
    ]
    query(store, "copy (select images from cells) to 'out.csv'", unsafe=True)
    assert Path("out.csv").read_text() == "images\n20\n"


def test_queries_have_limited_access(store: FileStore) -> None:
    """Restricted queries can create tables in memory, use all of SQL and return many rows."""
    sql = "create table t as select * from cells; select count(*) as n from t join predictions using (model)"
    assert query(store, sql).to_pylist() == query(store, sql, unsafe=True).to_pylist() == [{"n": 20}]
    assert query(store, "select json_extract('{\"a\": 1}', 'a')::int as a").to_pylist() == [{"a": 1}]
    database = connect(store)
    assert database.sql("select count(*) from predictions").fetchall() == [(20,)]
    database.close()


@pytest.mark.parametrize("name", ["we[i]rd", "q?m", "a*b", "it's", "spa ce", "ünï", "a{b,c}"])
def test_names_of_stores_are_no_patterns(tmp_path: Path, name: str) -> None:
    store = FileStore(tmp_path / name)
    store.write(cell(), 0, make_predictions(0, 20))
    store.write_run({"suite": {}}, {"time": "1"})
    other = FileStore(tmp_path / name.replace("?", "1").replace("*", "-").replace("[i]", "i"))
    other.write(cell("second"), 0, make_predictions(0, 20))
    other.write_run({"suite": {"a": 1}}, {"time": "2"})
    mine = [{"model": "net", "n": 20}]
    if other.location != store.location:
        assert query(store, "select model, count(*) as n from predictions group by model").to_pylist() == mine
        assert [run["time"] for run in store.runs()] == ["1"]
        assert len(FileStore(tmp_path / "new").merge(store).copied) == 1
        assert len(FileStore(tmp_path / "new").runs()) == 1
    assert not store.verify()


def test_infinite_numbers_in_json(tmp_path: Path) -> None:
    """A label that the model does not have costs infinitely much; JSON has no word for that."""
    store = FileStore(tmp_path)
    store.write(cell(), 0, predictions(["a", "b"], [0, 99], np.zeros((2, 3))))
    assert query(store, "select nll from cells").to_pylist() == [{"nll": float("inf")}]
    output = query(store, "select nll, [nll] as many, accuracy from cells")
    text = to_bytes(output, ".json").decode()
    assert json.loads(text, parse_constant=pytest.fail) == [{"nll": None, "many": [None], "accuracy": 0.5}]
    assert "[null]" in to_bytes(query(store, "select [nll] as many from cells"), ".csv").decode()


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@sum(a)", "\t=1", "\r=1"])
def test_text_in_csv_is_no_formula(tmp_path: Path, name: str) -> None:
    store = FileStore(tmp_path)
    store.write(cell(name), 0, make_predictions(0, 20))
    text = to_bytes(query(store, "select model, -images as less from cells"), ".csv").decode()
    assert text.splitlines()[-1].endswith(",-20")
    assert f'"\'{name}",-20' in text.replace("\r\n", "\n")


def test_everything_but_questions_works_without_duckdb(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["duckdb"] = None
sys.path.insert(0, sys.argv[2])
import beaufort
from beaufort._core.errors import MissingExtraError
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.store import FileStore, query
from tests.torture.stores import make_predictions, cell
store = FileStore(sys.argv[1])
store.write(cell(), 0, make_predictions(0, 20))
store.write(cell(), 20, make_predictions(20, 40))
assert store.gather(cell()) and len(store.read(cell())) == 40 and not store.verify() and not store.collect()
try:
    query(store, "select 1")
except MissingExtraError as error:
    print(error)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store"), str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shows(done.stdout, "DuckDB", "pip install duckdb")


def test_an_export_has_a_fixed_order(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    for name in ("b", "c", "a"):
        for severity in (3, 1, 2):
            store.write(cell(name, severity=severity), 0, make_predictions(0, 5))
    done = CliRunner().invoke(
        app, ["results", "query", "--store", store.location, "--output", str(tmp_path / "cells.json")]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "cells.json").read_text())
    names = [(row["model"], row["condition"]) for row in rows]
    assert names == sorted(names)
    assert len(names) == 9
