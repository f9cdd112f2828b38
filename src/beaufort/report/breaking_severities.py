"""How much damage a model takes before it has lost half of what it could do."""

from __future__ import annotations

from beaufort.corruptions import Severity
from beaufort.results import ModelScores


def breaking_points(model: ModelScores) -> dict[str, Severity | None] | None:
    """For each corruption the first severity at which accuracy is surely under half of the clean one.

    Surely means that the whole interval is below half of the clean accuracy's lower end; a corruption that
    never does it has None. Without clean images, with one published severity a corruption, or if the clean
    accuracy may be 0, there is nothing to say.
    """
    severities = {condition.severity for condition in model.conditions if not condition.clean}
    if model.clean is None or not model.clean.low or severities <= {None}:
        return None
    half = model.clean.low / 2
    found: dict[str, Severity | None] = {}
    for condition, accuracy in model.conditions.items():
        if condition.corruption is None:
            continue
        found.setdefault(condition.corruption, None)
        if found[condition.corruption] is None and accuracy.high < half:
            found[condition.corruption] = condition.severity
    return found
