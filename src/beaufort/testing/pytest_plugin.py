"""A pytest plug-in: the gate as a fixture.

It is installed with Beaufort:

```python
def test_robust(beaufort_gate):
    beaufort_gate("my_net", reference="released_net", store="results", max_drop=0.01)
```

The test passes or fails as the gate does. An undecided gate fails the test too, unless the option
`beaufort_undecided` in pytest's configuration is `skip` or `pass`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from beaufort.results import Results, Run, Verdict

_UNDECIDED = ("fail", "skip", "pass")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addini(
        "beaufort_undecided",
        "Outcome of a test whose gate is undecided because there are too few images: fail, skip or pass.",
        default="fail",
    )


@pytest.fixture(scope="session")
def beaufort_gate(request: pytest.FixtureRequest) -> Callable[..., Verdict | list[Verdict]]:
    """Return a function that checks a model as `beaufort gate` does, and fails the test if the gate fails."""
    undecided = str(request.config.getini("beaufort_undecided"))
    if undecided not in _UNDECIDED:
        raise pytest.UsageError(f"beaufort_undecided must be fail, skip or pass, got {undecided!r}")

    def check(
        model: str | Results | Run | None = None,
        reference: str | Results | Run | None = None,
        *,
        store: str = "results",
        suite: str | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> Verdict | list[Verdict]:
        """Check a model against a reference model, against limits, or both.

        Args:
            model: the name of a model in `store`, the path of a store of one model, `STORE::MODEL`, or
                results or a run in memory; the only model of `store` if None.
            reference: the reference, likewise.
            store: the store of the names.
            suite: the suite of the store's last run if None.
            seed: the seed of the store's last run if None.
            **options: options of `beaufort.gate`, such as `max_drop`, `require`, `min_clean`, `min_worst`.
        """
        __tracebackhide__ = True
        from beaufort.report.verdict_formats import verdict_lines
        from beaufort.results import Decision, gate_parts, worst_decision

        new = _parts(store if model is None else model, "model", store, suite, seed)
        old = None if reference is None else _parts(reference, "reference", store, suite, seed)
        verdicts = gate_parts(new, old, **options)
        text = "\n".join(line for verdict in verdicts for line in verdict_lines(verdict))
        decision = worst_decision(verdicts)
        if decision is Decision.FAILED or (decision is Decision.UNDECIDED and undecided == "fail"):
            pytest.fail(text, pytrace=False)
        if decision is Decision.UNDECIDED and undecided == "skip":
            pytest.skip(text)
        return verdicts[0] if len(verdicts) == 1 else verdicts

    return check


def _parts(target: Any, role: str, store: str, suite: str | None, seed: int | None) -> tuple[Results, ...]:
    from beaufort.results import Results, Run, open_targets

    if isinstance(target, Run):
        return target.predictions
    if isinstance(target, Results):
        return (target,)
    return open_targets([(str(target), role)], store, suite=suite, seed=seed)[0]
