"""Templates of pages: where they lie, and how a number stands in them.

In: the part of spt that a page belongs to. Out: jinja's environment, which escapes every text. Trade-off: all pages
share the report's styles, macros and filters, so that a change to one shows in each.
"""

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from spt.report import figures
from spt.report.load import known


@cache
def environment(part: str) -> Environment:
    """Return the environment of `spt.<part>`: its own templates, and the report's."""
    own = ChoiceLoader([PackageLoader("spt", part), PackageLoader("spt", "report")])
    found = Environment(loader=own, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters |= {
        "amount": figures.amount, "rate": figures.rate, "bounds": figures.bounds, "percent": figures.percent,
        "p": figures.p_value, "count": figures.count, "has_interval": figures.has_interval, "known": known,
        "along": _along, "around": _around, "shorten": figures.shorten,
    }  # fmt: skip
    return found


def _along(value: float) -> str:
    """Return where a fraction of 1 stands on a bar."""
    return f"{100 * min(max(value, 0.0), 1.0):.2f}%"


def _around(value: float) -> str:
    """Return where a difference of fractions stands on a scale from -1 to 1."""
    return f"{50 + 50 * min(max(value, -1.0), 1.0):.2f}%"
