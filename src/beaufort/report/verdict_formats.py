"""Results of a gate as lines of text, Markdown, JUnit XML, and a mapping for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from beaufort._core.text import counted, without_folders
from beaufort.metrics import metrics
from beaufort.report.markdown import escape_markdown
from beaufort.report.wording import value_and_bounds
from beaufort.report.wording import words as words_of
from beaufort.results import Decision, ModelVersion, Verdict, VerdictDetails

UNDECIDED = ("exit-3", "pass", "fail")
"""How an undecided gate can count: with its own exit code, as passed, or as failed."""


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the metric and the version of both models, a line for each check, and the decision."""
    title = metrics[verdict.metric].title
    for note in verdict.notes:
        yield f"note: {note}"
    yield f"{title} of {verdict.model}: {verdict.value:.2%}"
    if verdict.reference is not None:
        yield f"{title} of the reference {verdict.reference}: {verdict.reference_value:.2%}"
    if verdict.details is not None:
        for name, version in zip(_version_names(verdict.details), verdict.details.versions, strict=True):
            if words := _version_words(version):
                yield f"version of {name}: {words}"
    for check in verdict.checks:
        yield f"{check.decision}: {check.requirement}: {check.statement}; {verdict.reason(check)}"
    yield f"gate: {verdict.decision} ({_basis(verdict)})"
    if verdict.decision is Decision.UNDECIDED:
        yield f"to decide: {'; '.join(_ways_to_decide(verdict))}"


def _ways_to_decide(verdict: Verdict) -> Iterator[str]:
    """Yield what turns an undecided gate into a decision."""
    open_checks = [check for check in verdict.checks if check.decision is Decision.UNDECIDED]
    needed = [check.images_needed for check in open_checks]
    if None not in needed and verdict.clusters == verdict.images:
        yield f"evaluate about {max(filter(None, needed)):,} images"
    if any(check.name == "drop" for check in open_checks):
        high = max(check.estimate.high for check in open_checks if check.name == "drop")
        yield f"--max-drop {math.ceil(1000 * high) / 10:g} passes with these images"
    if any(check.name == "flips" for check in open_checks):
        high = max(check.estimate.high for check in open_checks if check.name == "flips")
        yield f"--max-flips {math.ceil(1000 * high) / 10:g} passes with these images"
    yield "--undecided pass or fail counts it as one of them"


def _version_words(version: ModelVersion) -> str:
    """Return what identifies the version of a model; empty if nothing is known."""
    parts = (
        without_folders(version.source),
        version.digest[:19],
        f"commit {version.commit[:12]}" if version.commit else "",
    )
    return ", ".join(filter(None, parts))


def _version_names(details: VerdictDetails) -> list[str]:
    """Return different names of the new model and the reference, also if both have the same name."""
    names = [version.name for version in details.versions]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({role})" for name, role in zip(names, ("new", "reference"), strict=True)]


def verdict_markdown(verdict: Verdict) -> str:
    """Return a heading, a table of the checks, the versions of the models, and a table by corruption."""
    against = "" if verdict.reference is None else f", compared with the reference {verdict.reference}"
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
    if verdict.decision is Decision.UNDECIDED:
        lines += ["", escape_markdown(f"To decide: {'; '.join(_ways_to_decide(verdict))}.")]
    if verdict.details is not None:
        lines += ["", *_version_lines(verdict.details), *_change_lines(verdict.details)]
    return "\n".join(lines) + "\n\n"


def _version_lines(details: VerdictDetails) -> Iterator[str]:
    for name, version in zip(_version_names(details), details.versions, strict=True):
        if words := _version_words(version):
            yield f"- {escape_markdown(name)}: {escape_markdown(words)}"


def _change_lines(details: VerdictDetails) -> Iterator[str]:
    """Yield a folded table of the error under each corruption."""
    names = [escape_markdown(name) for name in _version_names(details)]
    more = ["difference in points"] if len(names) > 1 else []
    yield from ("", "<details><summary>Error by corruption, in percent</summary>", "")
    yield f"| corruption | {' | '.join([*names, *more])} |"
    yield f"|---|{'---:|' * len([*names, *more])}"
    for change in details.changes:
        cells = [" ".join(value_and_bounds(change.error))]
        if change.reference is not None and change.difference is not None:
            value, bounds = value_and_bounds(change.difference)
            significant = change.difference.low > 0 or change.difference.high < 0
            shown = f"{'+' if change.difference.value > 0 else ''}{value} {bounds}".rstrip()
            cells += [" ".join(value_and_bounds(change.reference)), f"**{shown}**" if significant else shown]
        yield f"| {escape_markdown(words_of(change.corruption))} | {' | '.join(cells)} |"
    if more:
        yield from ("", f"The difference is {names[0]} minus {names[1]}; bold if significant (Bonferroni).")
    yield from ("", "</details>")


def verdict_junit(verdicts: Sequence[Verdict], undecided: str = UNDECIDED[0]) -> bytes:
    """Return JUnit XML with a test case for each check on each dataset.

    An undecided check is a failure of the type `undecided`, or is skipped if `undecided` is `pass`.
    """
    checks = [(verdict, check) for verdict in verdicts for check in verdict.checks]
    skipped = sum(check.decision is Decision.UNDECIDED for _, check in checks) if undecided == "pass" else 0
    failures = sum(check.decision is not Decision.PASSED for _, check in checks) - skipped
    counts = {"tests": str(len(checks)), "failures": str(failures), "errors": "0"}
    counts |= {"skipped": str(skipped)} if skipped else {}
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
        elif check.decision is Decision.UNDECIDED and undecided == "pass":
            ElementTree.SubElement(case, "skipped", {"message": f"{check.decision}: {text}"})
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
        "always_valid": verdict.always_valid,
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
    kind = "always-valid " if verdict.always_valid else ""
    level = f"{100 * verdict.value.level:g} % {kind}intervals"
    images = counted(verdict.images, "image")
    if verdict.clusters == verdict.images:
        return f"{images}, {level}"
    return f"{images} in {counted(verdict.clusters, 'cluster')}, {level} over clusters"


def _xml(text: str) -> str:
    """Replace characters that XML does not allow."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
