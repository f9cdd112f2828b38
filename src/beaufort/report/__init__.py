"""Reports: the numbers of a store as a page, and as tables for papers, programs and model cards.

One module a figure makes its numbers; `data/*.js` only draws them.
"""

from __future__ import annotations

from beaufort.report.card import to_card
from beaufort.report.csv_table import to_csv
from beaufort.report.examples import Examples, examples_of_data
from beaufort.report.harness import to_json
from beaufort.report.latex import to_latex
from beaufort.report.markdown import to_markdown
from beaufort.report.page import to_html
from beaufort.report.paper_text import TABLE_FORMATS, to_table
from beaufort.report.pictures import examples_of_pictures
from beaufort.report.several import shift_table, to_text_of_several
from beaufort.report.single_figure import Figure, figure
from beaufort.report.write import FORMATS, to_text, write_report, write_table

__all__ = [
    "FORMATS",
    "TABLE_FORMATS",
    "Examples",
    "Figure",
    "examples_of_data",
    "examples_of_pictures",
    "figure",
    "shift_table",
    "to_card",
    "to_csv",
    "to_html",
    "to_json",
    "to_latex",
    "to_markdown",
    "to_table",
    "to_text",
    "to_text_of_several",
    "write_report",
    "write_table",
]
