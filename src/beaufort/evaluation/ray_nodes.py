"""Checks of the nodes of a cluster before a run, reported together."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort.data import Problem
from beaufort.evaluation.ray_worker import Payload, WorkerSetup
from beaufort.evaluation.runner import TaskRunner
from beaufort.store import Store

Node = dict[str, Any]
"""Description of a node by Ray."""

_PATIENCE_S = 300.0
"""Timeout of all nodes together, in seconds."""
_MODELS_S = 120.0
"""Time limit for loading models on a node, in seconds; workers report problems of the others."""
_MOST_SHOWN = 10
_NOT_THERE = "Beaufort cannot be imported"


class NodeChecks(NamedTuple):
    """What a node must have, as this machine does."""

    digests: tuple[str, ...]
    """Digests of the models, in order."""
    places: tuple[tuple[int, int], ...]
    """Readable images: index of the source, and index in its dataset."""
    recorded: bool
    """Whether the store has a record of this run."""
    start: int = 0
    """Index of the first model to load; nodes start with different models."""


def check_nodes(setup: WorkerSetup, payload: Any, cpus: float, gpus: float) -> None:
    """Raise an error that lists what is missing on which node.

    Args:
        setup: the run, of which the store has a record.
        payload: Ray's reference to the pickled setup.
        cpus: processors per worker.
        gpus: GPUs per worker.
    """
    nodes = _nodes()
    able = [node for node in nodes if _fits(node["Resources"], cpus, gpus)]
    if not able:
        offered = ", ".join(f"{_name(node)}: {_count(node, 'CPU')}, {_count(node, 'GPU')}" for node in nodes)
        raise OptionError(
            f"a worker requires {cpus:g} CPUs and {gpus:g} GPUs, and no node of the cluster has them: "
            f"{offered}"
        )
    others = _on_nodes(_version_function(), [()] * len(able), able, 0)
    missing = list(_problems(able, map(_version_problem, others)))
    if not missing:
        wanted = _checks(setup)
        starts = [len(setup.runner.models) * number // len(able) for number in range(len(able))]
        calls = [(payload, wanted._replace(start=start)) for start in starts]
        missing = list(_problems(able, _on_nodes(find_missing, calls, able, gpus)))
    if missing:
        more = f"\n… and {len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""
        raise OptionError(
            "cannot start the run: nodes of the cluster lack requirements\n"
            + "\n".join(missing[:_MOST_SHOWN])
            + more
        )


def _on_nodes(
    function: Callable[..., list[str]], calls: Sequence[tuple[Any, ...]], nodes: Sequence[Node], gpus: float
) -> Iterator[list[str]]:
    """Yield the result of a function on each node, or the error."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    pending = [
        ray.remote(function)
        .options(
            num_cpus=0,
            num_gpus=gpus,
            max_retries=1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        .remote(*call)
        for node, call in zip(nodes, calls, strict=True)
    ]
    until = time.monotonic() + _PATIENCE_S
    for result in pending:
        try:
            yield ray.get(result, timeout=max(0.1, until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            yield [f"did not respond within {_PATIENCE_S:g} seconds; is it busy with another job?"]
        except ray.exceptions.RayError as error:
            yield [str(error).strip().splitlines()[-1]]


def _problems(nodes: Sequence[Node], found: Iterable[list[str]]) -> Iterator[str]:
    """Yield the problems of each node that is still part of the cluster."""
    results = list(found)
    there = {node["NodeID"] for node in _nodes()}
    for node, texts in zip(nodes, results, strict=True):
        if node["NodeID"] in there:
            yield from (f"node {_name(node)}: {text}" for text in texts)


def _nodes() -> list[Node]:
    """Return the nodes that are alive."""
    import ray

    listed: Any = ray.nodes  # not typed
    return [node for node in listed() if node["Alive"]]


def _version_function() -> Callable[[], list[str]]:
    """Return a function that Ray pickles by value, because Beaufort may be missing on the node."""

    def version() -> list[str]:
        try:
            import beaufort
        except ImportError as error:
            return [f"{_NOT_THERE}: {error}"]
        return [beaufort.__version__]

    return version


def _version_problem(result: list[str]) -> list[str]:
    from beaufort import __version__

    (found,) = result
    if found == __version__:
        return []
    if " " in found:
        return [found]
    return [f"has Beaufort {found}, but the run is started with {__version__}; install the same version"]


def _fits(resources: dict[str, Any], cpus: float, gpus: float) -> bool:
    return bool(resources.get("CPU", 0) >= cpus and resources.get("GPU", 0) >= gpus)


def _count(node: Node, kind: str) -> str:
    return f"{node['Resources'].get(kind, 0):g} {kind}s"


def _name(node: Node) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _checks(setup: WorkerSetup) -> NodeChecks:
    runner = setup.runner
    readable = tuple(
        (number, place)
        for number, source in enumerate(runner.sources)
        for place in dict.fromkeys((0, source.count // 2, source.count - 1))
        if not isinstance(source.images(place), Problem)
    )
    digests = tuple(model.spec.digest for model in runner.models)
    return NodeChecks(digests, readable, bool(setup.store.runs()))


def find_missing(payload: Payload, wanted: NodeChecks) -> list[str]:
    """Return what is missing on this node."""
    runner, store, _ = payload.open()
    return list(itertools.chain(_images(runner, wanted), _store(store, wanted), _models(runner, wanted)))


def _models(runner: TaskRunner, wanted: NodeChecks) -> Iterator[str]:
    until = time.monotonic() + _MODELS_S
    known = list(zip(runner.models, wanted.digests, strict=True))
    for model, digest in known[wanted.start :] + known[: wanted.start]:
        if model.text is None:
            continue  # it is part of the payload
        if time.monotonic() > until:
            return
        try:
            found = model.load().spec.digest
        except Exception as error:  # whatever an adapter or a library raises
            yield f"cannot load the model {model.text!r}: {error}"
            continue
        if found != digest:
            yield f"the model {model.text!r} has different weights (digest {found[:12]}, not {digest[:12]})"
        model.unload()


def _images(runner: TaskRunner, wanted: NodeChecks) -> Iterator[str]:
    reported: set[int] = set()
    for number, place in wanted.places:
        source = runner.sources[number]
        try:
            found = source.images(place)
        except Exception as error:  # a dataset can raise any error
            found = Problem(source.dataset.ids[place], str(error))
        if isinstance(found, Problem) and number not in reported:
            reported.add(number)
            yield f"cannot read the image {found.id} of {source.dataset.name}: {found.message}"


def _store(store: Store, wanted: NodeChecks) -> Iterator[str]:
    try:
        known = bool(store.runs())
    except Exception as error:  # a store can raise any error
        yield f"cannot read the store {store.location}: {error}"
        return
    if wanted.recorded and not known:
        yield f"the store {store.location} is a different one: it lacks the record of this run"
