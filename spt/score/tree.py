"""Continuations of one prompt → a tree of tokens, which a causal model reads in one pass.

    The botanist is Ann Lee.          token     The botanist is  Ann  Lee  Eve
    The botanist is Ann Moss.         parent    -    0       1   2    3    2
    The botanist is Eve Birch.        predicts                   Lee. Moss Birch
                                                             Ann Eve

What several sequences begin with stands there once, whatever the token boundary between prompt and candidate. A token
sees those on its way to the root and none else, at the position it has in its sequence, so that its logits are those
it would have alone. Nothing is predicted after a last token, so it is not read. Trade-off: what a token may see is a
mask of width x width, so a tree is kept narrow, and a prompt of many candidates is read once a tree.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spt.encode import IGNORED
from spt.records import Example

WIDTH = 256
"""Tokens of a tree with several sequences, at most: what each may see costs width x width."""


@dataclass
class Tree:
    """Tokens with their parents (-1: none) and positions, and what is predicted where.

    `members` are the numbers of the sequences; `edges` hold (member's place in `members`, node, token predicted there).
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    _places: dict[tuple[int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def branches(self) -> bool:
        """Return whether it is more than one sequence of tokens."""
        return any(parent != node - 1 for node, parent in enumerate(self.parents))

    def growth(self, example: Example) -> int:
        """Return how many tokens the example would add."""
        node, shared = -1, 0
        for token in example.input_ids[:-1]:
            node = self._places.get((node, token), -1)
            if node < 0:
                break
            shared += 1
        return len(example.input_ids) - 1 - shared

    def add(self, number: int, example: Example) -> None:
        """Take in a sequence; its labels are what is predicted, the first of all excepted."""
        place, node = len(self.members), -1
        self.members.append(number)
        for position, (token, label) in enumerate(zip(example.input_ids, example.labels, strict=True)):
            if position and label != IGNORED:
                self.edges.append((place, node, token))
            if position < len(example.input_ids) - 1:
                node = self._enter(node, token, position)

    def _enter(self, parent: int, token: int, position: int) -> int:
        node = self._places.setdefault((parent, token), len(self.tokens))
        if node == len(self.tokens):
            self.tokens.append(token)
            self.parents.append(parent)
            self.positions.append(position)
        return node

    def visible(self, width: int) -> NDArray[np.bool_]:
        """Return which tokens each may see: [width, width]. What pads sees itself, since a softmax needs something."""
        seen = np.eye(width, dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


def grow(numbered: Iterable[tuple[int, Example]], width: int = WIDTH) -> Iterator[Tree]:
    """Yield the trees of one prompt's continuations, none wider than `width` unless by one long sequence."""
    tree = Tree()
    # Sorted, so that those that go on alike come into one tree.
    for number, example in sorted(numbered, key=lambda entry: (entry[1].input_ids, entry[0])):
        if tree.members and len(tree) + tree.growth(example) > width:
            yield tree
            tree = Tree()
        tree.add(number, example)
    if tree.members:
        yield tree


def chains(examples: Sequence[Example]) -> Iterator[Tree]:
    """Yield a tree for each sequence alone."""
    for number, example in enumerate(examples):
        tree = Tree()
        tree.add(number, example)
        yield tree
