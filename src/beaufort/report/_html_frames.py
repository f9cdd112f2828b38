"""The sections whose figures scripts draw: what each says, and where the figure goes."""

from __future__ import annotations

from html import escape

from beaufort.report._text import base_name, counted
from beaufort.report.classes import WorstClasses
from beaufort.report.examples import MISTAKES, Examples
from beaufort.results import Scores

__all__ = ["bars", "calibration", "classes", "curves", "mistakes", "strips"]


def curves(scores: Scores) -> str:
    """A frame for the severity curves."""
    if scores.suite.severities == "published":
        return ""
    base = (
        f" The dotted line is {escape(base_name(scores.baseline))}."
        if scores.baseline and not scores.baseline.stored
        else ""
    )
    others = " Grey lines are the other models." if len(scores.models) > 1 else ""
    return f"""<section id="curves" class="needs-script"><h2>As the damage grows</h2>
<p class="lead">Accuracy from clean images (0) to severity {max(scores.suite.severities)}, with its interval
as a band; n = {counted(scores.images, "image")} a point.{base}{others}</p>
<div id="curves-figure" class="panels"></div></section>"""


def bars(scores: Scores) -> str:
    """A frame for the errors by corruption."""
    if scores.baseline is None:
        title, lead = "Errors by corruption", "The mean over severities, with its interval."
    else:
        base = escape(base_name(scores.baseline))
        title = f"Against {base}"
        lead = (
            f"CE: errors under a corruption, as a share of {base}'s. The line at 100 % is {base}; "
            "shorter is better."
        )
    return f"""<section id="bars" class="needs-script"><h2>{title}</h2>
<p class="lead">{lead} n = {counted(scores.images, "image")}.</p>
<p class="tools" role="group" aria-label="Order of the bars"><span class="faint">Order</span>
<button type="button" data-order="suite" aria-pressed="true">as in the suite</button>
<button type="button" data-order="worst" aria-pressed="false">worst first</button></p>
<div id="bars-figure"></div></section>"""


def calibration(scores: Scores) -> str:
    """A frame for the calibration under shift."""
    return f"""<section id="calibration" class="needs-script"><h2>Does it know when it is wrong?</h2>
<p class="lead">A model that says 80 % should be right 80 % of the time. The calibration error (ECE) is the
mean distance from that; n = {counted(scores.images, "image")}, all corruptions of a severity together.</p>
<div id="calibration-figure"></div></section>"""


def strips(examples: Examples | None) -> str:
    """A frame for the example pictures, or how to get them."""
    if examples is None:
        return """<h2>What the models saw</h2><p class="lead">No pictures in this page. <code>--data</code>
with the data of the run shows test images with the stored answers; <code>--pictures</code> shows pictures
that may be passed on.</p>"""
    return f"""<h2>What the models saw</h2><p class="lead">{escape(examples.note)}</p>
<div id="examples-figure" class="needs-script"></div>"""


def mistakes(scores: Scores, examples: Examples | None) -> str:
    """A frame for the mistakes, or why there are none."""
    title = "<h2>Mistakes, drawn at random</h2>"
    if examples is None:
        return f"""{title}<p class="lead">Not shown: they are test images. <code>--data</code> with the
data of the run adds them.</p>"""
    if examples.mistakes is None:
        return f"""{title}<p class="lead">Not shown: they are test images, and this page was made with
<code>--pictures</code>, so that it can be passed on. <code>--data</code> would add them.</p>"""
    return f"""{title}<p class="lead">Up to {MISTAKES} of each corruption, out of all wrong answers at all
severities, with the seed {examples.seed}. “A → B (true C)”: the clean image was called A, the corrupted
one B, and C is right.</p>
<div id="mistakes-figure" class="needs-script"></div>"""


def classes(worst: WorstClasses) -> str:
    """A frame for the worst classes, or why none is named."""
    return f"""<h2>The classes that suffer most</h2><p class="lead">{escape(worst.note)}</p>
<div id="classes-figure" class="needs-script"></div>"""
