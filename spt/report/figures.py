"""Numbers and foreign strings → short text, one way for every kind of report.

In: figures as they stand in a summary (fractions of 1, or None). Out: percent with intervals, safe and bounded names.
Trade-off: one decimal for a rate and whole percents for its interval; the exact values are in `report.json`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spt.report.load import HALVES, Run

ABSENT = "-"
TESTED = HALVES[:2]
"""The halves of the headline, in the order in which the tables show them."""

# Control characters as the pictures Unicode has for them; what cannot be encoded at all as the replacement character.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_UNENCODABLE = re.compile("[\ud800-\udfff]")
# What embeds, overrides or isolates a direction of writing, and so would turn round the text beside it.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def visible(value: object) -> str:
    """Return any value as text that can be shown and encoded: controls by picture or number, newlines and tabs kept."""
    text = _UNENCODABLE.sub("\ufffd", str(value).translate(_PICTURES))
    return _TURNING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def shorten(text: str, width: int) -> str:
    """Return visible text on one line of at most `width`, cut out of its middle: both ends tell runs apart."""
    line = " ".join(visible(text).split())
    if len(line) <= width:
        return line
    tail = width // 2
    return f"{line[: width - tail - 1]}…{line[len(line) - tail :]}"


def labels(runs: Sequence[Run], width: int) -> list[str]:
    """Return a distinct short name for each run; equal names give way to the folders', and equal ones are numbered."""
    names = [run.name for run in runs]
    short = [shorten(run.folder.name if names.count(run.name) > 1 else run.name, width) for run in runs]
    return [
        f"{shorten(label, width - 5)} ({short[: index + 1].count(label)})" if short.count(label) > 1 else label
        for index, label in enumerate(short)
    ]


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as percent, such as `97.5`."""
    if value is None:
        return ABSENT
    text = f"{100 * value:.{digits}f}"
    return text if float(text) else text.lstrip("-")


def amount(figure: Mapping[str, Any], name: str = "value", digits: int = 1) -> str:
    """Return a number of a figure as percent, or where its unit is no share (nats, ratio) as it is, to two decimals."""
    value = figure.get(name)
    if value is not None and not is_share(figure):
        return f"{value:.2f}"
    return percent(value, digits)


def is_share(figure: Mapping[str, Any]) -> bool:
    """Return whether a figure is a fraction of 1."""
    return figure.get("unit") in (None, "fraction", "share")


def bounds(figure: Mapping[str, Any], separator: str = "-") -> str:
    """Return the ends of an interval in whole percent, or one decimal where it is narrow, such as `95-99`, `0-0.2`."""
    low, high = figure.get("low"), figure.get("high")
    if not is_share(figure) or low is None or high is None:
        return separator.join(amount(figure, end) for end in ("low", "high"))
    digits = 0 if high - low >= 0.02 else 1
    return separator.join(percent(end, digits).removesuffix(".0") for end in (low, high))


def has_interval(figure: Mapping[str, Any]) -> bool:
    """Return whether anything bounds the figure."""
    return figure.get("low") is not None or figure.get("high") is not None


def rate(figure: Mapping[str, Any] | None, separator: str = "-") -> str:
    """Return a rate with its 95% interval in percent, such as `97.5 [95-99]`."""
    if not figure or figure.get("value") is None:
        return ABSENT
    return f"{amount(figure)} [{bounds(figure, separator)}]" if has_interval(figure) else amount(figure)


def spoken(figure: Mapping[str, Any], separator: str = "-") -> str:
    """Return a known figure as a sentence has it, such as `97.5% [95-99]`; what is no share has no percent sign."""
    value = amount(figure) + "%" * is_share(figure)
    return f"{value} [{bounds(figure, separator)}]" if has_interval(figure) else value


def difference(figure: Mapping[str, Any] | None) -> str:
    """Return a signed difference with its 95% interval in percent, such as `-1.5 [-4, 1]`."""
    return rate(figure, ", ")


def halves(run: Run, direction: str) -> str:
    """Return a direction's rates of the two halves in whole percent, such as `100 / 97`; empty without halves."""
    if not set(TESTED) & set(run.relations):
        return ""
    figures = (run.figure(direction, half) for half in TESTED)
    return " / ".join(percent(figure["value"] if figure else None, 0) for figure in figures)


def count(value: float | None) -> str:
    """Return a whole number with its thousands apart."""
    return ABSENT if value is None else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units."""
    if seconds is None:
        return ABSENT
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def p_value(value: float | None) -> str:
    """Return a p-value with two digits that count."""
    if value is None:
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def match_rules(runs: Sequence[Run]) -> list[str]:
    """Return a line `metric: rule` for each headline metric; where there are several, with the runs it belongs to."""
    members: dict[tuple[str, str], list[str]] = {}
    for run, label in zip(runs, labels(runs, 24), strict=True):
        members.setdefault((run.headline, run.summary["match_rules"].get(run.headline, "")), []).append(label)
    return [
        visible(name) + (f" ({', '.join(names)})" if len(members) > 1 else "") + f": {visible(rule)}"
        for (name, rule), names in members.items()
    ]


def fluency_rules(runs: Sequence[Run]) -> list[str]:
    """Return each rule by which free generations count as in natural order."""
    rules = dict.fromkeys((run.summary.get("fluency") or {}).get("rule") for run in runs)
    return [visible(rule) for rule in rules if rule]


def sample_sizes(runs: Sequence[Run]) -> list[str]:
    """Return a line for each different set of questions: how many, of how many facts, and the highest floor.

    Where there are several, each with its runs; and a line for each gap that is over fewer facts than its directions.
    """
    groups: dict[str, list[tuple[Run, str]]] = {}
    for run, label in zip(runs, labels(runs, 24), strict=True):
        groups.setdefault(", ".join(asked(run.summary)) or "no questions", []).append((run, label))
    lines = []
    for sizes, members in groups.items():
        whose = f" ({', '.join(label for _, label in members)})" if len(groups) > 1 else ""
        lines.append(f"n{whose}: {sizes}; floor (other facts' answers): {_floors([run for run, _ in members])}")
    if len(groups) > 1:
        lines.append("these runs did not answer the same questions: their figures are not comparable")
    return lines + _paired(runs)


def asked(ways: Mapping[str, Any]) -> list[str]:
    """Return for each direction in which anything was asked how many questions, of how many facts."""
    return [
        f"{direction} {group['n_questions']} questions of {group['n_facts']} facts"
        for direction in ("forward", "reversed")
        if (group := ways.get(direction))
    ]


def _paired(runs: Sequence[Run]) -> list[str]:
    """Return a line for each run whose gap is not forward minus reversed: some facts are asked one way alone."""
    lines = []
    for run, label in zip(runs, labels(runs, 24), strict=True):
        facts = [group["n_facts"] for way in ("forward", "reversed") if (group := run.summary.get(way))]
        both = (run.gap or {}).get("n_facts")
        if both is not None and both < max(facts, default=0):
            lines.append(f"gap of {label}: over the {both} facts that are asked both ways alone")
    return lines


def reasons(counts: Mapping[str, int], what: str) -> str:
    """Return how many were not answered and why, such as `3 prompts that the server did not answer (refused 3)`."""
    total = sum(counts.values())
    listed = ", ".join(f"{visible(reason)} {number}" for reason, number in counts.items())
    return f"{count(total)} {what}{'s' * (total != 1)} that the server did not answer ({listed})"


def left_out(runs: Sequence[Run]) -> list[str]:
    """Return a line for each run whose figures are without some questions, since a server did not answer them."""
    found = zip(labels(runs, 24), (run.summary.get("unanswered") for run in runs), strict=True)
    return [f"{label}: every figure is without {reasons(counts, 'question')}" for label, counts in found if counts]


def server_notes(runs: Sequence[Run]) -> list[str]:
    """Return `left_out`, and a line for each run without log-probabilities and all metrics made of them, and why."""
    found = zip(labels(runs, 24), (run.summary.get("no_log_probabilities") for run in runs), strict=True)
    missing = [f"{label}: no log-probabilities, choices, ranks: {visible(why)}" for label, why in found if why]
    return left_out(runs) + missing


def _floors(runs: Sequence[Run]) -> str:
    parts = []
    for direction in ("forward", "reversed"):
        figures = (run.figure(direction) for run in runs)
        found = [figure["floor"] for figure in figures if figure and figure.get("floor") is not None]
        parts.append(f"{direction} {'at most ' if len(found) > 1 else ''}{percent(max(found, default=None))}")
    return ", ".join(parts)
