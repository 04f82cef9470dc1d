"""Masked tokens, predicted from everything that is not masked, before and after them.

    mlm_u   every example: a share of its tokens drawn from U(0, 1)                       (arXiv 2406.05183)
    bico    half of all steps: causal; the others: 15% of the tokens, positions mirrored  (arXiv 2311.07468)

As in the code of BICO's authors, a masked token is predicted at the position before it, where a causal model predicts
it too, and nobody attends to masked tokens, not even they themselves. (They toss the coin for each batch of a process,
and never mask the end token.) `mlm_u` does the same, since answers are always generated causally: with the end of a
text masked, its first masked token is then predicted from its prefix alone. Its authors train an encoder and a decoder
of position queries (appendix G), and weigh each text alike however many of its tokens are masked (equation 5); here
each masked token counts alike. Trade-off: scores and masks of whole rows are made, and examples cannot be packed.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

from spt.batch import Batch, collate
from spt.loss.causal import CausalLoss
from spt.loss.draw import Draw, masked_batch
from spt.model.full import check_full, check_mirrored, full_mask
from spt.model.mirror import mirror
from spt.model.tag import choose_mask
from spt.records import Example

_SHARE = 0.15
"""How many of the learned tokens BICO masks."""


class UniformMaskedLoss(CausalLoss):
    """Masked tokens at a rate drawn anew for each example and epoch, with full attention."""

    check = staticmethod(check_full)
    choose_mask = staticmethod(choose_mask)

    @staticmethod
    def collate(examples: Sequence[Example], pad_id: int, draw: Draw, *, packing: bool = False) -> Batch:
        """Return examples, each with a uniform number of masked tokens: at least one, at most all that are learned.

        A rate from U(0, 1) and a coin for each token make any number from none to all equally likely; an example with
        none would teach nothing.
        """
        assert not packing, "the config refuses it"
        return masked_batch(examples, pad_id, draw, _any_number)

    def forward(
        self,
        input_ids: Int[Tensor, "rows width"],
        labels: Int[Tensor, "rows width"],
        predictors: Int[Tensor, " predicted"],
        visible: Bool[Tensor, "rows width"] | None = None,
        **layout: Any,
    ) -> Float[Tensor, ""]:
        """Return the sum of -log p over target tokens, in nats; `visible` is what every token attends to."""
        if visible is not None:
            layout |= self._full(visible)
        return super().forward(input_ids, labels, predictors, **layout)

    def _full(self, visible: Tensor) -> dict[str, Any]:
        return {"attention_mask": full_mask(self.model, visible)}


class BicoLoss(UniformMaskedLoss):
    """By a coin for each step: next-token prediction, or masked tokens with full attention and mirrored positions."""

    check = staticmethod(check_mirrored)

    @staticmethod
    def collate(examples: Sequence[Example], pad_id: int, draw: Draw, *, packing: bool = False) -> Batch:
        """Return examples as they are, or with 15% of the learned tokens masked."""
        assert not packing, "the config refuses it"
        return masked_batch(examples, pad_id, draw, _few) if draw.toss() else collate(examples, pad_id)

    def _full(self, visible: Tensor) -> dict[str, Any]:
        return super()._full(visible) | {"mirrored": mirror(self.model, visible.shape[1])}


def _any_number(generator: Random, learned: Sequence[int]) -> Sequence[int]:
    return generator.sample(learned, generator.randint(1, len(learned))) if learned else []


def _few(generator: Random, learned: Sequence[int]) -> Sequence[int]:
    return [place for place in learned if generator.random() < _SHARE]
