import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_runs import make_run, make_scores, write
from rich.cells import cell_len
from rich.console import Console

from spt.report import Run, load_run, table, write_report
from spt.report.figures import bounds, labels, rate, shorten, visible
from spt.report.markdown import LIMIT, escape, markdown
from spt.report.page import page
from spt.report.plots import accuracy_png


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
    names = ["plots/accuracy.png", "plots/curves.png", "report.html", "report.json", "report.md"]
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
    assert re.search(r"</td>(<td>-\s*</td>){8}</tr>", page([run]))
    assert accuracy_png([run]).startswith(b"\x89PNG")


def test_each_headline_metric_brings_its_rule(runs: list[Run], tmp_path: Path) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2), name="other")
    summary = json.loads((folder / "evaluate/summary.json").read_text()) | {"headline": "contains"}
    write(folder / "evaluate/summary.json", summary)
    both = [runs[0], load_run(folder)]
    for text in (render(both, 200), markdown(both), page(both)):
        assert "exact (baseline): the prediction equals" in text
        assert "contains (other): a target stands anywhere" in text


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
    assert "too long for a comment" in markdown([many] * 20)
    assert len(markdown([many] * 20)) <= LIMIT


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


@given(st.text())
def test_escaped_markdown_holds_no_markup(text: str) -> None:
    assert not re.search(r"[<>|`*\[\]!\\~$@#]", re.sub(r"&#\d+;", "", escape(text)))


def test_narrow_intervals_keep_a_decimal() -> None:
    assert bounds({"low": 0.0, "high": 0.0023}) == "0-0.2"
    assert bounds({"low": 0.946, "high": 0.99}) == "95-99"


def test_report_does_not_load_torch() -> None:
    code = "import sys, spt.report, spt.statistics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
