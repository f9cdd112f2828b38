"""Every registered corruption keeps every contract."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

from beaufort import get_corruption_names
from beaufort._core.errors import OptionError
from beaufort.corruptions import SEVERITIES, Corruption, corruptions
from beaufort.corruptions import corruption as register
from beaufort.testing import CORRUPTION_CONTRACTS, ContractError, check_corruption
from beaufort.testing._contracts import example_image

# Published constants under which some step up in severity changes the pixels less: frost and fog swap
# brightness for structure, glass blur trades sweeps for distance, snow changes the size of its flakes.
UNEVEN = {"elastic_transform", "fog", "frost", "glass_blur", "saturate", "snow"}


@pytest.fixture
def corruption(name: str) -> Corruption:
    return corruptions[name]


every_corruption = pytest.mark.parametrize("name", corruptions)


@every_corruption
@pytest.mark.parametrize("contract", CORRUPTION_CONTRACTS)
def test_contract(corruption: Corruption, contract: str) -> None:
    CORRUPTION_CONTRACTS[contract](corruption)


@pytest.mark.parametrize("name", sorted(set(get_corruption_names("all")) - UNEVEN))
def test_damage_grows_step_by_step(corruption: Corruption) -> None:
    images = np.stack([example_image(96, 96, variant=i % 4) for i in range(16)])
    damage = [
        np.abs(corruption(images, severity, scale="imagenet", ids=range(16)).astype(int) - images).mean()
        for severity in SEVERITIES
    ]
    assert damage == sorted(damage), damage


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [3, pytest.param(8, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", corruptions)
def test_huge(corruption: Corruption, tiles: int) -> None:
    """24 megapixels; of C-bar 1.5, as its formulas in double precision take gigabytes and minutes beyond."""
    tiles = min(tiles, 2) if corruption.group == "unseen" else tiles
    image = np.tile(example_image(500, 500), (tiles, tiles * 3 // 2, 1))
    out = corruption(image, 3, scale="imagenet" if "imagenet" in corruption.recipes else "auto")
    assert out.shape == image.shape
    assert (out != image).any()


IN_A_CHILD = """
import hashlib, json, sys
from beaufort import get_corruption_names
from beaufort.corruptions import corruptions
from beaufort.testing._contracts import example_image
image = example_image(40, 48)
outputs = {n: corruptions[n](image, 3, ids=[9]) for n in sys.argv[1:]}
print(json.dumps({n: hashlib.sha256(out.tobytes()).hexdigest() for n, out in outputs.items()}))
"""


def test_same_in_another_process() -> None:
    names = [name for name in corruptions if name not in ("frost", "pessimal_noise")]
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", IN_A_CHILD, *names]
    child = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    theirs = json.loads(child.stdout)
    image = example_image(40, 48)
    ours = {n: hashlib.sha256(corruptions[n](image, 3, ids=[9]).tobytes()).hexdigest() for n in names}
    assert theirs == ours


def test_a_broken_corruption_is_found() -> None:
    """Each of these corruptions violates one requirement."""

    def broken(render: Any, *, draw: Any = None) -> Corruption:
        made = Corruption("broken", "noise", 1, "Broken.")
        made.at("imagenet", "cifar", "tiny", levels=[1, 2, 3, 4, 5], draw=draw)(render)
        return made

    def some_of_them(images: Any, p: Any, drawn: Any, ops: Any) -> Any:
        """Change three of four images, whatever the severity."""
        return images + (drawn < 0.75).astype(np.uint8).reshape(-1, 1, 1, 1)

    calls = iter(range(10**6))
    for made, contract in (
        (broken(lambda images, p, ops: images), "does_something"),
        (broken(some_of_them, draw=lambda random, images, p: random.uniform((), 0, 1)), "does_something"),
        (broken(lambda images, p, ops: images[:, ::-1] ^ np.uint8(255 // p)), "grows_with_severity"),
        (broken(lambda images, p, ops: images + np.uint8(next(calls))), "same_every_time"),
        (broken(lambda images, p, ops: images + np.uint8(len(images) * p)), "same_alone_as_in_a_batch"),
        (
            broken(lambda images, p, drawn, ops: images + np.uint8(p), draw=lambda random, images, p: None),
            "differs_by_seed_and_id",
        ),
    ):
        with pytest.raises(ContractError):
            CORRUPTION_CONTRACTS[contract](made)
    with pytest.raises(ContractError):
        check_corruption(broken(lambda images, p, ops: images))


class Params(NamedTuple):
    """Strength of a simple corruption."""

    amount: float


def begun(
    render: Any, *, draw: Any = None, amounts: Any = (10, 20, 30, 40, 50), **options: Any
) -> Corruption:
    made = Corruption("begun", "noise", 1, options.pop("doc", "Begun."))
    made.at("imagenet", levels=[Params(amount) for amount in amounts], draw=draw, tensors=False)(render)
    return made


def brighter(images: np.ndarray, p: Params, ops: Any) -> np.ndarray:
    brightened: np.ndarray = np.minimum(images.astype(int) + int(p.amount), 255).astype(np.uint8)
    return brightened


def in_place(images: np.ndarray, p: Params, ops: Any) -> np.ndarray:
    images[:, ::2] = 0
    return images


def drawn(random: Any, images: np.ndarray, p: Params) -> Any:
    return random.uniform((), 0, 1)


def test_a_first_try_passes() -> None:
    check_corruption(begun(brighter))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            begun(lambda images, p, ops: images + 0.5 * p.amount),
            r"<lambda> must return uint8 .*\(1, 40, 48, 3\), got float64 .*; round floats, as in np.clip",
        ),
        (begun(lambda images, p, ops: images[:, 1:]), r"got uint8 of shape \(1, 39, 48, 3\)$"),
        (begun(lambda images, p, ops: images.tolist()), "got list; round"),
        (begun(in_place), "The render modifies its input; copy it"),
        (
            begun(
                lambda images, p, ops: images ^ np.random.default_rng().integers(0, 99, images.shape, "u1")
            ),
            "It uses another generator; draw all random numbers from `random`",
        ),
        (
            begun(lambda images, p, drawn, ops: brighter(images, p, ops), draw=drawn),
            "another seed .* The render ignores the drawn numbers",
        ),
        (
            begun(lambda images, p, ops: (images - images.mean() / 9).clip(0, 255).astype(np.uint8)),
            "alone and in a batch. Draw one entry per image",
        ),
        (
            begun(brighter, amounts=(50, 40, 30, 20, 10)),
            r"severity 5 .* than severity 1\. .* \d.* and \d.* levels; order the constants .* graded=False",
        ),
        (
            begun(lambda images, p, ops: np.roll(images, 1, axis=1)[:, :, : images[0, 199].shape[0]]),
            "The render returns uint8 images of the input shape. IndexError: ",
        ),
        (
            begun(brighter, amounts=(1, 2, 3)),
            "constants for five severities, or one entry for all. It has 3",
        ),
        (
            begun(brighter, doc=""),
            "docstring. `beaufort ls corruptions`",
        ),
    ],
)
def test_messages_name_the_problem_and_the_fix(made: Corruption, says: str) -> None:
    with pytest.raises(ContractError, match=says) as caught:
        check_corruption(made)
    assert str(caught.value).startswith("begun violates the contract: ")


def test_error_of_numpy_only_corruptions_suggests_tensors_false() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    made = Corruption("begun", "noise", 1, "Begun.")
    made.at("imagenet", levels=[Params(amount) for amount in (10, 20, 30, 40, 50)])(brighter)
    says = r"torch tensor .* at scale imagenet\. AttributeError: .*; declare tensors=False"
    with pytest.raises(ContractError, match=says):
        check_corruption(made)


@pytest.mark.parametrize(("levels", "given"), [({"photo": [1]}, "'photo'"), ({}, "got no scale")])
def test_scales_are_known(levels: dict[str, list[int]], given: str) -> None:
    with pytest.raises(OptionError, match=rf"begun.*mnist, cifar.*{given}"):

        @register("noise", levels=levels)
        def begun(images: Any, p: Any, ops: Any) -> Any:
            """Begun."""

    assert "begun" not in corruptions


def test_a_corruption_of_numpy_alone_is_done_by_the_host() -> None:
    """Corruptions without a torch version work on tensors, on the host, as their conditions state."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    made = begun(brighter)
    image = example_image(40, 48)
    there = made(torch.from_numpy(image.transpose(2, 0, 1).copy()), 3)
    np.testing.assert_array_equal(there.permute(1, 2, 0).numpy(), made(image, 3))
    with pytest.raises(OptionError, match=r"begun.*tensors=False"):
        made(image, 3, backend="torch")
