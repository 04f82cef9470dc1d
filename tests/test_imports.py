"""The house: a module imports only from rows above it, and only four rows know that ranks exist."""

import ast
from pathlib import Path

import pytest

import spt

ROOT = Path(spt.__file__).parent
ROWS = (
    ("errors",),
    ("records", "progress"),
    ("artifact", "scratch"),
    ("config",),
    ("corpus",),
    ("model",),
    ("assistant",),
    ("segment",),
    ("augment",),
    ("permute",),
    ("preprocess",),
    ("benchmark",),
    ("encode", "batch"),
    ("loss", "checkpoint"),
    ("metrics", "statistics", "score"),
    ("train",),
    ("report",),
    ("compare",),
    ("cli",),
)
ROW = {name: row for row, names in enumerate(ROWS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} if node.module != "spt" else {f"spt.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


INNER = [path for path in FILES if path.parent != ROOT or path.stem not in ("__init__", "__main__")]


@pytest.mark.parametrize("path", INNER, ids=str)
def test_a_module_imports_only_from_rows_above_it(path):
    own = module_of(path)
    assert own in ROW, f"{own} has no row in the house"
    for name in imported(path):
        top, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if top == "spt" and other and other not in (own, "__version__"):
            assert ROW[other] <= ROW[own], f"{own} imports {other}, which stands below it"


def test_only_four_parts_of_the_house_know_of_ranks():
    for path in FILES:
        if any(name.split(".")[0] == "accelerate" for name in imported(path)):
            assert module_of(path) in {"train", "score", "checkpoint", "assistant"}, path


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_file_is_over_250_lines_and_no_function_over_50(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 250
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 50, f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
