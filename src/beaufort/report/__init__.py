"""Reports: pages, tables and figures made from results.

`figure_numbers` computes what the figures show; `data/*.js` only draws it.
"""

from __future__ import annotations

from beaufort.report.abstention import ABSTENTION_FORMATS, abstention_table
from beaufort.report.board import Board, BoardTrend, Rejected, write_board
from beaufort.report.example_images import examples_of_images
from beaufort.report.examples import Examples, examples_of_data
from beaufort.report.fiftyone import export_fiftyone
from beaufort.report.formats import FORMATS, to_text, write_report, write_table
from beaufort.report.html_page import to_html
from beaufort.report.hubs import RELATIONSHIPS, export_every_eval_ever, export_huggingface
from beaufort.report.json_csv import to_csv, to_json
from beaufort.report.latex import to_latex
from beaufort.report.markdown import to_card, to_markdown
from beaufort.report.multi_dataset import Expectation, shift_table, to_text_of_several
from beaufort.report.paper_table import TABLE_FORMATS, to_table
from beaufort.report.single_figure import Figure, figure

__all__ = [
    "ABSTENTION_FORMATS",
    "FORMATS",
    "RELATIONSHIPS",
    "TABLE_FORMATS",
    "Board",
    "BoardTrend",
    "Examples",
    "Expectation",
    "Figure",
    "Rejected",
    "abstention_table",
    "examples_of_data",
    "examples_of_images",
    "export_every_eval_ever",
    "export_fiftyone",
    "export_huggingface",
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
    "write_board",
    "write_report",
    "write_table",
]
