"""The page in a real browser: the system's Chromium, driven without one of Playwright's own."""

import os
import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from spt.compare.columns import Json

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
LABELS = """[...document.querySelectorAll("figure")].map(figure => [...figure.querySelectorAll("svg text")]
  .map(text => {
  const {left, right, top, bottom} = text.getBoundingClientRect();
  return [text.textContent.trim(), left, right, top, bottom];
}))"""
BEYOND = """[...document.querySelectorAll("figure svg")].map(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => text.getBoundingClientRect().right > frame.right + 1).length;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # Root, as in a container, has no sandbox to give.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()


def show(browser: Any, folder: Path, width: int = 1200, scheme: str = "light") -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(5000)
    page.seen = []
    page.on("console", lambda message: page.seen.append(f"{message.type}: {message.text}"))
    page.on("dialog", lambda dialog: (page.seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: page.seen.append(f"request: {request.url}"))
    page.goto((folder / "report.html").as_uri())
    return page


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", ["whole", "hostile"])
def test_page_opens_quietly_and_never_scrolls_sideways(
    browser: Any, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    folder, _ = request.getfixturevalue(name)
    page = show(browser, folder, width)
    assert page.seen == [f"request: {(folder / 'report.html').as_uri()}"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_labels_of_the_drawings_name_every_method_and_overlap_nowhere(browser: Any, whole: tuple[Path, Json]) -> None:
    folder, result = whole
    page = show(browser, folder)
    names = {method["name"] for method in result["experiments"][0]["methods"] if method["seeds"]}
    drawings = page.evaluate(LABELS)
    assert len(drawings) == 2
    for texts in drawings:
        labels = [text for text in texts if text[0] in names]
        assert {name for name, *_ in labels} == names
        for (_, left, right, top, bottom), (_, left2, right2, top2, bottom2) in combinations(labels, 2):
            assert right <= left2 or right2 <= left or bottom <= top2 + 1 or bottom2 <= top + 1
    assert page.evaluate(BEYOND) == [0, 0]
    page.close()


def test_drawings_follow_the_dark_page(browser: Any, whole: tuple[Path, Json]) -> None:
    page = show(browser, whole[0], scheme="dark")
    fills = page.evaluate("[...document.querySelectorAll('figure svg text')].map(text => getComputedStyle(text).fill)")
    assert len(set(fills)) == 1
    assert sum(map(int, fills[0].strip("rgb()").split(", "))) > 600
    page.close()
