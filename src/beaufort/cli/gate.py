"""`beaufort gate`: a check for CI."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.text import comma_list, printable
from beaufort._core.validation import validate_choice, validate_number
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    Json,
    MaxDrop,
    MaxFlips,
    Metric,
    Reference,
    Seed,
    Store,
    Suite,
    parse_keys,
    parse_number,
    read_column,
)

if TYPE_CHECKING:
    from beaufort.results import Verdict

_SUMMARY = "GITHUB_STEP_SUMMARY"


def gate(
    result: Annotated[
        str | None,
        typer.Argument(
            help="The new result: a MODEL of --store, a STORE of one model, or STORE::MODEL; the only model "
            "of --store if not given."
        ),
    ] = None,
    *,
    reference: Reference = None,
    store: Store = "results",
    max_drop: MaxDrop = 1.0,
    max_flips: MaxFlips = None,
    rule: Annotated[
        str,
        typer.Option(
            help="Rule for the drop. noninferiority: passed only if a larger drop is ruled out. "
            "significance: failed only if the drop is larger and significantly above zero; never undecided."
        ),
    ] = "noninferiority",
    metric: Metric = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERCENT,KEY=PERCENT,…",
            help="Largest allowed mCE or smallest allowed accuracy of --metric. Keys: clean=PERCENT and "
            "worst=PERCENT for the accuracy on clean images and under the worst corruption; "
            "lac@SEVERITY=PERCENT (or aps, raps) for the coverage of prediction sets.",
        ),
    ] = None,
    suite: Suite = None,
    seed: Seed = None,
    baseline: Baseline = None,
    cluster_by: ClusterBy = None,
    undecided: Annotated[
        str,
        typer.Option(
            help="What an undecided gate counts as: exit-3 (its own exit code, and a failure in JUnit), pass "
            "or fail."
        ),
    ] = "exit-3",
    always_valid: Annotated[
        bool,
        typer.Option(
            "--always-valid",
            help="Use confidence sequences, whose intervals stay valid if the gate is repeated while images "
            "are added in random order, as by `beaufort run --precision`.",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(help="JUnit XML file to write, with a test case for each check.")
    ] = None,
    github_summary: Annotated[
        bool, typer.Option("--github-summary", help=f"Append a table to the file named by ${_SUMMARY}.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a model against limits, for CI: passed, failed or undecided.

    `beaufort gate --store results --reference main-results --max-drop 1.0`

    `beaufort gate my_net --require clean=75,worst=30`

    `beaufort gate my_net_int8 --reference my_net --max-flips 1`

    `beaufort gate my_net --require lac@3=85`

    Exit code 0, passed: the whole 95 % interval of each check meets its limit. 1, failed: the whole interval
    of a check misses its limit. 2, error: results are missing, damaged or cannot be compared (different data,
    seed or suite). 3, undecided: an interval contains its limit, and more images are needed; `--undecided`
    counts it as passed or failed instead.
    """
    from beaufort.report.verdict_formats import UNDECIDED
    from beaufort.results import worst_decision

    try:
        validate_choice("undecided", undecided, UNDECIDED)
        summary = _summary_file() if github_summary else None
        floors = [part for text in require or () for part in comma_list(text) if "@" in part]
        limits = _requirements(require, floors)
        if max_flips is not None and reference is None:
            raise OptionError("--max-flips requires --reference")
        verdicts = _judged(
            result,
            reference,
            store,
            suite,
            seed,
            max_drop=max_drop / 100,
            max_flips=None if max_flips is None else max_flips / 100,
            rule=rule,
            metric=metric,
            require=limits.get("metric"),
            min_clean=limits.get("clean"),
            min_worst=limits.get("worst"),
            floors={name: limits[name] for name in limits if "@" in name} or None,
            baseline=baseline,
            clusters=read_column(cluster_by),
            always_valid=always_valid,
        )
        _write(verdicts, junit, summary, undecided)
        _show(verdicts, as_json)
    except BeaufortError:
        raise
    except Exception:  # Python would end with 1, and that means "failed"
        typer.echo(f"{traceback.format_exc()}beaufort: the gate crashed with the error above", err=True)
        raise typer.Exit(2) from None
    unknown = {"exit-3": 3, "pass": 0, "fail": 1}[undecided]
    raise typer.Exit({"passed": 0, "failed": 1, "undecided": unknown}[worst_decision(verdicts)])


def _requirements(texts: list[str] | None, floors: list[str]) -> dict[str, float]:
    """Return the percentages of `--require` as fractions."""
    keys = ["clean", "worst", *(part.partition("=")[0] for part in floors)]
    values = parse_keys("--require", texts, keys, unnamed="metric")
    return {
        key: validate_number(
            f"{key} in --require", parse_number("--require", key, text), 0, None if key == "metric" else 100
        )
        / 100
        for key, text in values.items()
    }


def _judged(
    result: str | None, reference: str | None, store: str, suite: str | None, seed: int | None, **options: Any
) -> list[Verdict]:
    """Return a verdict for each dataset of the suite."""
    from beaufort.results import gate_parts, open_targets

    targets = [(store if result is None else result, "model")]
    targets += [] if reference is None else [(reference, "reference")]
    new, *old = open_targets(targets, store, suite=suite, seed=seed)
    verdicts = gate_parts(new, old[0] if old else None, **options)
    checked = {verdict.dataset for verdict in verdicts}
    for part in new:
        if not old and part.dataset not in checked:
            typer.echo(f"note: no limit applies to {printable(part.dataset)}", err=True)
    return verdicts


def _summary_file() -> Path:
    if not (name := os.environ.get(_SUMMARY)):
        raise OptionError(f"--github-summary needs a file in ${_SUMMARY}, which GitHub Actions sets")
    return Path(name)


def _write(verdicts: list[Verdict], junit: Path | None, summary: Path | None, undecided: str) -> None:
    from beaufort._core.files import write_output
    from beaufort.report.verdict_formats import verdict_junit, verdict_markdown

    try:
        if junit is not None:
            write_output(junit, verdict_junit(verdicts, undecided))
        if summary is not None:
            with summary.open("a", encoding="utf-8") as file:
                file.write("".join(map(verdict_markdown, verdicts)))
    except OSError as error:
        raise OptionError(f"cannot write {error.filename}: {error.strerror or error}") from None


def _show(verdicts: list[Verdict], as_json: bool) -> None:
    from beaufort.report.verdict_formats import verdict_dict, verdict_lines
    from beaufort.results import worst_decision

    if as_json:
        found = [verdict_dict(verdict) for verdict in verdicts]
        several = {"decision": worst_decision(verdicts), "parts": found}
        typer.echo(json.dumps(found[0] if len(found) == 1 else several, indent=2))
        return
    for verdict in verdicts:
        if len(verdicts) > 1:
            typer.echo(f"== {printable(verdict.dataset)}")
        typer.echo("\n".join(map(printable, verdict_lines(verdict))))
    if len(verdicts) > 1:
        typer.echo(f"gate, all datasets: {worst_decision(verdicts)}")
