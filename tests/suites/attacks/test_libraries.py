"""Attacks of other libraries, if installed, compared with ours on a real model."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import UnknownNameError
from beaufort.data.labels import LabelSpace
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD, Network, load_model
from beaufort.suites.attacks import BALLS, PGD, AttackError, attack_images, libraries
from beaufort.suites.attacks.libraries import Foolbox
from beaufort.suites.conditions import Condition

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.suites.attacks.attack_nets import make_images  # noqa: E402

ROOT = Path(__file__).parents[3]
FOOLBOX = pytest.mark.skipif(find_spec("foolbox") is None, reason="foolbox is not installed")
AUTOATTACK = pytest.mark.skipif(
    find_spec("autoattack") is None and find_spec("pyautoattack") is None,
    reason="AutoAttack is not installed",
)
IMAGES, LABELS = make_images(8)


def predicted_after(text: str, model: Network, **options: Any) -> Any:
    shift = Condition.parse(f"toys/{text}").shift
    chosen = {"labels": LABELS, "space": LabelSpace(), "seed": 0, **options}
    return shift.predict(model, IMAGES, ids=range(8), **chosen).argmax(axis=1)  # type: ignore[union-attr]


@FOOLBOX
@pytest.mark.parametrize("text", ["foolbox@LinfPGD:12/255", "foolbox@L2PGD:1.5"])
def test_foolbox(text: str, victim: Network) -> None:
    assert (predicted_after(text, victim) != LABELS).all()
    state = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].sum()  # noqa: NPY002
    assert (predicted_after(text, victim) == predicted_after(text, victim)).all()
    assert (torch.get_rng_state() == state[0]).all()
    assert np.random.get_state(legacy=False)["state"]["key"].sum() == state[1]  # noqa: NPY002


@FOOLBOX
def test_facts_of_foolbox() -> None:
    facts = Condition.parse("toys/foolbox@LinfPGD:8/255").facts()
    assert facts["library"] == "foolbox"
    assert facts["library_version"]
    assert (facts["norm"], facts["settings"]["steps"]) == ("linf", 40)


@FOOLBOX
def test_foolbox_attacks_that_will_not_do(victim: Network) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'LinfPGD'"):
        Condition.parse("toys/foolbox@LinfPDG:1").facts()
    with pytest.raises(AttackError, match=r"\blinf\b.*\bl2\b"):
        Condition.parse("toys/foolbox@L1PGD:1").facts()
    with pytest.raises(AttackError, match=r"label sets.* pgd-linf"):
        predicted_after("foolbox@LinfPGD:1/255", victim, labels=np.stack([LABELS, LABELS], axis=1))


@AUTOATTACK
@pytest.mark.parametrize("text", ["autoattack-linf@12/255", "autoattack-l2@1.5"])
def test_autoattack(text: str, victim: Network) -> None:
    assert (predicted_after(text, victim) != LABELS).all()
    assert Condition.parse(f"toys/{text}").facts()["library_version"]


def test_library_attacks_are_projected_into_the_ball(
    victim: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images of any library are projected onto the ball, and NaN stays unchanged."""

    def far(*arguments: Any, **options: Any) -> Any:
        return arguments[2] + 5 * torch.nan_to_num(torch.full_like(arguments[2], torch.nan), 1.0)

    attack = PGD(name="far", norm="linf")
    monkeypatch.setattr(PGD, "perturb", far)
    shown = attack_images(attack, victim, IMAGES, LABELS, epsilon=0.1, ids=range(8))
    sizes = BALLS["linf"].sizes(shown.double() - victim.pixels(IMAGES).double())
    assert ((sizes > 0.0999) & (sizes <= 0.1)).all()
    monkeypatch.setattr(PGD, "perturb", lambda *some, **more: some[2] * torch.nan)
    shown = attack_images(attack, victim, IMAGES, LABELS, epsilon=0.1, ids=range(8))
    assert (shown == victim.pixels(IMAGES)).all()
    monkeypatch.setattr(PGD, "perturb", lambda *some, **more: some[2][:3])
    with pytest.raises(AttackError, match="returned images of shape"):
        attack_images(attack, victim, IMAGES, LABELS, epsilon=0.1, ids=range(8))


@pytest.fixture(scope="module")
def resnet(shared: Path) -> tuple[Network, np.ndarray, np.ndarray]:
    """A published ResNet-20 and 32 test images of CIFAR-10 that it classifies correctly."""
    from PIL import Image

    folder = shared / "data" / "cifar10_test"
    if not folder.is_dir():
        pytest.skip("needs CIFAR-10")
    sys.path.insert(0, str(ROOT / "results" / "cifar10-c"))
    weights = shared / "data" / "cifar10_models" / "resnet20-12fca82f.th"
    model = load_model(
        f"torch:{weights}",
        arch="python:cifar_resnet:resnet20",
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        device="cpu",
    )
    assert isinstance(model, Network)
    grid = np.asarray(Image.open(folder / "cifar10_test_grid_100x100.png").crop((0, 0, 3200, 32)))
    images = np.ascontiguousarray(grid.reshape(32, 100, 32, 3).transpose(1, 0, 2, 3))[:36]
    labels = np.loadtxt(folder / "labels.csv", delimiter=",", skiprows=1, usecols=1, dtype=np.int64)[:36]
    right = np.flatnonzero(model(images).argmax(axis=1) == labels)[:32]
    return model, images[right], labels[right]


def fooled(attack: Any, resnet: tuple[Network, np.ndarray, np.ndarray], epsilon: float) -> np.ndarray:
    model, images, labels = resnet
    shown = attack_images(attack, model, images, labels, epsilon=epsilon, ids=range(len(labels)))
    found: np.ndarray = model.predict_pixels(shown).numpy().argmax(axis=1) != labels
    return found


@pytest.mark.parametrize(
    ("norm", "epsilons"), [("linf", (0.0, 0.5 / 255, 1 / 255)), ("l2", (0.0, 0.08, 0.16))]
)
def test_a_real_model_is_fooled_more_by_more(
    norm: str, epsilons: tuple[float, ...], resnet: tuple[Network, np.ndarray, np.ndarray]
) -> None:
    found = [fooled(PGD(name="x", norm=norm, steps=5), resnet, epsilon).sum() for epsilon in epsilons]
    assert found[0] == 0 < found[1] < found[2]


@FOOLBOX
@pytest.mark.parametrize(
    ("norm", "kind", "epsilon"), [("linf", "LinfPGD", 0.75 / 255), ("l2", "L2PGD", 0.12)]
)
def test_ours_is_at_least_as_strong_as_foolboxs(
    norm: str, kind: str, epsilon: float, resnet: tuple[Network, np.ndarray, np.ndarray]
) -> None:
    """At equal steps on a real model, with foolbox's own length of a step and with ours."""
    steps = 8
    ours = fooled(PGD(name="x", norm=norm, steps=steps), resnet, epsilon).sum()
    library = libraries._imported("foolbox").attacks
    for options in ({}, {"rel_stepsize": 2.5 / steps}):
        theirs = Foolbox(kind)
        theirs.__dict__["_attack"] = getattr(library, kind)(steps=steps, **options)
        count = fooled(theirs, resnet, epsilon).sum()
        assert 0 < count <= ours < 32
