import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from invented_cells import EPOCHS, make_cell, make_comparison, write
from rich.cells import cell_len
from rich.console import Console

from spt.compare.cell import Cell, Cells, write_cells
from spt.compare.columns import Json, compact, notes_of
from spt.compare.markdown import markdown
from spt.compare.plots import cost, spread_apart
from spt.compare.terminal import comparison_table
from spt.compare.write import write_comparison
from spt.errors import QuestionError
from spt.report.figures import visible
from spt.report.markdown import LIMIT

Whole = tuple[Path, Json]


def render(result: Json) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(comparison_table(result))
    return capture.get()


def method_of(result: Json, name: str) -> Json:
    return next(method for method in result["experiments"][0]["methods"] if method["name"] == name)


def test_report_json_holds_every_figure_with_its_interval(whole: Whole) -> None:
    folder, result = whole
    assert json.loads((folder / "report.json").read_text(encoding="utf-8")) == json.loads(json.dumps(result))
    found = method_of(result, "spt")
    figures = [
        found["forward"], found["reversed"], found["gap"], found["fluency"]["natural_order"],
        found["relations"]["name_first"]["reversed"], found["guards"]["echo"], found["guards"]["non_reciprocal"],
        found["guards"]["retention"], found["perplexity"]["after"],
    ]  # fmt: skip
    assert all(figure["low"] <= figure["value"] <= figure["high"] for figure in figures)
    assert all(figure["low"] < figure["high"] for figure in figures)
    assert (found["seeds"], found["forward"]["n_questions"], found["forward"]["n_facts"]) == ([0, 1, 2], 60, 60)
    assert found["seconds"] == {"value": 170.0, "low": 160.0, "high": 180.0}
    assert found["tokens"]["low"] == 1_200_001
    assert found["gap"]["value"] == pytest.approx(found["forward"]["value"] - found["reversed"]["value"])


def test_figures_are_means_of_what_each_cell_found(whole: Whole) -> None:
    folder, result = whole
    found = method_of(result, "spt")
    summaries = [json.loads((folder / cell["folder"] / "evaluate/summary.json").read_text()) for cell in found["cells"]]
    for direction in ("forward", "reversed"):
        own = [summary[direction]["exact"]["value"] for summary in summaries]
        assert found[direction]["value"] == pytest.approx(sum(own) / 3)
        half = [summary["relations"]["description_first"][direction]["exact"]["value"] for summary in summaries]
        assert found["relations"]["description_first"][direction]["value"] == pytest.approx(sum(half) / 3)
    natural = [summary["fluency"]["natural_order"]["value"] for summary in summaries]
    assert found["fluency"]["natural_order"]["value"] == pytest.approx(sum(natural) / 3)
    after = [summary["guards"]["non_reciprocal"]["value"] for summary in summaries]
    assert found["guards"]["non_reciprocal"]["value"] == pytest.approx(sum(after) / 3)
    before, ratio = found["perplexity"]["before"]["value"], found["guards"]["retention"]["value"]
    assert found["perplexity"]["after"]["value"] == pytest.approx(before * ratio)


def test_every_pair_is_compared_in_both_directions_the_baseline_first(whole: Whole) -> None:
    _, result = whole
    pairs = result["experiments"][0]["pairs"]
    assert len(pairs) == 16 * 15  # sixteen methods have figures: 120 pairs, two directions
    assert {row["first"] for row in pairs[:30]} == {"baseline"}
    assert {tuple(row["seeds"]) for row in pairs if "bico" in (row["first"], row["second"])} >= {(0, 2)}


def test_best_methods_are_those_that_differ_from_none_better(whole: Whole) -> None:
    best = [method["name"] for method in whole[1]["experiments"][0]["methods"] if method["best"]]
    assert set(best) == {"rotation-order-tag", "mentions-order-tag", "reverse-statements"}


def test_a_method_without_a_seed_in_common_with_the_best_is_not_called_as_good(tmp_path: Path) -> None:
    states = {("low", 0): ("failed", "no memory"), ("top", 1): ("failed", "no memory")}
    methods = {"baseline": (0.9, 0.0, 0.9), "low": (0.9, 0.1, 0.9), "top": (0.9, 1.0, 0.9)}
    result = write_comparison(make_comparison(tmp_path, methods, seeds=(0, 1), states=states, facts=30))
    assert [method["name"] for method in result["experiments"][0]["methods"] if method["best"]] == ["top"]


@pytest.mark.parametrize("parts", [None, ""])
def test_a_figure_that_a_seed_has_no_parts_of_is_the_mean_of_all_seeds(tmp_path: Path, parts: str | None) -> None:
    make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(0, 1), facts=5)
    first, second = (tmp_path / f"cells/experiment-0/method-0/seed-{seed}/evaluate" for seed in (0, 1))
    (first / "parts.jsonl").unlink() if parts is None else (first / "parts.jsonl").write_text(parts)
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (first, second)]
    found = method_of(write_comparison(tmp_path), "a")
    for name in ("non_reciprocal", "retention"):
        own = [summary["guards"][name]["value"] for summary in summaries]
        assert found["guards"][name]["value"] == pytest.approx(sum(own) / 2)
        assert found["guards"][name]["low"] is None
    after = [summary["perplexity"]["after"] for summary in summaries]
    assert found["perplexity"]["after"]["value"] == pytest.approx(sum(after) / 2)


def test_cells_without_figures_are_counted_with_their_reasons(whole: Whole) -> None:
    folder, result = whole
    assert len(result["absent"]) == 5
    assert method_of(result, "identity-bridge")["reversed"] is None
    assert method_of(result, "fim")["seeds"] == [0, 1]
    for text in (render(result), (folder / "report.md").read_text(), (folder / "report.html").read_text()):
        spoken = " ".join(text.split())
        assert "the loss is nan at step 40" in spoken
        assert "the corpus has no fields" in spoken
        assert re.search(r"5 of 51", spoken)


def test_budget_is_said_as_matched_by_data_or_by_tokens(whole: Whole, tmp_path: Path) -> None:
    assert notes_of(whole[1]["experiments"][0])[0] == "budget: data-matched, 30 passes over the corpus"
    matched = make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, facts=2, budget={"kind": "tokens", "value": 2_000_000})
    (note, *_) = notes_of(write_comparison(matched)["experiments"][0])
    assert note == "budget: compute-matched, as many steps as are expected to see 2,000,000 tokens"


def test_budgets_that_differ_are_told_apart(tmp_path: Path) -> None:
    budgets = {"a": EPOCHS, "b": {"kind": "tokens", "value": 10}, "c": EPOCHS}
    cells = [Cell("people", name, 0, tmp_path / "cells" / name, "waiting", own) for name, own in budgets.items()]
    write_cells(tmp_path, Cells("mixed", "a", tuple(cells)))
    assert notes_of(write_comparison(tmp_path)["experiments"][0]) == [
        "budget of a, c: data-matched, 30 passes over the corpus",
        "budget of b: compute-matched, as many steps as are expected to see 10 tokens",
    ]


def test_comparison_without_a_finished_cell_has_a_report(tmp_path: Path) -> None:
    states = {("a", 0): ("waiting", None), ("b", 0): ("failed", "no memory")}
    folder = make_comparison(tmp_path, dict.fromkeys("ab", (0.9, 0.5, 0.9)), seeds=(0,), states=states)
    result = write_comparison(folder)
    assert "2 of 2 cells have no figures: 1 waiting, 1 failed" in render(result)
    assert "no memory" in (folder / "report.html").read_text()
    assert list(folder.glob("plots/*")) == []


def test_one_seed_says_that_its_intervals_are_over_facts_alone(tmp_path: Path) -> None:
    result = write_comparison(make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(3,), facts=5))
    run = json.loads((tmp_path / "cells/experiment-0/method-0/seed-3/evaluate/summary.json").read_text())
    found = method_of(result, "a")
    for direction in ("forward", "reversed"):
        wanted = run[direction]["exact"]
        assert [found[direction][key] for key in ("value", "low", "high")] == [
            wanted[key] for key in ("value", "low", "high")
        ]
    shown = " ".join(render(result).split())
    assert "percent [95% interval over facts alone, since there is one seed]" in shown
    assert "range over seeds" not in shown


def test_terminal_says_what_its_short_names_stand_for_and_a_caption_only_what_its_table_holds(whole: Whole) -> None:
    folder, result = whole
    shown = render(result)
    for name, guard in method_of(result, "spt")["guards"].items():
        if guard["value"] is not None and guard["label"] not in (None, name):
            assert f"{name.replace('_', ' ')}: {guard['label']}" in shown
    caption = (folder / "report.tex").read_text(encoding="utf-8")
    assert "percent {[}95\\% interval" in caption
    assert "not measured" not in caption


def test_damaged_cell_is_absent_and_says_why(tmp_path: Path) -> None:
    make_comparison(tmp_path, dict.fromkeys("ab", (0.9, 0.5, 0.9)), seeds=(0,), facts=2)
    (tmp_path / "cells/experiment-0/method-1/seed-0/evaluate/summary.json").write_text("{")
    result = write_comparison(tmp_path)
    (absent,) = result["absent"]
    assert (absent["method"], absent["state"]) == ("b", "damaged")
    assert "cannot be read as JSON" in absent["reason"]
    assert [cell["state"] for cell in method_of(result, "b")["cells"]] == ["damaged"]
    assert 'class="damaged" title="damaged">seed 0' in (tmp_path / "report.html").read_text()
    assert method_of(result, "a")["seeds"] == [0]


@pytest.mark.parametrize("change", [{"facts": 3}, {"headline": "contains"}], ids=str)
def test_cells_that_answered_other_questions_are_refused(tmp_path: Path, change: dict[str, int | str]) -> None:
    make_comparison(tmp_path, dict.fromkeys("ab", (0.9, 0.5, 0.9)), seeds=(0,), facts=2)
    make_cell(tmp_path / "cells/experiment-0/method-1/seed-0", "b", (0.9, 0.5, 0.9), **({"facts": 2} | change))  # type: ignore[arg-type]  # one of two keywords
    with pytest.raises(QuestionError, match="did not answer the same questions"):
        write_comparison(tmp_path)


def test_curves_of_methods_without_a_reversed_figure_are_drawn(tmp_path: Path) -> None:
    result = write_comparison(make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(0,), facts=2))
    experiment = result["experiments"][0]
    bare = [{**method, "reversed": None} for method in experiment["methods"]]
    assert cost({**experiment, "methods": bare}) is not None


def test_a_headline_that_is_no_share_is_refused(tmp_path: Path) -> None:
    make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(0,), facts=2)
    path = tmp_path / "cells/experiment-0/method-0/seed-0/evaluate/summary.json"
    write(path, json.loads(path.read_text()) | {"headline": "logprob"})
    with pytest.raises(QuestionError, match=r"headline metric 'logprob' is none of this version's \(exact"):
        write_comparison(tmp_path)


def test_cell_of_an_older_evaluation_shows_guards_without_intervals(tmp_path: Path) -> None:
    make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(0,), facts=2)
    (tmp_path / "cells/experiment-0/method-0/seed-0/evaluate/parts.jsonl").unlink()
    guard = method_of(write_comparison(tmp_path), "a")["guards"]["non_reciprocal"]
    assert (guard["value"], guard["low"], guard["high"]) == (0.8, None, None)


def test_curve_is_the_mean_of_seeds_and_counts_a_repeated_step_once(tmp_path: Path) -> None:
    make_comparison(tmp_path, {"a": (0.9, 0.5, 0.9)}, seeds=(0, 1), facts=2)
    for seed, values in ((0, (0.9, 0.2)), (1, (0.4,))):
        lines = [
            {"step": 10, "tokens": 1000 + 100 * seed, "evaluate": {"forward": None, "reversed": {"exact": value}}}
            for value in values
        ]
        write(tmp_path / f"cells/experiment-0/method-0/seed-{seed}/train/metrics.jsonl", *lines)
    (point,) = method_of(write_comparison(tmp_path), "a")["curve"]
    assert point == {"tokens": 1050.0, "value": pytest.approx(0.3), "low": 0.2, "high": 0.4}


def test_cell_links_lead_to_its_report(whole: Whole) -> None:
    folder, result = whole
    found = Page((folder / "report.html").read_text(encoding="utf-8"))
    links = [unquote(str(value)) for name, value in found.attributes if name == "href" and "cells/" in str(value)]
    assert len(links) == result["cells"] - len(result["absent"])
    assert all((folder / link).is_file() for link in links)


def test_page_needs_no_script_and_no_network(whole: Whole) -> None:
    text = (whole[0] / "report.html").read_text(encoding="utf-8")
    found = Page(text)
    assert {"script", "img", "iframe", "base", "object", "embed"}.isdisjoint(found.tags)
    assert "default-src 'none'" in text
    links = [str(value) for name, value in found.attributes if name in ("src", "href", "xlink:href")]
    assert all(not re.match(r"[a-z]+:(?!,)|//", value) for value in links)
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    references = {value.removeprefix("#") for value in links if value.startswith("#")}
    references |= {str(value) for name, value in found.attributes if name == "aria-labelledby"}
    assert references <= set(ids)


def test_hostile_names_are_text_everywhere(hostile: Whole) -> None:
    folder, result = hostile
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "script" not in Page(page).tags
    assert not re.search("[\x00\u202e]", page)
    assert "49" not in {cell.strip() for cell in Page(page).cells}
    comment = (folder / "report.md").read_text(encoding="utf-8")
    assert "<script" not in comment
    assert "`" not in comment
    for table in re.findall(r"(?:^\|.*\n)+", comment, flags=re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1
    assert "\\textbf" not in (folder / "report.tex").read_text(encoding="utf-8")
    assert max(map(cell_len, render(result).splitlines())) <= 80


def test_table_fits_eighty_columns_and_keeps_every_figure(whole: Whole) -> None:
    text = render(whole[1])
    assert max(map(cell_len, text.splitlines())) <= 80
    assert re.search(r"^rotation-order-tag +100\.0 \[\d[\d.]*-100\] +\d+\.\d \[\d+-\d+\]\* ", text, flags=re.MULTILINE)
    assert re.search(r"^spt-order-tag +0\.0 +80\.0 +1\.\d\d +1\.2M +2\.8 min$", text, flags=re.MULTILINE)


def test_markdown_fits_a_comment_and_names_what_does_not(whole: Whole) -> None:
    text = (whole[0] / "report.md").read_text(encoding="utf-8")
    assert "| baseline |" in text
    many = {**whole[1], "experiments": [{**whole[1]["experiments"][0], "name": f"set {number}"} for number in range(9)]}
    long = markdown(many)
    assert len(long) <= LIMIT
    assert "so only in report.html and report.json" in long
    assert long.count("reverse-statements | 100.0") >= 9


def test_latex_table_has_a_cell_for_each_column(whole: Whole) -> None:
    text = (whole[0] / "report.tex").read_text(encoding="utf-8")
    columns = re.findall(r"\{tabular\}\{(\w+)\}", text)[0]
    body = text.split("\\midrule\n")[1].split("\n    \\bottomrule")[0].splitlines()
    assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in body} == {len(columns)}
    assert len(body) == 17


def test_reports_of_the_same_cells_are_the_same_bytes(tmp_path: Path) -> None:
    make_comparison(tmp_path / "a", {"a": (0.9, 0.5, 0.9), "b": (0.9, 0.1, 0.9)}, seeds=(0, 1), facts=4)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        write_comparison(tmp_path / name)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert {str(path) for path in files} >= {"plots/people-scatter.png", "plots/people-cost.png", "report.tex"}
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in files)


@given(st.lists(st.floats(-2, 3), min_size=1, max_size=20))
def test_labels_keep_their_order_and_their_distance(wanted: list[float]) -> None:
    found = spread_apart(wanted, 0.05, 0.0, 1.0)
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    placed = [found[number] for number in order]
    assert all(later - earlier >= 0.05 - 1e-9 for earlier, later in pairwise(placed))
    assert placed[0] >= -1e-9
    assert placed[-1] <= 1 + 1e-9


@pytest.mark.parametrize(
    ("value", "text"), [(999, "999"), (1_234_567, "1.23M"), (999_999, "1M"), (52_300, "52.3k"), (999_600_000, "1G")]
)
def test_counts_are_written_with_three_digits(value: float, text: str) -> None:
    assert compact(value) == text
    assert visible(compact(value)) == text
