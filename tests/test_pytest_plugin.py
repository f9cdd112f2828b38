from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from beaufort import as_model, evaluate
from beaufort.suites import suite_from_corruptions

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two models: one is right about every image, the other about a third."""
    path = tmp_path_factory.mktemp("gate") / "store"
    colors = np.random.default_rng(0).integers(0, 256, (60, 1, 1, 3))
    data = np.tile(colors, (1, 32, 32, 1)).astype(np.uint8), colors.argmax(-1).ravel()
    good = as_model(lambda images: images.mean(axis=(1, 2), dtype=np.float32), name="good", version="a")
    bad = as_model(lambda images: np.eye(3, dtype=np.float32)[[0] * len(images)], name="bad", version="b")
    evaluate([good, bad], suite_from_corruptions(["brightness"], [1]), data, path)
    return path


def outcomes(
    pytester: pytest.Pytester, call: str, ini: str = "", *, process: bool = False
) -> tuple[dict[str, int], str]:
    pytester.makeini(f"[pytest]\n{ini}")
    pytester.makepyfile(
        dedent(f"""
        def test_robust(beaufort_gate):
            verdict = beaufort_gate({call})
            assert verdict.images == 60
        """)
    )
    run = pytester.runpytest_subprocess if process else pytester.runpytest_inprocess
    found = run("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis")
    return found.parseoutcomes(), found.stdout.str()


def test_passed(pytester: pytest.Pytester, store: Path) -> None:
    found, _ = outcomes(pytester, f"'good', 'bad', store={str(store)!r}", process=True)
    assert found == {"passed": 1}


def test_failed(pytester: pytest.Pytester, store: Path) -> None:
    found, text = outcomes(pytester, f"{str(store) + '::bad'!r}, 'good', store={str(store)!r}")
    assert found == {"failed": 1}
    assert "gate: failed" in text
    assert "60 images" in text


@pytest.mark.parametrize(
    ("ini", "outcome"),
    [
        ("", "failed"),
        ("beaufort_undecided = skip", "skipped"),
        ("beaufort_undecided = pass", "passed"),
    ],
)
def test_undecided(pytester: pytest.Pytester, store: Path, ini: str, outcome: str) -> None:
    found, _ = outcomes(pytester, f"'good', store={str(store)!r}, require=0.999", ini)
    assert found == {outcome: 1}


def test_an_unknown_outcome(pytester: pytest.Pytester, store: Path) -> None:
    found, text = outcomes(pytester, f"'good', store={str(store)!r}", "beaufort_undecided = maybe")
    assert found == {"errors": 1}
    assert "maybe" in text
