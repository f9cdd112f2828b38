"""The paper's conclusions, each with the numbers that bear it out or refute it."""

from __future__ import annotations

from scipy import stats

from beaufort.studies.mnist_c.mnist_models import CLEAN
from beaufort.studies.mnist_c.paper_figures import StudyResults, tuned_means
from beaufort.studies.paper_tables import Claim, Measured, ReproducedTable

_PGD = ("Conv2 (PGD)", "Conv3 (PGD)")


def claims(
    results: StudyResults, fig2: ReproducedTable, fig3: ReproducedTable, fig4: ReproducedTable
) -> list[Claim]:
    """Those that can be looked at with what is there."""
    found = []
    if "Conv1" in fig3.columns and fig3.rows:
        found += _about_conv1(fig2, fig3)
    found += [
        _above_100(title, entry)
        for title, entry in fig2.rows.get("relative_mce_percent", {}).items()
        if title != "Conv1"
    ]
    found += _collapses(fig3)
    found += _about_tuning(results, fig4)
    return found


def _about_conv1(fig2: ReproducedTable, fig3: ReproducedTable) -> list[Claim]:
    clean = fig3.rows[CLEAN]["Conv1"]
    mean = fig2.rows["mean_accuracy_percent"]["Conv1"]
    rows = [row["Conv1"] for name, row in fig3.rows.items() if name != CLEAN]
    rho = spearman([row.value for row in rows], [row.printed or 0.0 for row in rows])
    return [
        Claim("Conv1 is right on at least 99.0 % of the clean digits", _told(clean), clean.value >= 0.99),
        Claim(
            "Conv1's accuracies rank the corruptions like the paper's (Spearman at least 0.85)",
            f"{rho:.3f} over {len(rows)} corruptions",
            rho >= 0.85,
        ),
        Claim(
            "Conv1's mean is within 2.5 points of the paper's 91.21",
            _told(mean),
            abs(mean.value - 0.9121) <= 0.025,
        ),
    ]


def _above_100(title: str, entry: Measured) -> Claim:
    holds = True if entry.low > 1 else False if entry.high < 1 else None
    return Claim(
        f"{title} loses more to the corruptions than Conv1: relative mCE above 100", _told(entry), holds
    )


def _collapses(fig3: ReproducedTable) -> list[Claim]:
    found = []
    for title in _PGD:
        for name in ("brightness", "fog", "stripe"):
            if name in fig3.rows and title in fig3.rows[name]:
                ours, conv1 = fig3.rows[name][title], fig3.rows[name]["Conv1"]
                found.append(
                    Claim(
                        f"{title} collapses under {name}: more than 10 points below Conv1",
                        f"{_told(ours)}, Conv1 {_told(conv1)}",
                        conv1.low - ours.high > 0.1 or (None if conv1.high - ours.low > 0.1 else False),
                    )
                )
    return found


def _about_tuning(results: StudyResults, fig4: ReproducedTable) -> list[Claim]:
    found = []
    single = {
        name: row["single"] for name, row in fig4.rows.items() if "single" in row and name != "mean_acc"
    }
    if single:
        below = [f"{name} {_told(entry)}" for name, entry in single.items() if entry.value < 0.985]
        found.append(
            Claim(
                "fine-tuning on the tested corruption gives at least 98.5 %",
                f"all {len(single)} do" if not below else f"not: {', '.join(below)}",
                not below,
            )
        )
    means = tuned_means(results)
    if {"clean", "all_but_one", "all"} <= means.keys():
        clean, but, whole = (means[column] for column in ("clean", "all_but_one", "all"))
        gain = but.low - clean.high, but.high - clean.low
        most = whole.low - clean.high, whole.high - clean.low
        holds = True if most[0] > 0 and gain[1] < most[0] / 2 else None if gain[0] < most[1] / 2 else False
        told = "; ".join(f"{column} {_told(entry)}" for column, entry in means.items())
        found.append(
            Claim(
                "over all corruptions, training on all but the tested one gains less than half of what "
                "training on all gains (in the paper 90.4 to 91.7, and 98.0)",
                told,
                holds,
            )
        )
    return found


def _told(entry: Measured) -> str:
    return f"{100 * entry.value:.2f} [{100 * entry.low:.2f}, {100 * entry.high:.2f}]"


def spearman(first: list[float], second: list[float]) -> float:
    """Spearman's rank correlation; ties share their mean rank.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if min(len(set(first)), len(set(second))) < 2:
        return 0.0
    return float(round(stats.spearmanr(first, second).statistic, 12))
