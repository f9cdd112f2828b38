"""Results of a few models of a large store equal those of all, reading only their folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beaufort.results import Results, join_results, open_parts, open_results, open_targets, score
from beaufort.store import FaultyFileError, FileStore
from beaufort.suites import Suite

Fill = Callable[..., FileStore]

SMALL = Suite(
    name="small",
    version=1,
    dataset="digits",
    scale="imagenet",
    corruptions=("fog", "contrast"),
    severities=(1, 3),
    baseline=None,
    metrics=("mean_accuracy",),
)
LARGE = Suite(
    name="large",
    version=1,
    dataset="digits",
    scale="imagenet",
    corruptions=("fog", "contrast", "frost"),
    severities=(1, 2, 3),
    baseline=None,
    metrics=("mean_accuracy",),
)


@pytest.fixture
def store(fill: Fill) -> FileStore:
    """Three models on a large suite, and two others on a small one that was run last."""
    fill("s", {"one": 0.9, "two": 0.7, "three": 0.5}, suite=LARGE, images=40, data="other")
    return fill("s", {"net": 0.8, "rival": 0.6}, suite=SMALL, images=40)


@pytest.fixture
def never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(_: FileStore) -> None:
        raise AssertionError("the whole store was listed")

    monkeypatch.setattr(FileStore, "listing", listing)


def values(results: Results, **options: object) -> dict[str, object]:
    return {one.model: one.metrics for one in score(results, resamples=50, **options).models}  # type: ignore[arg-type]


@pytest.mark.usefixtures("never_whole")
def test_named_models_are_read_from_their_folders(store: FileStore) -> None:
    results = open_results(store, suite=SMALL, models=["net"])
    assert results.models == ("net",)
    assert values(results)["net"]
    assert "rival" in results.others
    assert "one" not in results.others
    assert len(results.predictions("rival")) == 40
    opened = open_targets([("net", "model"), ("rival", "reference")], store.location, suite="small")
    joined = join_results([parts[0] for parts in opened])
    assert joined.models == ("net", "rival")


@pytest.mark.usefixtures("never_whole")
def test_all_models_are_read_from_the_folders_of_the_conditions(store: FileStore) -> None:
    assert open_results(store, suite="small").models == ("net", "rival")
    (parts,) = open_parts(store, suite="small", candidates=["rival"])
    assert "rival" in parts.models


def test_results_are_those_of_the_whole_store(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    some = open_results(store, suite="small", models=["net"])
    monkeypatch.setattr(FileStore, "listing_of", lambda *_: {})  # nothing is found in the folders
    whole = open_results(store, suite="small", models=["net"])
    assert values(some) == values(whole)
    assert some.setting == whole.setting
    assert some.origins == whole.origins
    assert dict(some.others) == dict(whole.others)
    assert some.possible_baselines == whole.possible_baselines == ("net", "rival")


def test_models_with_the_same_name_are_distinguished(fill: Fill) -> None:
    fill("s", {"a_b": 0.9}, suite=SMALL, images=30)
    fill("s", {"a/b": 0.6, "net": 0.8}, suite=SMALL, images=30)
    store = fill("s", {"net": 0.5}, suite=SMALL, images=30, weights="new")
    assert open_results(store, models=["a/b"]).models == ("a/b",)
    assert open_results(store, models=["a_b"]).models == ("a_b",)
    names = [name for name in open_results(store).models if name.startswith("net#")]
    assert len(names) == 2
    for name in names:
        assert open_results(store, models=[name]).models == (name,)
    others = open_results(store, models=["a_b"]).others
    assert names[0] in others
    assert "net" not in others


def test_moved_files_are_found(store: FileStore) -> None:
    whole = values(open_results(store, suite="small"))
    root = Path(store.location) / "predictions"
    moved = sorted((root / "model=net").rglob("*.parquet"))[0]
    moved.rename(root / moved.name)
    assert values(open_results(store, suite="small", models=["net"]))["net"] == whole["net"]
    (root / moved.name).rename(root / "model=one" / moved.name)
    assert values(open_results(store, suite="small", models=["net"]))["net"] == whole["net"]
    (root / "model=rival").rename(root / "model=else")
    assert values(open_results(store, suite="small", models=["rival"]))["rival"] == whole["rival"]


def test_only_damage_that_matters_is_an_error(store: FileStore) -> None:
    root = Path(store.location) / "predictions"
    damaged = sorted((root / "model=one").rglob("*.parquet"))[0]
    damaged.write_bytes(b"damaged")
    assert open_results(store, suite="small", models=["net"]).models == ("net",)
    needed = sorted((root / "model=net").rglob("*.parquet"))[0]
    needed.write_bytes(b"damaged")
    with pytest.raises(FaultyFileError):
        open_results(store, suite="small", models=["net"])
