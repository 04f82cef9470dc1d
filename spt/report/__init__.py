"""Scores → what a person reads: terminal table, Markdown, JSON, plots, one self-contained page.

In: folders of finished runs. Out: `report.json`, `report.md`, `report.tex`, `report.html`, `plots/*.png`. Trade-off:
the page holds its styles, drawings and rows itself, so it is megabytes, not kilobytes, and opens anywhere, offline.
"""

from spt.report.load import Run, load_run
from spt.report.terminal import table
from spt.report.write import write_report

__all__ = ["Run", "load_run", "table", "write_report"]
