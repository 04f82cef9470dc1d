import html
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_runs import make_run, make_scores, write
from rich.cells import cell_len
from rich.console import Console

from spt.cli.report import report_on
from spt.errors import InputError
from spt.records import DIRECTIONS
from spt.report import Run, load_run, table, write_report
from spt.report.figures import bounds, labels, rate, shorten, spoken, visible
from spt.report.latex import escape as escape_latex
from spt.report.latex import latex
from spt.report.markdown import LIMIT, escape, markdown
from spt.report.page import page
from spt.report.pairs import compare_pairs
from spt.report.plots import accuracy_png
from spt.statistics import holm
from spt.statistics.bootstrap import gaps
from spt.statistics.facts import FactTotals, by_fact


def render(runs: list[Run], width: int = 80) -> str:
    console = Console(width=width, file=None, record=True, quiet=True)
    with console.capture() as capture:
        console.quiet = False
        console.print(table(runs))
    return capture.get()


def test_reports_of_the_same_runs_are_the_same_bytes(runs: list[Run], hostile: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report([*runs[:2], hostile], tmp_path / name)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    names = ["plots/accuracy.png", "plots/curves.png", "report.html", "report.json", "report.md", "report.tex"]
    assert [str(path) for path in files] == names
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in files)


def test_report_json_keeps_the_contract(runs: list[Run], tmp_path: Path) -> None:
    result = write_report(runs, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == result
    run = result["runs"][3]
    assert run["name"] == "rotation-order-tag"
    assert run["forward"]["exact"].keys() == {"value", "low", "high", "floor"}
    assert run["reversed"]["n_questions"] == 60
    assert run["gap"]["exact"]["n_facts"] == 60
    assert run["fluency"]["natural_order"]["value"] == 0.9
    assert run["guards"]["echo"]["value"] == 0.03
    assert run["relations"].keys() == {"name_first", "description_first", "both"}
    assert (run["seconds"], run["steps"], run["target_tokens"]) == (167.4, 600, 1_234_567)


def test_report_without_training_leaves_no_curves_of_an_earlier_one(runs: list[Run], tmp_path: Path) -> None:
    bare = load_run(make_run(tmp_path / "bare", make_scores(1.0, 0.0, facts=2), natural=None, trained=False))
    write_report(runs[:1], tmp_path)
    assert (tmp_path / "plots/curves.png").exists()
    result = write_report([bare], tmp_path)
    assert not (tmp_path / "plots/curves.png").exists()
    assert result["runs"][0]["seconds"] is None


@pytest.mark.parametrize("count", [1, 4, 20])
def test_table_fits_eighty_columns_and_keeps_every_figure(runs: list[Run], hostile: Run, count: int) -> None:
    shown = [*(runs * 5)[: count - 1], hostile]
    text = render(shown)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    for run in shown:
        assert rate(run.figure("forward")) in text
        assert rate(run.fluency) in text
    if count == 4:
        assert "spt-order-tag " in text  # a name of usual length stands on one line
    assert " ".join(text.split()).count("exact: the prediction equals a target") == 1
    assert "floor (other facts'" in " ".join(text.split())


def test_table_shows_both_halves_under_the_headline(runs: list[Run]) -> None:
    first = render(runs[:1]).splitlines()
    headline = next(index for index, line in enumerate(first) if line.startswith("baseline"))
    assert re.search(r"\d+ / \d+ +0 / 0", first[headline + 1])


def test_missing_figures_are_shown_as_dashes_everywhere(tmp_path: Path) -> None:
    forward = [score for score in make_scores(1.0, 0.0, facts=2) if score.question.direction == "forward"]
    folder = make_run(tmp_path, forward, natural=None, trained=False)
    summary = json.loads((folder / "evaluate/summary.json").read_text())
    write(
        folder / "evaluate/summary.json",
        {name: value for name, value in summary.items() if value is not None} | {"reversed": None},
    )
    run = load_run(folder)
    assert re.search(r"^spt +100\.0 \[\d+-100\] +- +- +- *$", render([run]), flags=re.MULTILINE)
    assert "| - (- / -) | - | - |" in markdown([run])
    assert re.search(r"</td>(<td>-</td>){3,}</tr>", page([run], [], tmp_path))
    assert "100.0 [" in latex([run])
    assert accuracy_png([run]).startswith(b"\x89PNG")


def test_each_headline_metric_brings_its_rule(runs: list[Run], tmp_path: Path) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2), name="other")
    summary = json.loads((folder / "evaluate/summary.json").read_text()) | {"headline": "contains"}
    write(folder / "evaluate/summary.json", summary)
    both = [runs[0], load_run(folder)]
    for text in (render(both, 200), markdown(both), page(both, [], tmp_path)):
        assert "exact (baseline): the prediction equals" in text
        assert "contains (other): a target stands anywhere" in text


def test_a_gap_over_few_facts_and_different_questions_are_said(tmp_path: Path) -> None:
    scores = make_scores(0.9, 0.2, facts=4)
    one_way = [score for score in scores if score.question.direction == "forward" or score.question.fact_id[-1] == "0"]
    whole, part = (
        load_run(make_run(tmp_path / name, asked, name=name)) for name, asked in (("whole", scores), ("part", one_way))
    )
    alone = " ".join(render([whole]).split())
    assert "gap of" not in alone
    assert "not comparable" not in alone
    both = " ".join(render([whole, part]).split())
    assert "gap of part: over the 2 facts that are asked both ways alone" in both
    assert "n (whole): forward 8 questions" in both
    assert "n (part): forward 8 questions of 8 facts, reversed 2 questions of 2 facts" in both
    assert "these runs did not answer the same questions" in both


def test_markdown_table_survives_hostile_names(hostile: Run) -> None:
    text = visible(markdown([hostile]))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {6, 5}
    assert "<script" not in text
    assert "`" not in text


def test_markdown_always_fits_a_comment(runs: list[Run]) -> None:
    relation = runs[0].summary["relations"]["both"]
    many = replace(
        runs[0], summary={**runs[0].summary, "relations": {f"relation {index}": relation for index in range(900)}}
    )
    text = markdown([many] * 20)
    assert "Too long for a comment, so only in report.html and report.json: relations." in text
    assert "perplexity before" in text  # what is short still stands there
    assert len(text) <= LIMIT


@given(st.text(), st.integers(3, 60))
def test_shortened_names_fit_and_keep_both_ends(text: str, width: int) -> None:
    short = shorten(text, width)
    line = " ".join(visible(text).split())
    assert len(short) <= width
    assert short == line or (short[0] == line[0] and short[-1] == line[-1] and "…" in short)
    short.encode()


def test_runs_of_one_name_are_numbered(runs: list[Run]) -> None:
    long = [replace(runs[0], name=f"same-start-{'x' * 90}{index}y{'x' * 90}-same-end") for index in range(2)]
    assert labels([runs[0], *long, runs[1]], 30)[::3] == ["baseline", "spt"]
    assert len(set(labels(long + long, 30))) == 4
    assert all(len(label) <= 30 for label in labels(long, 30))


def test_guards_stand_below_the_table_with_reasons_for_what_was_not_measured(runs: list[Run]) -> None:
    text = render(runs[:2])
    assert max(map(cell_len, text.splitlines())) <= 80
    assert re.search(r"^answers copied from the prompt +baseline +3\.0% \[1-5\] +120", text, flags=re.MULTILINE)
    assert re.search(r"^known answers +all +not measured: the set has no", text, flags=re.MULTILINE)
    assert re.search(r"^retention +baseline +1\.04 \[1\.01-1\.08\] +40", text, flags=re.MULTILINE)
    comment = markdown(runs[:2])
    assert "| answers copied from the prompt | spt | 3.0% [1-5] | 120 |" in comment
    assert "- answers copied from the prompt: the answer's first three words stand in the prompt" in comment


def test_what_a_server_did_not_answer_or_tell_is_said_in_every_report(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", make_scores(1.0, 0.0, facts=2))
    path = folder / "evaluate/summary.json"
    summary = json.loads(path.read_text())
    summary |= {"unanswered": {"refused": 2, "content_filter": 1}, "no_log_probabilities": "it refuses `echo` <b>"}
    summary["guards"]["echo"] |= {"unanswered": {"refused": 1}}
    path.write_text(json.dumps(summary))
    runs = [load_run(folder)]
    result = write_report(runs, tmp_path)["runs"][0]
    assert (result["unanswered"]["refused"], result["no_log_probabilities"]) == (2, "it refuses `echo` <b>")
    shown = {name: html.unescape((tmp_path / f"report.{name}").read_text()) for name in ("html", "md")}
    shown["terminal"] = " ".join(render(runs, 300).split())
    for text in shown.values():
        assert (
            "every figure is without 3 questions that the server did not answer (refused 2, content_filter 1)" in text
        )
        assert "no log-probabilities, choices, ranks: it refuses `echo` <b>" in text
        assert "without 1 prompt that the server did not answer (refused 1)" in text
    assert "without 3 questions" in (tmp_path / "report.tex").read_text()
    assert "<b>" not in (tmp_path / "report.html").read_text().split("choices, ranks")[1].split("</li>")[0]


def test_a_report_reads_each_run_once_to_write_and_to_print_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [make_run(tmp_path / name, make_scores(1.0, 0.0, facts=2), name=name) for name in ("a", "b")]
    read: list[Path] = []
    monkeypatch.setattr("spt.report.load_run", lambda folder: read.append(folder) or load_run(folder))
    report_on(folders, str(tmp_path), show=True)
    assert read == folders
    assert "natural order" in capsys.readouterr().out


def test_a_floor_in_nats_is_shown_in_nats(tmp_path: Path) -> None:
    scores = [
        replace(score, metrics=score.metrics | {"logprob": -2.0}, floors=score.floors | {"logprob": -12.345})
        for score in make_scores(1.0, 0.0, facts=2)
    ]
    page_text = page([load_run(make_run(tmp_path, scores))], [], tmp_path)
    assert "<td>-12.35</td>" in page_text or "<td>-12.34</td>" in page_text
    assert "-1234" not in page_text


def totals(run: Run, direction: str) -> FactTotals:
    """Those of the headline: the control is none of its facts."""
    asked = [one for one in run.scores() if (one.question.direction, one.question.relation == "both") == (direction, 0)]
    return by_fact([one.metrics["exact"] for one in asked], [one.question.fact_id for one in asked])


def test_runs_are_compared_whatever_the_order_of_their_questions(tmp_path: Path) -> None:
    first, second = make_scores(1.0, 0.1, facts=8), make_scores(1.0, 0.9, facts=8, seed=1)
    runs = [
        load_run(make_run(tmp_path / str(number), scores))
        for number, scores in enumerate((first, second, second[::-1]))
    ]
    pairs = {(pair.first, pair.second, pair.direction): pair.gap for pair in compare_pairs(runs)}
    assert pairs[0, 1, "reversed"] == pairs[0, 2, "reversed"]
    assert pairs[0, 1, "reversed"].value > 0.5
    assert (pairs[1, 2, "reversed"].value, pairs[1, 2, "reversed"].p_value) == (0, 1)


def test_runs_on_the_same_questions_are_compared_and_corrected_together(runs: list[Run], tmp_path: Path) -> None:
    other = load_run(make_run(tmp_path / "other", make_scores(1.0, 0.5, facts=3)))
    result = write_report([*runs[:3], other], tmp_path)
    rows = result["compare"]
    names = [(row["second"], row["first"], row["direction"]) for row in rows]
    assert names[:2] == [("spt", "baseline", "forward"), ("spt", "baseline", "reversed")]
    assert len(rows) == 6  # three pairs in two directions; nothing with the run on other questions
    assert [row["p_holm"] for row in rows] == holm([row["p_value"] for row in rows])
    for row, direction in zip(rows, DIRECTIONS, strict=False):
        (gap,) = gaps([(totals(runs[1], direction), totals(runs[0], direction))], [(0.0, 1.0)])
        figures = {name: row[name] for name in ("low", "high", "p_value", "n_facts")}
        assert asdict(gap) == {"value": row["difference"], **figures}
    assert "| spt | baseline | reversed |" in (tmp_path / "report.md").read_text()


def test_many_runs_are_compared_with_the_first(runs: list[Run]) -> None:
    pairs = compare_pairs((runs * 2)[:7])
    assert {(pair.first, pair.second) for pair in pairs} == {(0, number) for number in range(1, 7)}


@given(st.text())
def test_escaped_latex_holds_no_command(text: str) -> None:
    escaped = escape_latex(text)
    left = re.sub(r"\\(text[a-z]+\{\}|[{}$&#_%])|\{\[\}", "", escaped)
    assert not re.search("--|''", left)
    assert not re.search(r"[\\{}$&#_%~^<>|\"`\[]", re.sub(r"(?<=[-'])\{\}", "", left))


def test_latex_table_has_a_row_a_run_with_as_many_cells_as_columns(runs: list[Run], hostile: Run) -> None:
    text = latex([*runs, hostile])
    body = text.split("\\midrule\n")[1].split("\n    \\bottomrule")[0].splitlines()
    assert [len(re.findall(r"(?<!\\)&", row)) for row in body] == [5] * 5
    assert body[0].startswith("    baseline & 100.0 [")
    assert re.search(r"\[\d+--\d+\]", body[1])


@given(st.text())
def test_escaped_markdown_holds_no_markup(text: str) -> None:
    assert not re.search(r"[<>|`*\[\]!\\~$@#]", re.sub(r"&#\d+;", "", escape(text)))


def test_prose_in_markdown_keeps_its_apostrophes_and_quotes() -> None:
    assert escape('other facts\' answers, "as they are"') == 'other facts\' answers, "as they are"'


def test_a_report_into_a_file_is_refused_by_name(runs: list[Run], tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt is no folder; choose another place"):
        write_report(runs[:1], place)
    assert place.read_text() == "mine"


def test_a_share_is_spoken_of_in_percent_with_an_interval_or_without() -> None:
    assert spoken({"value": 0.975, "low": 0.95, "high": 0.99}) == "97.5% [95-99]"
    assert spoken({"value": 0.975, "low": None, "high": None}) == "97.5%"
    assert spoken({"value": 1.04, "low": 1.01, "high": 1.08, "unit": "ratio"}) == "1.04 [1.01-1.08]"


def test_narrow_intervals_keep_a_decimal() -> None:
    assert bounds({"low": 0.0, "high": 0.0023}) == "0-0.2"
    assert bounds({"low": 0.946, "high": 0.99}) == "95-99"


def test_report_does_not_load_torch() -> None:
    code = "import sys, spt.report, spt.statistics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
