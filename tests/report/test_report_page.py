import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from invented_runs import HOSTILE, make_run, make_scores

from spt.report import Run, load_run
from spt.report.figures import visible
from spt.report.page import page
from spt.report.plots import curves_svg


class Page(HTMLParser):
    """Collects what a browser would act on, and fails on tags that do not nest."""

    VOID = frozenset({"meta", "br", "input", "path", "use"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data


def test_page_reaches_for_nothing_outside_itself(runs: list[Run]) -> None:
    found = Page(page(runs))
    assert {"link", "img", "iframe", "base"}.isdisjoint(found.tags)
    links = [value for name, value in found.attributes if name in ("src", "href", "xlink:href", "action", "data")]
    assert all(value and value.startswith("#") for value in links)
    text = page(runs)
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_page_has_no_id_twice_and_every_reference_has_its_id(runs: list[Run]) -> None:
    found = Page(page(runs))
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    references = {
        str(value).removeprefix("#") for name, value in found.attributes if name in ("xlink:href", "aria-labelledby")
    }
    assert references <= set(ids)


def test_hostile_strings_are_shown_as_text(runs: list[Run], hostile: Run) -> None:
    text = visible(page([*runs, hostile]))
    found = Page(text)
    assert found.tags.count("script") == 1
    assert found.cells.count(visible(HOSTILE)) == 3 * hostile.n_scores  # prompt, target, prediction
    assert not re.search("[\x00\u202e\ud800]", text)
    assert "49" not in {cell.strip() for cell in found.cells}
    text.encode()


def test_every_table_has_a_header_for_each_column(runs: list[Run]) -> None:
    for body in re.findall(r"<table.*?</table>", page(runs), flags=re.DOTALL):
        head, *rows = re.findall(r"<tr.*?</tr>", body, flags=re.DOTALL)
        columns = head.count('<th scope="col"')
        assert columns > 0
        spanned = 0
        for row in rows:
            spanned = int(span[1]) if (span := re.search(r'rowspan="(\d+)"', row)) else max(spanned - 1, 0)
            cells = row.count("<td>") + row.count("<th ")
            assert cells + (spanned > 0 and "rowspan" not in row) == columns


def test_long_question_list_is_cut_evenly_and_the_page_says_so(tmp_path: Path) -> None:
    run = load_run(make_run(tmp_path, make_scores(1.0, 0.0, facts=100), trained=False))
    assert "500 of 600 questions, evenly spaced" in page([run])
    assert "100 of 600 questions, evenly spaced" in page([run] * 30)
    assert [run.scores[0]["id"], run.scores[-1]["id"]] == ["name_first-0-forward", "both-99-forward"]


def test_step_logged_twice_by_a_resumed_run_is_drawn_once(runs: list[Run]) -> None:
    resumed = replace(runs[1], log=({**runs[1].log[5], "loss": 99.0}, *runs[1].log))
    assert curves_svg(resumed, "x") == curves_svg(runs[1], "x")
