"""The file store keeps the promises of a store, on a disk and in memory; a store that does not is noticed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from beaufort.store import FileStore
from beaufort.testing import STORE_CONTRACTS, ContractError, check_store


@pytest.mark.parametrize("place", ["disk", "memory"])
@pytest.mark.parametrize("contract", STORE_CONTRACTS)
def test_file_store(contract: str, place: str, tmp_path: Path) -> None:
    location = tmp_path / "store" if place == "disk" else f"memory://{tmp_path.name}-{contract}"
    STORE_CONTRACTS[contract](FileStore(location))


def test_all_at_once(tmp_path: Path) -> None:
    numbers = itertools.count()
    check_store(lambda: FileStore(tmp_path / str(next(numbers))))


class Forgets(FileStore):
    """Loses the first row of what it reads."""

    def read(self, *args: Any, **options: Any) -> Any:
        return super().read(*args, **options).slice(1)


class Doubles(FileStore):
    """Does not look whether a row is there twice."""

    def missing(self, *args: Any, **options: Any) -> list[tuple[int, int]]:
        return [(0, 1), *super().missing(*args, **options)]


@pytest.mark.parametrize("kind", [Forgets, Doubles])
def test_a_store_that_breaks_a_promise_is_noticed(kind: type[FileStore], tmp_path: Path) -> None:
    numbers = itertools.count()
    with pytest.raises(ContractError, match="violates the contract"):
        check_store(lambda: kind(tmp_path / str(next(numbers))))
