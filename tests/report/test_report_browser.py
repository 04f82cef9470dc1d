"""The page in a real browser: the system's Chromium, driven without one of Playwright's own."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from invented_runs import HOSTILE, METHODS, make_run, make_scores

from spt.report import load_run, write_report
from spt.report.figures import visible

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # Root, as in a container, has no sandbox to give.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    runs = []
    for seed, (name, (forward, backward, natural)) in enumerate(list(METHODS.items())[:3]):
        scores = make_scores(forward, backward, facts=50, seed=seed)
        if name == "spt":
            scores[7] = replace(scores[7], prediction=HOSTILE)
        runs.append(load_run(make_run(folder / name, scores, name=name, natural=natural)))
    write_report(runs, folder)
    return folder / "report.html"


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(5000)
    page.seen = []
    page.on("console", lambda message: page.seen.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (page.seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: page.seen.append(f"request: {request.url}"))
    page.goto(report.as_uri())
    yield page
    page.close()


def position(page: Any) -> str:
    return str(page.locator("[role=status]").inner_text())


def column(page: Any, name: str) -> list[str]:
    return list(page.locator(f"tbody td[data-label='{name}']").all_inner_texts())


def search(page: Any, text: str, expected: str) -> None:
    page.locator("[name=text]").fill(text)
    sync_api.expect(page.locator("[role=status]")).to_have_text(expected)


def test_page_opens_without_a_message_and_asks_the_network_for_nothing(opened: Any, report: Path) -> None:
    assert position(opened) == "Rows 1–200 of 900"
    assert opened.seen == [f"request: {report.as_uri()}"]
    assert opened.locator("noscript p").count() == 0


def test_next_window_follows_the_first(opened: Any) -> None:
    first = list(zip(column(opened, "asked"), column(opened, "run"), strict=True))
    opened.get_by_role("button", name="Next").click()
    second = list(zip(column(opened, "asked"), column(opened, "run"), strict=True))
    assert position(opened) == "Rows 201–400 of 900"
    assert len({*first, *second}) == 400
    opened.get_by_role("button", name="Previous").click()
    assert list(zip(column(opened, "asked"), column(opened, "run"), strict=True)) == first


def test_search_and_filters_keep_the_rows_that_match_all_of_them(opened: Any) -> None:
    search(opened, "PERSON 17", "Rows 1–9 of 9 that match, out of 900")
    assert set(column(opened, "target")) == {"Person 17"}
    rows = opened.locator(".questions tbody tr")
    opened.locator("[name=run]").select_option("spt")
    sync_api.expect(rows).to_have_count(3)
    assert set(column(opened, "run")) == {"spt"}
    opened.locator("[name=relation]").select_option("both")
    sync_api.expect(rows).to_have_count(1)
    assert column(opened, "result") == ["✓ right"]
    search(opened, "nowhere", "No question matches.")


def test_rows_are_sorted_by_numbers_and_by_text_both_ways(opened: Any) -> None:
    button = opened.get_by_role("button", name="log-prob.")
    for direction in ("ascending", "descending"):
        button.click()
        found = [float(text) for text in column(opened, "log-prob.")]
        assert found == sorted(found, reverse=direction == "descending")
        assert opened.locator("th[aria-sort]").all_inner_texts() == ["log-prob."]
        assert opened.locator(f"th[aria-sort={direction}]").count() == 1
    opened.locator("[name=direction]").select_option("reversed")
    sync_api.expect(opened.locator("[role=status]")).to_have_text("Rows 1–200 of 450 that match, out of 900")
    opened.get_by_role("button", name="target").focus()
    opened.keyboard.press("Enter")
    people = [int(text.split()[1]) for text in column(opened, "target")]
    assert people == sorted(people)  # Person 2 before Person 10


def test_hostile_prediction_is_shown_as_text(opened: Any) -> None:
    search(opened, "onerror=alert(2)", "Rows 1–1 of 1 that match, out of 900")
    (cell,) = opened.locator("tbody td[data-label='prediction'] .clip > div").all()
    assert cell.text_content() == visible(HOSTILE)
    assert cell.locator("*").count() == 0
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [line for line in opened.seen if not line.startswith("request: file:")] == []


@pytest.mark.parametrize("settings", [{"width": 390}, {"scheme": "dark"}, {"media": "print"}], ids=json.dumps)
def test_page_never_scrolls_sideways_on_a_phone_in_the_dark_or_on_paper(opened: Any, settings: dict[str, Any]) -> None:
    opened.set_viewport_size({"width": settings.get("width", 794), "height": 800})
    opened.emulate_media(media=settings.get("media"), color_scheme=settings.get("scheme"))
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ink, ground = opened.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    light = [sum(map(int, text.strip("rgba()").split(",")[:3])) > 380 for text in (ink, ground)]
    assert light == ([True, False] if settings.get("scheme") else [False, True])
