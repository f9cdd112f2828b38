"""What every node of a cluster must have before a job starts: looked for on each, told together."""

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
"""As Ray describes it."""

_PATIENCE_S = 300.0
"""How long all nodes together may take to answer."""
_MODELS_S = 120.0
"""How long a node looks at models; what is wrong with others is told when a worker loads them."""
_TOLD = 10
_NOT_THERE = "Beaufort cannot be imported"


class NodeChecks(NamedTuple):
    """What a node is asked to look for, of things that this machine has."""

    digests: tuple[str, ...]
    """Of the models, in their order."""
    places: tuple[tuple[int, int], ...]
    """Images that can be read here: the source, and the place in its data set."""
    recorded: bool
    """Whether the store has a record of this run."""
    start: int = 0
    """The model that is looked at first; nodes begin at different ones, if there are too many for each."""


def check_nodes(setup: WorkerSetup, payload: Any, cpus: float, gpus: float) -> None:
    """Raise an error that says what is missing on which node, if anything is.

    Args:
        setup: the run, of which the store has a record.
        payload: Ray's reference to it, pickled.
        cpus: processors that a worker takes.
        gpus: GPUs that a worker takes.
    """
    nodes = _nodes()
    able = [node for node in nodes if _fits(node["Resources"], cpus, gpus)]
    if not able:
        offered = ", ".join(f"{_name(node)}: {_count(node, 'CPU')}, {_count(node, 'GPU')}" for node in nodes)
        raise OptionError(
            f"a worker needs {cpus:g} CPUs and {gpus:g} GPUs, and no node of the cluster has them ({offered})"
        )
    others = _answers(_versions_there(), [()] * len(able), able, 0)
    missing = list(_told(able, map(_other_version, others)))
    if not missing:
        wanted = _wanted(setup)
        starts = [len(setup.runner.models) * number // len(able) for number in range(len(able))]
        calls = [(payload, wanted._replace(start=start)) for start in starts]
        missing = list(_told(able, _answers(look_around, calls, able, gpus)))
    if missing:
        more = f"\n… and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise OptionError(
            "nodes of the cluster lack what the job needs; nothing was started:\n"
            + "\n".join(missing[:_TOLD])
            + more
        )


def _answers(
    function: Callable[..., list[str]], calls: Sequence[tuple[Any, ...]], nodes: Sequence[Node], gpus: float
) -> Iterator[list[str]]:
    """What a function returns on each node; what is wrong if it returns nothing."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = [
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
    for answer in asked:
        try:
            yield ray.get(answer, timeout=max(0.1, until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            yield [f"does not answer within {_PATIENCE_S:g} seconds; is it busy with another job?"]
        except ray.exceptions.RayError as error:
            yield [str(error).strip().splitlines()[-1]]


def _told(nodes: Sequence[Node], found: Iterable[list[str]]) -> Iterator[str]:
    """What is wrong with which node; one that has left the cluster meanwhile lacks nothing."""
    answers = list(found)
    there = {node["NodeID"] for node in _nodes()}
    for node, texts in zip(nodes, answers, strict=True):
        if node["NodeID"] in there:
            yield from (f"node {_name(node)}: {text}" for text in texts)


def _nodes() -> list[Node]:
    """Those that are there."""
    import ray

    listed: Any = ray.nodes  # not typed
    return [node for node in listed() if node["Alive"]]


def _versions_there() -> Callable[[], list[str]]:
    """A function that Ray sends as it is, and that needs nothing of ours where it runs."""

    def version() -> list[str]:
        try:
            import beaufort
        except ImportError as error:
            return [f"{_NOT_THERE}: {error}"]
        return [beaufort.__version__]

    return version


def _other_version(answer: list[str]) -> list[str]:
    from beaufort import __version__

    (found,) = answer
    if found == __version__:
        return []
    if " " in found:
        return [found]
    return [f"has Beaufort {found}, and the job comes from {__version__}; install the same"]


def _fits(resources: dict[str, Any], cpus: float, gpus: float) -> bool:
    return bool(resources.get("CPU", 0) >= cpus and resources.get("GPU", 0) >= gpus)


def _count(node: Node, kind: str) -> str:
    return f"{node['Resources'].get(kind, 0):g} {kind}s"


def _name(node: Node) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _wanted(setup: WorkerSetup) -> NodeChecks:
    runner = setup.runner
    readable = tuple(
        (number, place)
        for number, source in enumerate(runner.sources)
        for place in dict.fromkeys((0, source.count // 2, source.count - 1))
        if not isinstance(source.images(place), Problem)
    )
    digests = tuple(model.spec.digest for model in runner.models)
    return NodeChecks(digests, readable, bool(setup.store.runs()))


def look_around(payload: Payload, wanted: NodeChecks) -> list[str]:
    """What is missing where this runs."""
    runner, store, _ = payload.open()
    return list(itertools.chain(_images(runner, wanted), _store(store, wanted), _models(runner, wanted)))


def _models(runner: TaskRunner, wanted: NodeChecks) -> Iterator[str]:
    until = time.monotonic() + _MODELS_S
    known = list(zip(runner.models, wanted.digests, strict=True))
    for model, digest in known[wanted.start :] + known[: wanted.start]:
        if model.text is None:
            continue  # it travels with the job
        if time.monotonic() > until:
            return
        try:
            found = model.load().spec.digest
        except Exception as error:  # whatever an adapter or a library raises
            yield f"the model {model.text!r} cannot be loaded: {error}"
            continue
        if found != digest:
            both = f"digests {found[:12]} and {digest[:12]}"
            yield f"the model {model.text!r} has other weights than here ({both})"
        model.unload()


def _images(runner: TaskRunner, wanted: NodeChecks) -> Iterator[str]:
    told: set[int] = set()
    for number, place in wanted.places:
        source = runner.sources[number]
        try:
            found = source.images(place)
        except Exception as error:  # whatever a data set of anyone's raises
            found = Problem(source.dataset.ids[place], str(error))
        if isinstance(found, Problem) and number not in told:
            told.add(number)
            yield f"the image {found.id} of {source.dataset.name} cannot be read: {found.message}"


def _store(store: Store, wanted: NodeChecks) -> Iterator[str]:
    try:
        known = bool(store.runs())
    except Exception as error:  # whatever a store of anyone's raises
        yield f"the store {store.location} cannot be read: {error}"
        return
    if wanted.recorded and not known:
        yield f"the store {store.location} is another one than here: the record of this run is not in it"
