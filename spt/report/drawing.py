"""How every drawing looks, and how it becomes bytes or an element of a page.

In: figures of matplotlib. Out: PNG bytes, and SVG text whose colours are CSS variables, so that it follows light and
dark; the same figure gives the same bytes. Trade-off: an SVG's texts take the page's font, which is not the one that
matplotlib measured, so a drawing leaves them some room.
"""

import io
import re
import warnings
from collections.abc import Mapping

from matplotlib.figure import Figure

INK, RULE, PAGE = "#1c2024", "#d4d8dc", "#fefefe"
STYLE = {
    "axes.axisbelow": True, "axes.edgecolor": RULE, "axes.grid": True, "axes.labelcolor": INK,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 9, "axes.titlecolor": INK, "font.size": 9,
    "grid.color": RULE, "grid.linewidth": 0.6, "legend.frameon": False, "svg.fonttype": "none", "text.color": INK,
    "text.parse_math": False, "xtick.color": INK, "ytick.color": INK, "xtick.major.size": 0, "ytick.major.size": 0,
}  # fmt: skip
"""matplotlib's settings."""


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks shows boxes here; the page shows it with the reader's own fonts.
        warnings.filterwarnings("ignore", message=r"(?s).*[Gg]lyph")
        figure.savefig(buffer, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Figure, variables: Mapping[str, str]) -> str:
    """Return a figure as an element of the page: no prologue, styles or ids of its own, colours as CSS variables.

    `variables` are those of colours beyond ink, rules and the page's ground.
    """
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*[Gg]lyph")
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", text)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"| height="[^"]*pt"', r"\1", text)
    for colour, variable in {**variables, INK: "currentColor", RULE: "var(--rule)", PAGE: "var(--page)"}.items():
        text = text.replace(colour, variable)
    return text.replace("<svg ", '<svg aria-hidden="true" ', 1)
