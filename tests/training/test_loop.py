"""The loop learns, can be stopped anywhere, and resumes to the same bits."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort.training import (
    Recipe,
    TrainingData,
    TrainingFileError,
    TrainingTensors,
    get_recipe,
    load_trained,
    train,
)
from beaufort.training.data import TrainingBlock
from beaufort.training.optimize import make_optimizer
from beaufort.training.trained import FACTS, NETWORK, STATE, WEIGHTS

INTERVENTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "corruptions": {"names": ["stripe", "shot_noise"], "clean": 0.3, "scale": "mnist"},
    "pgd": {"epsilon": 0.1, "step": 0.05, "steps": 2},
    "network": {"epsilon": 0.1, "steps": 2, "width": 4},
    "stability": {"weight": 0.1, "shift": 2, "flip": True},
    "noise": {"strength": 0.1, "clean": 0.5},
    "image_filter": {"image_filter": "clahe:tiles=4"},
    "augmix": {"shift": 2},
    "prime": {"flip": True},
    "pruning": {"fraction": 0.7},
}


def weights(folder: Path) -> bytes:
    return (folder / WEIGHTS).read_bytes()


def accuracy(model: torch.nn.Module, source: TrainingTensors) -> float:
    with torch.no_grad():
        right = model(source.images.float() / 255).argmax(1) == source.labels
        return float(right.float().mean())


def test_training_learns_and_reports(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    made = train(quick, patches, output=tmp_path / "a", device="cpu")
    assert made.finished
    assert accuracy(made.model, patches) > 0.95
    assert made.facts["losses"][-1] < made.facts["losses"][0]
    assert made.facts["steps"] == 30
    assert {path.name for path in (tmp_path / "a").iterdir()} == {FACTS, WEIGHTS, NETWORK}


def test_a_seed_decides_the_weights(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    one = replace(quick, epochs=1)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(one, patches, output=tmp_path / name, seed=seed, device="cpu")
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


@pytest.mark.parametrize("intervention", INTERVENTIONS)
def test_stopped_anywhere_it_makes_the_same_bits(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, intervention: str
) -> None:
    options = INTERVENTIONS[intervention]
    recipe = replace(quick, intervention=intervention, intervention_options=options, epochs=2)
    if intervention == "pruning":
        recipe = replace(recipe, start=str(train(quick, patches, output=tmp_path / "start").folder))
    whole = train(recipe, patches.first(160), output=tmp_path / "whole", device="cpu")
    steps = 0
    for _ in range(20):  # each call makes one step and stops
        part = train(
            recipe, patches.first(160), output=tmp_path / "parts", device="cpu", deadline=time.monotonic()
        )
        steps += 1
        if part.finished:
            break
    assert part.finished
    assert steps == 10
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")
    assert not (tmp_path / "parts" / STATE).exists()
    for key in ("steps", "losses", "constant_loss"):
        assert whole.facts[key] == part.facts[key]


def test_killed_training_resumes_from_the_last_checkpoint(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    class Killed(Exception):  # noqa: N818
        pass

    def kill(at: Any) -> None:
        if at.step >= 12:
            raise Killed

    with pytest.raises(Killed):
        train(quick, patches, output=tmp_path / "a", device="cpu", progress=kill, save_every_s=0)
    assert (tmp_path / "a" / STATE).exists()
    train(quick, patches, output=tmp_path / "a", device="cpu")
    train(quick, patches, output=tmp_path / "b", device="cpu")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


@pytest.mark.parametrize(("rate", "steps"), [(0.01, 20), (1e5, 10)], ids=["learned", "diverged"])
def test_killed_at_the_end_of_an_epoch_its_loss_is_kept(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, rate: float, steps: int
) -> None:
    """The loss is stored with the checkpoint of the last step of an epoch."""
    recipe = replace(quick, epochs=2, rate=rate, schedule="constant", optimizer="sgd", momentum=0)

    class Killed(Exception):  # noqa: N818
        pass

    def kill(at: Any) -> None:
        if at.step == steps:
            raise Killed

    with pytest.raises(Killed):
        train(recipe, patches, output=tmp_path / "a", device="cpu", progress=kill, save_every_s=0)
    made = [train(recipe, patches, output=tmp_path / name, device="cpu").facts for name in ("a", "b")]
    assert made[0]["losses"] == made[1]["losses"]
    assert made[0]["steps"] == made[1]["steps"] == steps


def test_blocks_change_nothing(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    recipe = replace(
        quick, intervention="corruptions", intervention_options=INTERVENTIONS["corruptions"], epochs=1
    )
    train(recipe, patches, output=tmp_path / "a", device="cpu")
    other = replace(recipe, block=10_000)
    train(other, patches, output=tmp_path / "b", device="cpu")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


def test_finished_training_run_is_read(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    first = train(quick, patches, output=tmp_path, device="cpu")
    again = train(quick, patches, output=tmp_path, device="cpu", progress=lambda at: pytest.fail("trained"))
    assert again.facts == first.facts
    assert accuracy(again.model, patches) == accuracy(first.model, patches)


@pytest.mark.parametrize("deadline", [0.0, None], ids=["unfinished", "finished"])
def test_folder_of_another_training_run_is_rejected(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, deadline: float | None
) -> None:
    train(quick, patches, output=tmp_path, device="cpu", deadline=deadline)
    with pytest.raises(TrainingFileError, match=r"another seed \(0 there, 1 here\)"):
        train(quick, patches, output=tmp_path, seed=1, device="cpu")
    with pytest.raises(TrainingFileError, match=r"recipe.*rate: 0\.01.*0\.02"):
        train(replace(quick, rate=0.02), patches, output=tmp_path, device="cpu")
    with pytest.raises(TrainingFileError, match=r"data.*images: 320.*100"):
        train(quick, patches.first(100), output=tmp_path, device="cpu")
    told_otherwise = replace(quick, about="the same in other words")
    assert train(told_otherwise, patches, output=tmp_path, device="cpu").finished


def test_invalid_output_is_reported_before_training(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OptionError, match=r"/file"):
            train(quick, patches, output=folder, device="cpu", progress=lambda at: pytest.fail("trained"))


def test_networks_of_your_own_that_cannot_learn(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_nets.py").write_text("""
from torch import nn

class Dict(nn.Sequential):
    def forward(self, images):
        return {"logits": super().forward(images)}

def dict_of_logits(classes):
    return Dict(nn.Flatten(), nn.Linear(28 * 28, classes))

def frozen(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, classes)).requires_grad_(False)
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, message in (
        ("dict_of_logits", "on patches .*'dict' object has no attribute"),
        ("frozen", "has no parameters that require gradients"),
    ):
        recipe = replace(quick, architecture=f"python:own_nets:{name}", architecture_options={})
        with pytest.raises(OptionError, match=f"the network 'python:own_nets:{name}' {message}"):
            train(recipe, patches, output=tmp_path / name, device="cpu")
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("content", [b"", b"not tensors", b"\xff" * 64])
def test_a_damaged_checkpoint_is_named(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(TrainingFileError, match=STATE):
        train(quick, patches, output=tmp_path, device="cpu")


def test_the_callers_generator_is_left_alone(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(replace(quick, epochs=1), patches, output=tmp_path, device="cpu")
    assert torch.equal(torch.rand(3), expected)


def test_it_starts_from_a_trained_model(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    first = train(quick, patches, output=tmp_path / "first", device="cpu")
    tuned = replace(quick, start=f"trained:{tmp_path / 'first'}", epochs=1, rate=0.0)
    second = train(tuned, patches, output=tmp_path / "second", device="cpu")
    assert all(
        torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True)
    )


def test_any_source_will_do(quick: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from beaufort.data import load_dataset
    from beaufort.training import DecodedData, open_training_data

    rng = np.random.default_rng(1)
    np.savez(
        tmp_path / "a.npz", images=rng.integers(0, 255, (64, 28, 28, 1), np.uint8), labels=np.arange(64) % 10
    )
    dataset = load_dataset(str(tmp_path / "a.npz"))
    held = open_training_data(dataset)
    train(replace(quick, epochs=1), held, output=tmp_path / "held", device="cpu")
    train(replace(quick, epochs=1), DecodedData(dataset, (1, 28, 28)), output=tmp_path / "read", device="cpu")
    assert weights(tmp_path / "held") == weights(tmp_path / "read")


@pytest.mark.parametrize("memory", [1 << 30, 10])
def test_unreadable_images_are_reported_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    from PIL import Image

    from beaufort.training import open_training_data

    monkeypatch.setattr("beaufort.training.data._MEMORY", memory)
    for name in ("cat/a", "cat/b", "dog/c", "dog/d", "stray"):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("L", (28, 28)).save(path)
    with pytest.raises(ImageFileError, match=r"1.*image.*\n.*stray.png"):
        open_training_data(str(tmp_path))
    (tmp_path / "stray.png").unlink()
    assert len(open_training_data(str(tmp_path))) == 4
    if memory > 10:
        for name in ("cat/a", "dog/d"):
            (tmp_path / f"{name}.png").write_bytes(b"")
        both = r"2 unreadable images(.|\n)*cat/a.png: .*empty.*\n.*dog/d.png: .*empty"
        with pytest.raises(ImageFileError, match=both):
            open_training_data(str(tmp_path))


def test_data_that_do_not_fit_into_memory_are_identified(
    quick: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beaufort.training import DecodedData, open_training_data, trained

    monkeypatch.setattr("beaufort.training.data._MEMORY", 1000)
    images = np.random.default_rng(1).integers(0, 255, (600, 28, 28, 1), np.uint8)
    labels, recipe = np.arange(600) % 10, replace(quick, epochs=1)

    def source(**changes: Any) -> TrainingData:
        np.savez(tmp_path / "a.npz", **{"images": images, "labels": labels, **changes})
        return open_training_data(str(tmp_path / "a.npz"))

    before = source()
    assert isinstance(before, DecodedData)
    train(recipe, before, output=tmp_path / "a", device="cpu", deadline=time.monotonic())
    for changes in ({"images": 255 - images}, {"labels": labels[::-1]}):
        with pytest.raises(TrainingFileError, match="other data \\(digest: 'sample:"):
            train(recipe, source(**changes), output=tmp_path / "a", device="cpu")
    assert train(recipe, source(), output=tmp_path / "a", device="cpu").finished
    facts = trained.read_facts(tmp_path / "a")
    (tmp_path / "a" / FACTS).write_text(json.dumps({**facts, "data": {**facts["data"], "digest": ""}}))
    assert train(recipe, source(), output=tmp_path / "a", device="cpu").finished  # as older versions wrote it


def test_invalid_tensors_are_reported(patches: TrainingTensors) -> None:
    images, labels, classes = patches.images, patches.labels, patches.classes
    for some, outputs, message in (
        (images.float() / 255, labels, r"images of mine must be a torch.uint8 tensor \(n, c, h, w\), got"),
        (images[:, 0], labels, r"torch.uint8 tensor \(n, c, h, w\), got torch.uint8 \(320, 28"),
        (images.numpy(), labels, "images of mine must be a"),
        (images, labels.int(), r"labels of mine must be a torch.int64 tensor \(n,\), got torch.int32"),
        (images, labels.tolist(), "labels of mine must be .* got list"),
        (images, labels[:5], "mine has 5 labels for 320 images"),
        (images, labels - 1, "must be 0 to 9, got -1 to 8"),
        (images, labels + 1, "must be 0 to 9, got 1 to 10"),
    ):
        with pytest.raises(OptionError, match=message):
            TrainingTensors("mine", classes, some, outputs)


def test_data_of_your_own_are_checked(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    class Own(TrainingTensors):
        def read(self, places: Any, device: str) -> TrainingBlock:
            block = super().read(places, device)
            return block._replace(labels=block.labels + (10 if 5 in places else 0))

    own = Own("own", patches.classes, patches.images, patches.labels)
    with pytest.raises(OptionError, match=r"labels of own.* 0 to 9.* 10\b"):
        train(quick, own, output=tmp_path, device="cpu")
    with pytest.raises(OptionError, match="patches has no images"):
        train(quick, patches.first(0), output=tmp_path, device="cpu")


def test_a_seed_is_an_integer(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    """NumPy integers are valid seeds, and are recorded."""
    for seed in (1.5, "a", True, None):
        with pytest.raises(OptionError, match=r"seed.*integer"):
            train(quick, patches, output=tmp_path, seed=seed, device="cpu")  # type: ignore[arg-type]
    few = patches.first(32)
    made = [
        train(quick, few, output=tmp_path / name, seed=seed, device="cpu").facts["seed"]  # type: ignore[arg-type]
        for name, seed in (("a", np.int64(3)), ("b", 3))
    ]
    assert made == [3, 3]
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


def test_invalid_settings_are_reported(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    with pytest.raises(BeaufortError, match="did you mean 'conv1'"):
        train(replace(quick, architecture="conv_1"), patches, output=tmp_path, device="cpu")
    with pytest.raises(OptionError, match="'conv1'"):
        train(replace(quick, architecture_options={"depth": 3}), patches, output=tmp_path, device="cpu")
    with pytest.raises(OptionError, match=r"'pgd'.*'eps'"):
        train(
            replace(quick, intervention="pgd", intervention_options={"eps": 1}),
            patches,
            output=tmp_path,
            device="cpu",
        )
    with pytest.raises(OptionError, match=r"epsilon.*0.*1.*2"):
        train(
            replace(quick, intervention="pgd", intervention_options={"epsilon": 2}),
            patches,
            output=tmp_path,
            device="cpu",
        )
    with pytest.raises(BeaufortError, match="nowhere"):
        train(replace(quick, start="nowhere"), patches, output=tmp_path, device="cpu")
    with pytest.raises(OptionError, match=r"epochs.*0"):
        Recipe(name="a", architecture="conv1", epochs=0)


@pytest.mark.parametrize(
    ("intervention", "options", "message"),
    [
        ("pgd", {"steps": 2.5}, r"steps .*integer.* 1 to 100000.* 2.5"),
        ("pgd", {"epsilon": "far"}, r"epsilon .*number.* 0 to 1.* 'far'"),
        ("pgd", {"step": 0}, "step must be .* got 0"),
        ("network", {"epsilon": "far"}, r"epsilon .*number.* 0 to 1.* 'far'"),
        ("network", {"steps": 0}, r"steps .*integer.* 1 to 100000.* 0"),
        ("network", {"rate": 0}, "rate must be .* got 0"),
        ("plain", {"mixup": "some"}, r"mixup .*number.* 0 to 1000.* 'some'"),
        ("corruptions", {"names": "fog", "clean": "half"}, r"clean .*number.* 0 to 1.* 'half'"),
        ("image_filter", {"image_filter": 5}, "filter must be .*, got 5"),
    ],
)
def test_options_are_checked_before_anything_is_trained(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, intervention: str, options: Any, message: str
) -> None:
    recipe = replace(quick, intervention=intervention, intervention_options=options)
    with pytest.raises(OptionError, match=message):
        train(recipe, patches, output=tmp_path, device="cpu")


def test_a_network_that_does_not_fit_the_data_is_named(patches: TrainingTensors, tmp_path: Path) -> None:
    photos = Recipe(name="photos", architecture="resnet", architecture_options={"depth": 8, "width": 4})
    with pytest.raises(OptionError, match=r"'resnet'.*1.*28.*28"):
        train(photos, patches, output=tmp_path / "a", device="cpu")
    three = TrainingTensors("three", tuple("abc"), patches.images, patches.labels % 3)
    for name in ("capsule", "abs"):
        with pytest.raises(OptionError, match=rf"'{name}'.*10.*3"):
            train(Recipe(name="a", architecture=name), three, output=tmp_path / "b", device="cpu")


@pytest.mark.parametrize("architecture", ["conv1", "conv2", "conv3", "digits"])
def test_models_of_other_classes_are_evaluated(
    patches: TrainingTensors, tmp_path: Path, architecture: str
) -> None:
    """Networks for digits have as many outputs as the data have classes."""
    from beaufort.models import load_model

    three = TrainingTensors("three", tuple("abc"), patches.images[:32], patches.labels[:32] % 3)
    train(Recipe(name="a", architecture=architecture), three, output=tmp_path, device="cpu")
    model = load_model(f"trained:{tmp_path}", device="cpu")
    assert model(three.images[:4].permute(0, 2, 3, 1).numpy()).shape == (4, 3)


def test_a_file_from_before_a_setting_was_added_is_read(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    train(replace(quick, epochs=1), patches, output=tmp_path, device="cpu")
    facts = json.loads((tmp_path / FACTS).read_bytes())
    del facts["recipe"]["nesterov"], facts["recipe"]["replay"]
    (tmp_path / FACTS).write_text(json.dumps(facts))
    assert train(replace(quick, epochs=1), patches, output=tmp_path, device="cpu").finished
    with pytest.raises(TrainingFileError, match="another recipe"):
        train(replace(quick, epochs=2), patches, output=tmp_path, device="cpu")


def test_nesterov_is_torchs(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    plain = replace(quick, optimizer="sgd", epochs=1, rate=0.01)
    ahead = replace(plain, nesterov=True)
    assert make_optimizer(ahead, torch.nn.Linear(2, 2)).defaults["nesterov"]
    for name, recipe in (("a", plain), ("b", ahead)):
        train(recipe, patches, output=tmp_path / name, device="cpu")
    assert weights(tmp_path / "a") != weights(tmp_path / "b")


def test_networks_receive_the_training_progress(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fractions: list[float] = []
    monkeypatch.setattr(
        torch.nn.Sequential, "on_progress", lambda _, fraction: fractions.append(fraction), raising=False
    )
    train(replace(quick, epochs=4), patches, output=tmp_path, device="cpu")
    assert fractions == [0, 0.25, 0.5, 0.75]


def test_the_data_decide_the_number_of_classes(tmp_path: Path) -> None:
    images = torch.randint(0, 255, (8, 3, 16, 16), dtype=torch.uint8)
    data = TrainingTensors("few", ("a", "b", "c"), images, torch.arange(8) % 3)
    recipe = get_recipe("icons-resnet20").changed(["epochs=1", "batch=4", "architecture_options.depth=8"])
    made: Any = train(recipe, data, output=tmp_path, device="cpu").model
    assert made.classify.out_features == 3
    model, _ = load_trained(tmp_path)
    assert model.classify.out_features == 3


@pytest.mark.parametrize(("width", "safe"), [(4, False), (16, True)])
def test_narrow_networks_learn_without_onednn(
    patches: TrainingTensors,
    quick: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    safe: bool,
) -> None:
    """It writes outside of its memory in the shortcuts of narrow ResNets, on some processors."""
    from beaufort.training import architectures

    seen: set[Any] = set()
    known = architectures.build

    def look(one: torch.nn.Module, _: Any) -> None:
        if one.training:
            seen.add(torch.backends.mkldnn.enabled)

    def build(*args: Any, **options: Any) -> torch.nn.Module:
        made = known(*args, **options)
        made.register_forward_pre_hook(look)
        return made

    monkeypatch.setattr(architectures, "build", build)
    options = {"depth": 8, "width": width}
    recipe = replace(quick, architecture="resnet", architecture_options=options, epochs=1)
    recipe = replace(recipe, intervention_options={"shift": 2})
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    colored = replace(patches, images=patches.images[:64].expand(-1, 3, -1, -1), labels=patches.labels[:64])
    train(recipe, colored, output=tmp_path / "a", device="cpu")
    assert seen == {safe}
    assert torch.backends.mkldnn.enabled
