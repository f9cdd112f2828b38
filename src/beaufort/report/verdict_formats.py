"""Results of a gate as lines of text, Markdown, JUnit XML, and a mapping for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.report.markdown import escape_markdown
from beaufort.results import Decision, Verdict


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the metric of both models, a line for each check, and the decision."""
    title = metrics[verdict.metric].title
    for note in verdict.notes:
        yield f"note: {note}"
    yield f"{title} of {verdict.model}: {verdict.value:.2%}"
    if verdict.reference is not None:
        yield f"{title} of the reference {verdict.reference}: {verdict.reference_value:.2%}"
    for check in verdict.checks:
        yield f"{check.decision}: {check.requirement}: {check.statement}; {verdict.reason(check)}"
    yield f"gate: {verdict.decision} ({_basis(verdict)})"


def verdict_markdown(verdict: Verdict) -> str:
    """Return a heading and a table with a row for each check."""
    against = "" if verdict.reference is None else f", against {verdict.reference}"
    against += f", on {verdict.dataset}" if verdict.dataset else ""
    lines = [
        f"### {_SIGNS[verdict.decision]} Robustness gate: {verdict.decision}",
        "",
        escape_markdown(f"{verdict.model}{against}; {_basis(verdict)}."),
        "",
        *(text for note in verdict.notes for text in (escape_markdown(note), "")),
        "| result | requirement | measured | reason |",
        "|---|---|---|---|",
    ]
    for check in verdict.checks:
        cells = (check.decision, check.requirement, check.statement, verdict.reason(check))
        lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
    return "\n".join(lines) + "\n\n"


def verdict_junit(verdicts: Sequence[Verdict]) -> bytes:
    """Return JUnit XML with a test case for each check on each dataset.

    An undecided check is a failure of the type `undecided`, so that it does not look like success.
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
            {"classname": _xml(f"beaufort.gate.{verdict.model}"), "name": _xml(f"{on}{check.requirement}")},
        )
        text = f"{check.statement}; {verdict.reason(check)}"
        if check.decision is Decision.PASSED:
            ElementTree.SubElement(case, "system-out").text = text
        else:
            failure = {"type": check.decision.value, "message": f"{check.decision}: {text}"}
            ElementTree.SubElement(case, "failure", failure).text = text
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a mapping for JSON; fractions, not percent."""
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
                "demand": check.requirement,
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
    """Return the number of images, and what the intervals are."""
    level = f"{100 * verdict.value.level:g} % intervals"
    images = counted(verdict.images, "image")
    if verdict.clusters == verdict.images:
        return f"{images}, {level}"
    return f"{images} in {counted(verdict.clusters, 'cluster')}, {level} over clusters"


def _xml(text: str) -> str:
    """Replace characters that XML does not allow."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
