"""A small review with three people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beaufort.mining.review import ReviewRules, create_review, open_review
from tests.mining.review.people import People, Visitor, make_images


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    path = tmp_path / "chairs.review"
    admin = create_review(path, make_images(tmp_path / "images"), rules=ReviewRules(votes=3))
    found = People(open_review(path), admin)
    found.add("ann", "bob", "cem")
    yield found
    found.review.close()


@pytest.fixture
def visitor(people: People) -> Iterator[Visitor]:
    pytest.importorskip("fastapi", reason="FastAPI is not installed; the extra review has it")
    from beaufort.mining.review.app import make_app

    testclient = pytest.importorskip("starlette.testclient")
    with testclient.TestClient(make_app(people.review), base_url="http://127.0.0.1") as client:
        yield Visitor(client)
