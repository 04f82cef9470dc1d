"""Units in a new order → text: white space keeps its place, the units move between it.

In: a segmentation and what was drawn. Out: the text, and where each piece of it stood. Trade-off: a space is added
where two units would be glued together, so a text grows by a character at some seams.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from spt.permute.orders import Drawn
from spt.records import Piece, Segmentation, writes_no_spaces


def lay_out(
    segmentation: Segmentation, drawn: Drawn, delimiter: str | None, sentinels: Sequence[str]
) -> tuple[str, tuple[Piece, ...]]:
    """Put the units into the gaps: white space keeps its place, the units move between it.

    text    Ann Lee | directed | The Sea.        permutation 2 1 0
    out     The Sea. | directed | Ann Lee        gaps "", " ", " ", ""
    """
    text = segmentation.text
    cores = [_core(text, start, end) for start, end in segmentation.spans]
    edges = [0, *[end for _, end in cores]]
    gaps = [text[edge:start] for edge, (start, _) in zip(edges, cores, strict=False)]
    signs = _signs(drawn, sentinels) if drawn.signs else {}
    parts = [part for part in _parts(text, cores, edges, gaps, drawn.permutation, delimiter, signs) if part[0]]
    texts = [part for part, _ in parts]
    ends = [0, *accumulate(map(len, texts))]
    return "".join(texts), tuple(map(Piece, ends, ends[1:], [source for _, source in parts]))


def _signs(drawn: Drawn, sentinels: Sequence[str]) -> dict[int, str]:
    return {
        place: " ".join(sentinels[section] for other, section in drawn.signs if other == place)
        for place, _ in drawn.signs
    }


def _parts(
    text: str,
    cores: Sequence[tuple[int, int]],
    edges: Sequence[int],
    gaps: Sequence[str],
    permutation: Sequence[int],
    delimiter: str | None,
    signs: Mapping[int, str],
) -> Iterator[tuple[str, int | None]]:
    """Yield each part of the permuted text, and where it stood; some are empty."""
    last, before = "", -1
    for place, unit in enumerate(permutation):
        gap, (start, end) = gaps[place], cores[unit]
        core = text[start:end]
        yield gap, edges[place]
        last = gap[-1:] or last
        if place in signs:
            yield _space(last, signs[place]), None
            yield signs[place], None
            yield gap or _space(signs[place], core), None
        elif place and before == unit - 1:
            # Neighbours as before, but the gap at their new place may be empty where theirs was not.
            if gaps[unit] and last and not last.isspace():
                yield " ", None
        elif place and (delimiter is not None or not last.isspace()):
            yield from _seam(last, gap, core, delimiter)
        yield core, start
        last, before = core[-1:] or last, unit
    yield text[edges[-1] :], edges[-1]


def _seam(last: str, gap: str, after: str, delimiter: str | None) -> Iterator[tuple[str, int | None]]:
    """Yield what stands between two units that did not follow each other, after the gap between them."""
    space = _space(last, after)
    yield space, None
    if delimiter is not None:
        yield delimiter, None
        yield gap or space, None


def _space(last: str, after: str) -> str:
    """Return what keeps two texts apart that would touch: a space, or nothing in a script without spaces."""
    apart = not last or not after or last[-1].isspace() or writes_no_spaces(last[-1]) or writes_no_spaces(after[0])
    return "" if apart else " "


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of a unit without the white space around it."""
    core = text[start:end].strip()
    first = text.index(core, start)  # what stands before it is white space, with which it does not begin
    return first, first + len(core)
