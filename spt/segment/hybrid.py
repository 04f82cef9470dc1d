"""The `hybrid` segmenter: spaCy's names and punctuation, the assistant's decisions everywhere else.

In: records. Out: segmentations that never cut a name or a quoted title, whatever the assistant says, and always cut
where a sentence or a clause mark ends. Trade-off: the assistant is asked about whole sentences all the same, so that
its replies are those of the `assistant` segmenter and are kept once for both.
"""

from typing import TYPE_CHECKING

from spt.segment.assistant_units import AssistantSegmenter, Parse
from spt.segment.gaps import ParsedDoc
from spt.segment.name_rules import in_lock, punctuation
from spt.segment.rules import find_gaps, find_units

if TYPE_CHECKING:
    from spacy.tokens import Doc


class HybridSegmenter(AssistantSegmenter):
    """Units from spaCy's locks and punctuation, and a language model."""

    name = "hybrid"

    def _read(self, doc: "Doc") -> Parse:
        gaps = find_gaps(ParsedDoc(doc))
        locked = {gap.at for gap in gaps if in_lock(gap) is False}
        marks = {gap.at: punctuation(gap) for gap in gaps if gap.at not in locked}
        whole = locked | {at for at, cut in marks.items() if cut is False}
        return Parse(
            find_units(doc),
            [token.idx for token in doc],
            whole=[doc[at].idx for at in sorted(whole)],
            forced=[doc[at].idx for at, cut in marks.items() if cut],
        )
