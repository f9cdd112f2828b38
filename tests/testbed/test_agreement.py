"""Accuracies under shifts estimated from the agreement of models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import OptionError
from beaufort.cli._app import app
from beaufort.data import from_arrays
from beaufort.metrics.scales import get_scale
from beaufort.models import Model, as_model
from beaufort.suites import parse_suite
from beaufort.testbed import AgreementLine, agreement_lines
from tests.commands import shows

SUITE = parse_suite("""
name: unlabeled
version: 1
parts:
  - {dataset: clean, labels: identity}
  - {dataset: copied, labels: identity, counterpart: clean}
  - {dataset: shifted, labels: identity, counterpart: clean}
""")
N, CLASSES = 400, 10


def images(first: int) -> np.ndarray:
    """Images that encode their number."""
    numbers = np.arange(first, first + N)
    pixels = np.stack([numbers // 256, numbers % 256, 0 * numbers], axis=-1).astype(np.uint8)
    return np.broadcast_to(pixels[:, None, None], (N, 16, 16, 3)).copy()


def predictors(labels: np.ndarray) -> list[Model]:
    """Models of different accuracy; the second half of the images is harder for all of them."""
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 1, len(labels)) + 0.6 * (np.arange(len(labels)) >= N)
    usual = (labels + rng.integers(1, CLASSES, len(labels))) % CLASSES  # what is easily mistaken

    def model(place: int, ability: float) -> Model:
        right = ability + 0.5 * rng.normal(0, 1, len(labels)) > hard
        wrong = np.where(rng.random(len(labels)) < 0.5, usual, rng.integers(0, CLASSES, len(labels)))
        told = np.where(right, labels, wrong)

        def predict(batch: np.ndarray) -> np.ndarray:
            numbers = batch[:, 0, 0, 0].astype(int) * 256 + batch[:, 0, 0, 1]
            logits: np.ndarray = np.eye(CLASSES, dtype=np.float32)[told[numbers]]
            return logits

        return as_model(predict, name=f"m{place}", classes=CLASSES, version=str(place))

    return [model(place, ability) for place, ability in enumerate(np.linspace(-0.5, 2, 8))]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The same predictions with and without labels of the shifted images."""
    labels = np.random.default_rng(3).integers(0, CLASSES, 2 * N)
    models, made = predictors(labels), []
    for name, shifted in (("labeled", labels[N:]), ("unlabeled", np.zeros(N, int))):
        data = {
            "clean": from_arrays("clean", images(0), labels[:N]),
            "copied": from_arrays("copied", images(0), labels[:N]),
            "shifted": from_arrays("shifted", images(N), shifted),
        }
        made.append(str(tmp_path_factory.mktemp(name)))
        evaluate(models, SUITE, data, made[-1])
    return made[0], made[1]


def line_of(store: str, shifted: str) -> AgreementLine:
    return next(one for one in agreement_lines(store) if one.shifted == shifted)


def test_without_a_shift_the_estimates_are_the_accuracies(stores: tuple[str, str]) -> None:
    one = line_of(stores[0], "copied")
    assert (one.clean, one.pairs, one.images) == ("clean", 28, (N, N))
    assert one.line.slope == pytest.approx(1)
    for model in one.models:
        assert model.estimated == pytest.approx(model.clean)
        assert model.measured == pytest.approx(model.clean)


def test_estimates_need_no_labels(stores: tuple[str, str]) -> None:
    labeled, unlabeled = (line_of(store, "shifted") for store in stores)
    assert labeled.error is not None
    assert labeled.error < 6
    lost = np.mean([model.clean - (model.measured or 0) for model in labeled.models])
    assert labeled.error < lost / 2
    assert unlabeled.error is None
    for one, other in zip(labeled.models, unlabeled.models, strict=True):
        assert (one.estimated, one.on_line) == (other.estimated, other.on_line)
        assert other.measured is None


def test_estimates_solve_one_equation_per_pair(stores: tuple[str, str]) -> None:
    """The published system, with a row for each pair, in the plainest form."""
    one = line_of(stores[0], "shifted")
    forward = get_scale("probit").forward
    clean = {model.model: float(forward(model.clean)) for model in one.models}
    names = list(clean)
    rows, values = [], []
    places = [(i, j) for i in range(len(names)) for j in range(i)]
    for place, (i, j) in enumerate(places):
        row = np.zeros(len(names))
        row[i] = row[j] = 0.5
        rows.append(row)
        middle = (clean[names[i]] + clean[names[j]]) / 2
        values.append(one.line.y[place] + one.line.slope * (middle - one.line.x[place]))
    solution = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    expected = get_scale("probit").inverse(solution)
    assert [model.estimated for model in one.models] == pytest.approx(expected.tolist())


def test_the_command(stores: tuple[str, str]) -> None:
    ran = CliRunner().invoke(app, ["testbed", "agreement", stores[0]])
    assert ran.exit_code == 0, ran.output
    assert shows(ran.output, "shifted", "400 images", "clean", "28 pairs", "slope")
    assert "mean absolute error" in ran.output
    found = json.loads(CliRunner().invoke(app, ["testbed", "agreement", stores[1], "--json"]).stdout)
    assert [one["shifted"] for one in found["shifts"]] == ["copied", "shifted"]
    assert found["shifts"][1]["models"][0]["measured"] is None


def test_two_models_are_too_few(stores: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="at least 3 models, got 2"):
        agreement_lines(stores[0], models=["m0", "m1"])
