"""Attacks as conditions: named by text, evaluated into a store, resumed, and rejected before a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort._core.errors import BeaufortError, MissingExtraError, OptionError
from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import LazyModel, RunOptions, plan, tasks
from beaufort.models import Network, as_model
from beaufort.results import evaluate
from beaufort.store import FileStore
from beaufort.suites.attacks import AttackError, AttackShift
from beaufort.suites.conditions import Condition

pytest.importorskip("torch", reason="torch is not installed")

from tests.suites.attacks.attack_nets import make_images

WEAK, STRONG = "toys/pgd-linf@4.5/255,steps=5", "toys/pgd-linf@8/255,steps=5"


def dataset(count: int = 24) -> Dataset:
    return from_arrays("toys", *make_images(count))


def conditions(*texts: str) -> list[Condition]:
    return [Condition.parse(text) for text in ("toys", *texts)]


def rows(store: Path) -> dict[str, list[dict[str, object]]]:
    kept = FileStore(store)
    return {cell.condition_name: kept.read(cell).to_pylist() for cell in kept.cells().values()}


@pytest.mark.parametrize(
    "text",
    [
        "imagenet-val/pgd-linf@0.5/255",
        "imagenet-val/pgd-l2@0.1",
        "imagenet-val/pgd-linf@8/255,steps=20",
        "imagenet-val/pgd-linf@8/255,steps=20,step=0.2",
        "imagenet-val/testbed-pgd-linf@2/255",
        "imagenet-val/autoattack-l2@0.5",
        "imagenet-val/foolbox@LinfPGD:8/255",
    ],
)
def test_texts_read_back(text: str) -> None:
    condition = Condition.parse(text)
    assert str(condition) == text
    assert isinstance(condition.shift, AttackShift)
    assert condition.needs_model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toys/pgd-linf", r"epsilon .*number.* 0, .*as in pgd-linf@8/255.* ''"),
        ("toys/pgd-linf@8/0", "got '8/0'"),
        ("toys/pgd-linf@-1", "got '-1'"),
        ("toys/pgd-linf@1e3", "got '1e3'"),
        ("toys/pgd-linf@1,steps=1.5", "options of pgd-linf must be steps=20 and step=0.1"),
        ("toys/pgd-linf@1,steps=2,steps=3", "each once, got 'steps=2,steps=3'"),
        ("toys/pgd-linf@1,step=0.0", "step must be a fraction of epsilon above 0, got 'step=0.0'"),
        ("toys/pgd-linf@1,steps=0", "steps must be .* got 0"),
        ("toys/autoattack-linf@1,steps=2", "options of autoattack-linf must be none"),
        ("toys/foolbox@8/255", "written as foolbox@LinfPGD:8/255"),
        ("toys/pgd-l1@1", "did you mean 'pgd-l2' or 'pgd-linf'"),
    ],
)
def test_texts_that_mean_nothing(text: str, message: str) -> None:
    with pytest.raises(BeaufortError, match=message):
        Condition.parse(text)


def test_facts_are_settings_epsilon_and_seed() -> None:
    facts = Condition.parse("toys/pgd-l2@1/4,steps=10").facts(seed=3)
    assert facts["epsilon"] == 0.25
    assert (facts["steps"], facts["step"], facts["seed"]) == (10, 0.25, 3)
    assert (facts["truth"], facts["clip"]) == (True, True)


def test_a_step_of_its_own_does_not_follow_the_number_of_steps() -> None:
    """The testbed's step became 2.5 / steps of the radius."""
    for name, step in (("testbed-pgd-linf", 0.03), ("testbed-pgd-l2", 0.1)):
        facts = Condition.parse(f"toys/{name}@2/255,steps=20").facts(seed=0)
        assert (facts["steps"], facts["step"]) == (20, step)
    assert Condition.parse("toys/testbed-pgd-l2@1,steps=20,step=0.2").facts(seed=0)["step"] == 0.2


def test_a_run_is_stored_and_taken_up_again(tmp_path: Path, victim: Network) -> None:
    requested = conditions("toys/pgd-linf@0", WEAK, STRONG)
    first = evaluate([victim], requested, dataset(), tmp_path)
    clean, zero, weak, strong = (result.accuracy for result in first.results)
    assert clean == zero == 1
    assert 0 < weak < 1
    assert strong == 0
    kept = rows(tmp_path)
    assert kept["toys/pgd-linf@0"] == kept["toys"]  # bit for bit
    again = evaluate([victim], requested, dataset(), tmp_path)
    assert all(result.reused for result in again.results)
    assert [result.correct for result in again.results] == [result.correct for result in first.results]


def test_truncated_run_resumes(tmp_path: Path, victim: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks run block by block, and an interruption does not change their results."""
    monkeypatch.setattr(tasks, "BLOCK", 8)
    requested = conditions(WEAK)
    evaluate([victim], requested, dataset(), tmp_path / "whole")
    evaluate([victim], requested, dataset(), tmp_path / "parts", options=RunOptions(first=16))
    rest = plan([victim], requested, dataset(), tmp_path / "parts")
    assert [work.gaps for work in rest.cells] == [((16, 24),)] * 2
    evaluate([victim], requested, dataset(), tmp_path / "parts")
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")


def test_worker_processes_know_the_attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    model = LazyModel("python:attack_nets:net", {})
    found = evaluate([model], conditions(STRONG), dataset(8), tmp_path, engine="processes:1")
    assert [result.accuracy for result in found.results] == [1, 0]


def test_two_models_are_attacked_each_for_itself(tmp_path: Path, victim: Network) -> None:
    """A copy with other weights gets its own adversarial images in the same run."""
    from tests.suites.attacks.attack_nets import net

    other = net(name="other", mean=(0.5, 0.5, 0.5))
    found = evaluate([victim, other], conditions(STRONG), dataset(), tmp_path)
    assert {(result.model, result.condition): result.accuracy for result in found.results} == {
        ("net", "toys"): 1,
        ("net", STRONG): 0,
        ("other", "toys"): 1,
        ("other", STRONG): 0,
    }


def test_models_without_gradients_are_rejected_before_the_run(tmp_path: Path, victim: Network) -> None:
    calls = []

    def predict(images: np.ndarray) -> np.ndarray:
        calls.append(len(images))
        return images[:, 0, :4, 0].astype(np.float32)

    plain = as_model(predict, name="plain", classes=4, version="1")
    with pytest.raises(AttackError, match="plain is not one"):
        evaluate([victim, plain], conditions(WEAK), dataset(), tmp_path)
    assert not calls
    assert not list(tmp_path.iterdir())


def test_cost_of_an_attack_is_reported(tmp_path: Path, victim: Network) -> None:
    planned = [
        plan([victim], conditions(*texts), dataset(), tmp_path)
        for texts in ((), ("toys/pgd-linf@1/255,steps=2000",))
    ]
    assert planned[1].estimate_seconds() > 100 * planned[0].estimate_seconds()


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beaufort.suites.attacks.libraries.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install pyautoattack"):
        Condition.parse("toys/autoattack-linf@8/255").facts()
    with pytest.raises(MissingExtraError, match="pip install foolbox"):
        Condition.parse("toys/foolbox@LinfPGD:8/255").facts()


def test_seed_must_be_an_integer() -> None:
    with pytest.raises(OptionError, match="seed"):
        Condition.parse(WEAK).facts(seed=0.5)  # type: ignore[arg-type]
