"""docs/config.md is what the sections say, and leaves no key out."""

import re
from pathlib import Path

from spt.config import Config
from spt.config.reference import reference

ROOT = Path(__file__).parents[2]


def keys_of(section):
    for key, field in section.model_fields.items():
        yield key
        for inner in re.findall(r"spt\.config\.\w+\.(\w+)", str(field.annotation)):
            found = next((one for one in all_sections() if one.__name__ == inner), None)
            yield from keys_of(found) if found else ()


def all_sections(base=Config.__mro__[1]):
    for one in base.__subclasses__():
        yield one
        yield from all_sections(one)


def test_the_page_is_made_from_the_sections_as_they_are():
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m spt.config.reference > docs/config.md"


def test_every_key_of_every_section_has_a_row_and_every_link_a_heading():
    page = reference()
    keys = set(keys_of(Config))
    assert {"loss_on", "neutral_text", "order_tag", "repeat", "api_key_env"} <= keys
    assert keys <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    headings = {heading.replace(".", "") for heading in re.findall(r"^## ([\w.]+)$", page, re.MULTILINE)}
    links = set(re.findall(r"\]\(#(\w+)\)", page))
    assert {"datatrain", "segmentassistant"} <= links <= headings
