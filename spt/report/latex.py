r"""Runs → a table for a paper.

In: runs. Out: LaTeX text that needs the package booktabs alone. Trade-off: a name in a script beyond Latin stays as it
is, which LuaLaTeX and XeLaTeX set with a font that has it, and pdfLaTeX does not.
"""

import re
from collections.abc import Sequence

from spt.report.figures import difference, labels, left_out, match_rules, p_value, rate, sample_sizes, visible
from spt.report.load import Run

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "[": "{[}",
}  # fmt: skip
_NAME_WIDTH = 60


def escape(text: str) -> str:
    """Return text in which nothing is a command or an argument, and no hyphens or quotes join to something else."""
    line = " ".join(visible(text).split())
    line = re.sub(r"[\\{}$&#_%~^<>|\"`\[]", lambda found: _SPECIAL[found[0]], line)
    return re.sub("([-'])(?=\\1)", r"\1{}", line)


def latex(runs: Sequence[Run]) -> str:
    """Return the headline table, its caption with the match rule and the sample sizes."""
    rows = [[escape(label), *_cells(run)] for label, run in zip(labels(runs, _NAME_WIDTH), runs, strict=True)]
    lines = ("Percent, with 95% intervals over facts", *match_rules(runs), *sample_sizes(runs), *left_out(runs))
    return set_table(("Run", "Forward", "Reversed", "Gap", "$p$", "Natural order"), rows, lines)


def set_table(head: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    """Return a table of cells that are set already, names first, with a caption of these lines."""
    body = "\n".join(f"    {' & '.join(row)} \\\\" for row in rows)
    caption = " ".join(f"{escape(line).rstrip('.')}." for line in lines)
    return (
        _TABLE.replace("COLUMNS", "l" + "r" * (len(head) - 1))
        .replace("HEAD", " & ".join(head))
        .replace("BODY", body)
        .replace("CAPTION", caption)
    )


def _cells(run: Run) -> list[str]:
    figures = run.figure("forward"), run.figure("reversed"), run.fluency
    forward, reverse, natural = map(rate, figures)
    p = p_value((run.gap or {}).get("p_value"))
    return [set_cell(cell) for cell in (forward, reverse, difference(run.gap), p, natural)]


def set_cell(cell: str) -> str:
    """Return a cell whose minus signs are minus signs and whose ranges are ranges."""
    if cell == "-":
        return "--"
    cell = re.sub(r"(?<=\d)-(?=\d)", "--", cell)
    return re.sub(r"(?<![\d-])-(?=\d)", "$-$", cell).replace("<", "$<$")


_TABLE = r"""% \usepackage{booktabs,textcomp}
\begin{table}
  \centering
  \begin{tabular}{COLUMNS}
    \toprule
    HEAD \\
    \midrule
BODY
    \bottomrule
  \end{tabular}
  \caption{CAPTION}
\end{table}
"""
