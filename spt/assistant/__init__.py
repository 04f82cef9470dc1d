"""A language model as segmenter's adviser: items in, cuts out; prompt, model and reading are three things.

    prompt (a file) ──▶ backend (local model, server) ──▶ reading (verify, rank)
                          └── cache (SQLite)

It knows strings and offsets, no Segmentation. Trade-off: replies are kept for good in the user's cache folder, since
they are what costs.
"""

from spt.assistant.ask import Answer, UnitAssistant
from spt.assistant.item import Item

__all__ = ["Answer", "Item", "UnitAssistant"]
