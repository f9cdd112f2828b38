"""The plan on paper adds up: what is simulated is what the scheduler would do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cluster_plan import Job, Simulation, Times

JOB = Job(models=12, conditions=20, images=4000)
QUICK = Times(spread=0.0, load=0.0, report=0.0, block=0.0, ticket=0.0, puts=1e12)


def test_workers_divide_the_tasks() -> None:
    out = Simulation(JOB, 4, QUICK).run()
    assert out.written == JOB.models * JOB.conditions * JOB.blocks
    assert out.worked == pytest.approx(JOB.predictions * QUICK.predict)
    assert out.seconds == pytest.approx(out.worked / 4)
    assert (out.loads, out.decoded) == (JOB.models, JOB.models * JOB.blocks)


def test_more_workers_than_models_divide_blocks() -> None:
    out = Simulation(JOB, 24, QUICK).run()
    assert out.seconds == pytest.approx(out.worked / 24)
    assert (out.loads, out.decoded) == (24, JOB.models * JOB.blocks)


@pytest.mark.parametrize("slow", [replace(QUICK, report=0.5), replace(QUICK, puts=10.0)])
def test_full_queue_blocks_workers(slow: Times) -> None:
    """The driver, or the store: the job takes as long as it needs for its part."""
    out = Simulation(JOB, 24, slow).run()
    assert out.seconds > 2 * out.worked / 24
    busy = out.driver if slow.report else out.written / slow.puts
    assert out.seconds == pytest.approx(busy, rel=0.3)
