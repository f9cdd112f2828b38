"""Streams: order of images and conditions, text form, pixels."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import numpy as np
import pytest

from beaufort import BeaufortError
from beaufort.suites import Suite, SuiteError, get_suite
from beaufort.suites.conditions import Condition
from beaufort.suites.difficulty import difficulty_of
from beaufort.suites.streams import ORDERS, Stream, split_id

LABELS = np.arange(120) % 10


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_round_trips_and_shows_each_image_once_in_each_segment(order: str) -> None:
    text = f"x/stream@cifar/{order},batch=32,seed=3"
    condition = Condition.parse(text)
    assert str(condition) == text
    stream = condition.shift
    assert isinstance(stream, Stream)
    schedule = stream.schedule(LABELS)
    again = Stream.parse(str(stream)).schedule(LABELS)
    assert np.array_equal(schedule.images, again.images)
    assert np.array_equal(schedule.condition, again.condition)
    assert not np.array_equal(schedule.images, Stream.parse(f"cifar/{order},seed=4").schedule(LABELS).images)
    for start, stop in pairwise(schedule.segments):
        shown, counts = np.unique(schedule.images[start:stop], return_counts=True)
        assert len(shown) == 120
        assert set(counts) == {15 if order == "mixed" else 1}
    sizes = [schedule.batch_at(at) for at in range(schedule.segments[1])]
    assert [size for size in sizes if size] == ([32] * 56 + [8] if order == "mixed" else [32, 32, 32, 24])


def test_orders_differ_in_conditions_and_resets() -> None:
    def of(text: str) -> tuple[list[str], frozenset[int]]:
        schedule = Stream.parse(f"cifar/{text}").schedule(LABELS)
        shown = [schedule.conditions[number] for number in schedule.condition]
        return [
            one for one, before in zip(shown, [None, *shown], strict=False) if one != before
        ], schedule.resets

    two = "of=fog+snow,batch=60"
    assert of(f"continual,{two}") == (["fog@5", "snow@5"], frozenset({0}))
    assert of(f"episodic,{two},severity=2.5") == (["fog@2.5", "snow@2.5"], frozenset({0, 120}))
    assert of(f"recurring,{two},rounds=2")[0] == ["fog@5", "snow@5"] * 2
    assert of(f"gradual,{two},severity=3")[0] == [
        f"{n}@{s}" for n in ("fog", "snow") for s in (1, 2, 3, 2, 1)
    ]
    assert of(f"continual,{two},reset=3")[1] == {0, 180}
    mixed, _ = of(f"mixed,{two}")
    assert len(mixed) > 80  # of 240 images


def test_dirichlet_makes_neighbors_share_their_class() -> None:
    def same(text: str) -> float:
        images = Stream.parse(f"cifar/continual,of=fog,{text}").schedule(LABELS).images
        return float((np.diff(LABELS[images]) == 0).mean())

    assert same("seed=0") < 0.2
    assert same("dirichlet=1e6,seed=0") < same("dirichlet=0.1,seed=0")
    assert same("dirichlet=0.1,seed=0") > 0.7


def test_the_order_of_a_stream_never_changes() -> None:
    digest = hashlib.sha256()
    for order in ORDERS:
        schedule = Stream.parse(f"cifar/{order},batch=32,dirichlet=0.1,seed=7").schedule(LABELS)
        digest.update(json.dumps([schedule.images.tolist(), schedule.condition.tolist()]).encode())
    assert digest.hexdigest()[:16] == "5efa23434eb28301"


def test_pixels_are_those_of_the_corruptions_outside_of_a_stream() -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3)).astype(np.uint8)
    condition = Condition.parse("x/stream@cifar/mixed,of=fog+gaussian_noise")
    ids = [
        "0/fog@5/a/0",
        "1/gaussian_noise@5/1",
        "2/fog@5/2",
        "3/fog@5/1",
        "4/gaussian_noise@5/4",
        "5/fog@5/5",
    ]
    made = condition.apply(images, ids=ids, seed=3)
    for image, id, one in zip(made, ids, images, strict=True):
        _, done, name = split_id(id)
        alone = Condition.parse(f"x/{done}").apply(one[None], ids=[name], seed=3, scale="cifar")
        assert np.array_equal(image, alone[0])


def test_facts_change_with_all_that_changes_order_or_pixels() -> None:
    texts = [
        *("continual", "episodic", "continual,severity=4", "continual,of=fog+snow", "continual,batch=64"),
        *("continual,dirichlet=0.1", "continual,reset=5", "continual,reset=condition", "continual,seed=1"),
        *("recurring", "recurring,rounds=2", "drifting", "drifting,error=50"),
    ]
    facts = [Condition.parse(f"x/stream@cifar/{text}").facts(seed=seed) for text in texts for seed in (0, 1)]
    assert len({json.dumps(one, sort_keys=True) for one in facts}) == len(facts)
    plain, full = (
        Condition.parse(f"x/stream@cifar/{one}").facts() for one in ("mixed", "mixed,batch=200,seed=0")
    )
    assert plain == full


def test_a_drifting_stream_stays_near_its_error() -> None:
    found = difficulty_of("cifar")
    names = list(found.single)
    for first in names:
        for second in names:
            if first == second:
                continue
            path = [dict(one.split("@") for one in text.split("+")) for text in found.path(first, second, 40)]
            assert set(path[0]) == {first}
            assert second in path[-1]
            weights = [(float(one.get(first, 0)), float(one.get(second, 0))) for one in path]
            errors = [found.error(first, x, second, y) for x, y in weights]
            assert abs(np.mean(errors) - 40) < 5
            assert max(abs(error - 40) for error in errors) < 15
            assert all(a >= c and b <= d for (a, b), (c, d) in pairwise(weights))


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("continual", "SCALE/ORDER"),
        ("mnist/continual", "scale"),
        ("cifar/random", "random"),
        ("cifar/mixed,batch=0", "batch"),
        ("cifar/mixed,batch=x", "batch"),
        ("cifar/mixed,speed=3", "speed"),
        ("cifar/mixed,seed=1,seed=2", "seed"),
        ("cifar/mixed,reset=condition", "reset"),
        ("cifar/continual,rounds=2", "recurring"),
        ("cifar/continual,error=20", "drifting"),
        ("cifar/continual,of=fogg", "fogg"),
        ("cifar/continual,dirichlet=-1", "dirichlet"),
        ("cifar/drifting,of=fog+snow", "fog"),
        ("imagenet/drifting", "imagenet"),
    ],
)
def test_an_invalid_stream_is_named(level: str, word: str) -> None:
    with pytest.raises(BeaufortError, match=word):
        Condition.parse(f"x/stream@{level}")


def test_suites_of_streams() -> None:
    suite = get_suite("cifar10-c-continual")
    assert suite.streamed
    assert [str(one) for one in suite.conditions()][:2] == [
        "cifar10-test/stream@cifar/continual,batch=200,seed=0",
        "cifar10-test/stream@cifar/continual,batch=200,seed=1",
    ]
    made = get_suite("stream@cifar/continual,batch=200,seeds=5")
    assert made.shifts == suite.shifts
    with pytest.raises(SuiteError, match="clean: false"):
        Suite(name="s", version=1, dataset="d", shifts=made.shifts)
