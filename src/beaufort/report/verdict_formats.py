"""What a gate says: as text for a log, Markdown for a summary, JUnit's XML, and a mapping for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.report.markdown import escape_markdown
from beaufort.results import Check, Decision, Verdict


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """The metric of both models, a line for each check, and the answer."""
    title = metrics[verdict.metric].title
    for note in verdict.notes:
        yield f"note: {note}"
    yield f"{title} of {verdict.model}: {verdict.value:.2%}"
    if verdict.reference is not None:
        yield f"{title} of the reference {verdict.reference}: {verdict.reference_value:.2%}"
    for check in verdict.checks:
        yield f"{check.decision}: {check.demand}: {_measured(check)}; {_reason(verdict, check)}"
    yield f"gate: {verdict.decision} ({_basis(verdict)})"


def verdict_markdown(verdict: Verdict) -> str:
    """A heading and a table, a row for each check."""
    against = "" if verdict.reference is None else f", against {verdict.reference}"
    against += f", on {verdict.dataset}" if verdict.dataset else ""
    lines = [
        f"### {_SIGNS[verdict.decision]} Robustness gate: {verdict.decision}",
        "",
        escape_markdown(f"{verdict.model}{against}; {_basis(verdict)}."),
        "",
        *(text for note in verdict.notes for text in (escape_markdown(note), "")),
        "| answer | demanded | measured | |",
        "|---|---|---|---|",
    ]
    for check in verdict.checks:
        cells = (check.decision, check.demand, _measured(check), _reason(verdict, check))
        lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
    return "\n".join(lines) + "\n\n"


def verdict_junit(verdicts: Sequence[Verdict]) -> bytes:
    """A test case for each check on each data set, as JUnit writes them.

    An undecided check is a failure of the type `undecided`: what cannot be known must not look like success.
    """
    checks = [(verdict, check) for verdict in verdicts for check in verdict.checks]
    failures = sum(check.decision is not Decision.PASSED for _, check in checks)
    counts = {"tests": str(len(checks)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "beaufort gate", **counts})
    for verdict, check in checks:
        on = f"{verdict.dataset}: " if len(verdicts) > 1 else ""
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": _xml(f"beaufort.gate.{verdict.model}"), "name": _xml(f"{on}{check.demand}")},
        )
        told = f"{_measured(check)}; {_reason(verdict, check)}"
        if check.decision is Decision.PASSED:
            ElementTree.SubElement(case, "system-out").text = told
        else:
            failure = {"type": check.decision.value, "message": f"{check.decision}: {told}"}
            ElementTree.SubElement(case, "failure", failure).text = told
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """All of it, ready for JSON; shares, not percent."""
    old = verdict.reference_value
    return {
        "decision": verdict.decision.value,
        "dataset": verdict.dataset,
        "metric": verdict.metric,
        "model": {"name": verdict.model, **vars(verdict.value)},
        "reference": None if old is None else {"name": verdict.reference, **vars(old)},
        "images": verdict.images,
        "clusters": verdict.clusters,
        "notes": list(verdict.notes),
        "checks": [
            {
                "name": check.name,
                "demand": check.demand,
                "decision": check.decision.value,
                **vars(check.estimate),
                "limit": check.limit,
                "bound": "most" if check.upper else "least",
                "rule": check.rule,
                "images_needed": check.images_needed if check.decision is Decision.UNDECIDED else None,
            }
            for check in verdict.checks
        ],
    }


_SIGNS = {Decision.PASSED: "✅", Decision.FAILED: "❌", Decision.UNDECIDED: "❔"}


def _basis(verdict: Verdict) -> str:
    """How many images, and what the intervals are."""
    level = f"{100 * verdict.value.level:g} % intervals"
    images = counted(verdict.images, "image")
    if verdict.clusters == verdict.images:
        return f"{images}, {level}"
    return f"{images} in {counted(verdict.clusters, 'cluster')}, {level} over clusters"


def _measured(check: Check) -> str:
    one = check.estimate
    if check.name != "drop":
        return f"{one:.2%}"
    if one.exact:
        return "no drop, as it is the same model"
    return f"drop {100 * one.value:+z.2f} points [{100 * one.low:+z.2f}, {100 * one.high:+z.2f}]"


def _reason(verdict: Verdict, check: Check) -> str:
    """Why the decision is what it is, and how many images would decide it."""
    if check.rule == "significance":
        if check.decision is Decision.FAILED:
            return "larger than allowed, and more than chance"
        if check.estimate.value > check.limit:
            return "larger than allowed, but it may be chance: the interval contains zero"
        return "not larger than allowed, as measured; the rule does not ask how sure that is"
    if check.decision is not Decision.UNDECIDED:
        side = "kept" if check.decision is Decision.PASSED else "missed"
        return f"the limit is {side} over the whole interval"
    unit = "image" if verdict.clusters == verdict.images else "cluster"
    needed, most = check.images_needed, f"not even a billion {unit}s"
    enough = most if needed is None else f"about {counted(needed, unit)}"
    return f"the limit lies in the interval: {enough} would decide it, if the value stays as measured"


def _xml(text: str) -> str:
    """Text without the characters that XML cannot have."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
