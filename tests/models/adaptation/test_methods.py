"""Adaptation methods: their updates, states and resets, on a small network."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from beaufort import OptionError
from beaufort.models import ModelError, StatefulModel, as_model, load_model, with_filter
from beaufort.models.adaptation import METHODS, AdaptedModel, adapt_model

torch = pytest.importorskip("torch")
nn = torch.nn

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 24, 16, 16, 3)).astype(np.uint8)
TEXTS = [
    *("bn", "bn:prior=8", "tent:lr=0.01,steps=2", "sar:lr=0.01,e_margin=1", "cotta:views=2"),
    "eata:lr=0.01,e_margin=1,d_margin=1,fisher_size=24",
]


def small_network() -> Any:
    torch.manual_seed(1)
    body = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 5)
    )
    body[1].running_mean.uniform_(-0.2, 0.2)
    body[1].running_var.uniform_(0.05, 0.2)
    return body


def adapted(text: str) -> AdaptedModel:
    model = adapt_model(as_model(small_network(), name="net"), text)
    assert isinstance(model, StatefulModel)
    assert isinstance(model, AdaptedModel)
    if model.source_images:
        model.use_source_images(IMAGES[3])
    return model


@pytest.mark.parametrize("text", TEXTS)
def test_a_restored_state_continues_identically(text: str) -> None:
    model = adapted(text)
    first = model.adapt(IMAGES[0])
    state = model.state()
    rest = [model.adapt(IMAGES[1]), model.adapt(IMAGES[2])]
    other = adapted(text)
    other.load_state(state)
    assert all(np.array_equal(a, b) for a, b in zip(rest, [other.adapt(i) for i in IMAGES[1:3]], strict=True))
    assert other.passes == model.passes
    model.reset()
    assert np.array_equal(model.adapt(IMAGES[0]), first)
    if not text.startswith("bn"):  # the source weights are untouched, and the method has an effect
        assert not np.array_equal(model.adapt(IMAGES[0]), first)


def test_batch_statistics_without_prior_are_those_of_training_mode() -> None:
    module = small_network()
    x = torch.from_numpy(IMAGES[0]).movedim(-1, 1).float() / 255
    with torch.no_grad():
        expected = module.train()(x).numpy()
        plain = small_network().eval()(x).numpy()
    assert np.allclose(adapted("bn").adapt(IMAGES[0]), expected, atol=1e-4)
    assert np.allclose(adapted("bn:prior=1e9").adapt(IMAGES[0]), plain, atol=1e-3)


def test_the_prior_weighs_images() -> None:
    source = small_network()
    x = torch.from_numpy(IMAGES[0]).movedim(-1, 1).float() / 255
    with torch.no_grad():
        before = source[0](x)
        weight, axes = 8 / (8 + len(x)), (0, 2, 3)
        source[1].running_mean.mul_(weight).add_(before.mean(axes), alpha=1 - weight)
        source[1].running_var.mul_(weight).add_(before.var(axes, unbiased=False), alpha=1 - weight)
        expected = source.eval()(x).numpy()
    assert np.allclose(adapted("bn:prior=8").adapt(IMAGES[0]), expected, atol=1e-4)


def test_tent_is_a_step_of_adam_on_the_entropy() -> None:
    module = small_network()
    module[1].track_running_stats, module[1].running_mean, module[1].running_var = False, None, None
    chosen = list(module[1].parameters())
    optimizer = torch.optim.Adam(chosen, 0.01)
    found = []
    for images in IMAGES[:3]:
        logits = module(torch.from_numpy(images).movedim(-1, 1).float() / 255)
        found.append(logits.detach().numpy())
        loss = torch.distributions.Categorical(logits=logits).entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model = adapted("tent:lr=0.01")
    assert all(np.allclose(model.adapt(a), b, atol=1e-4) for a, b in zip(IMAGES, found, strict=False))
    assert model.passes == [72, 72]


def test_eata_skips_unreliable_images_and_stays_near_the_source() -> None:
    nothing = adapted("eata:lr=0.01,e_margin=0,fisher_size=0")
    statistics = adapted("bn")
    for images in IMAGES[:3]:
        assert np.array_equal(nothing.adapt(images), statistics.adapt(images))
    assert nothing.passes == [72, 0]

    def moved(text: str) -> float:
        model = adapted(text)
        before = model.state()
        for images in IMAGES[:3]:
            model.adapt(images)
        after = model.state()
        return float(sum(np.abs(after[k] - before[k]).sum() for k in before if k.startswith("parameter")))

    free = "eata:lr=0.05,e_margin=1,d_margin=1"
    assert moved(f"{free},fisher_alpha=1,fisher_size=24") < moved(f"{free},fisher_size=0")


def test_sar_recovers_from_a_collapse() -> None:
    held = adapted("sar:lr=0.05,e_margin=1,recovery=100")  # every loss is below, so it is always reset
    start = held.state()
    held.adapt(IMAGES[0])
    after = held.state()
    assert all(np.array_equal(start[k], after[k]) for k in start if k.startswith("parameter"))
    assert held.passes == [48, 48]


def test_cotta_predicts_with_the_teacher_and_restores() -> None:
    model = adapted("cotta:views=0,restore=1,momentum=1")
    statistics = adapted("bn")
    for images in IMAGES[:2]:
        assert np.allclose(model.adapt(images), statistics.adapt(images), atol=1e-5)


def test_names_and_digests_identify_the_options() -> None:
    plain = as_model(small_network(), name="net")
    models = [adapt_model(plain, text) for text in ("bn", "tent", "tent:lr=0.01", "tent:optimizer=sgd")]
    assert [one.spec.name for one in models] == ["net+bn", "net+tent", "net+tent-lr0.01", "net+tent-sgd"]
    assert len({plain.spec.digest, *(one.spec.digest for one in models)}) == 5
    assert adapt_model(plain, "tent:lr=0.001").spec.digest == models[1].spec.digest
    assert adapt_model(plain, "source") is plain


def test_the_network_itself_does_not_change() -> None:
    module = small_network()
    before = copy.deepcopy(module.state_dict())
    for name in METHODS:
        model = adapt_model(as_model(module), name)
        model(IMAGES[0])
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("tend", "tent"),
        ("tent:rate=1", "rate"),
        ("tent:lr=x", "lr"),
        ("tent:lr=-1", "lr"),
        ("tent:lr=nan", "lr"),
    ],
)
def test_an_invalid_method_is_named(text: str, word: str) -> None:
    with pytest.raises(OptionError, match=word):
        load_model("onnx:missing.onnx", adapt=text)


def test_only_torch_modules_with_normalization_adapt() -> None:
    with pytest.raises(ModelError, match="cannot be adapted"):
        load_model("demo:digits", adapt="tent")
    with pytest.raises(ModelError, match="normalization"):
        adapt_model(as_model(nn.Sequential(nn.Flatten(), nn.Linear(768, 2))), "tent")
    with pytest.raises(OptionError, match="filter"):
        with_filter(adapted("tent"), "clahe")
