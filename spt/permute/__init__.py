"""Segmentation → Ordering: which order is drawn, and the text in that order."""

from spt.permute.draw import DRAWN, arrange, draw_ordering, generator_for, permute, permute_tokens
from spt.permute.orders import ORDERS

__all__ = ["DRAWN", "ORDERS", "arrange", "draw_ordering", "generator_for", "permute", "permute_tokens"]
