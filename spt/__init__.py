"""Semantic-aware Permutation Training: from a corpus to a measured model.

corpus ──▶ segment ──▶ permute ──▶ encode ──▶ batch ──▶ loss ──▶ checkpoint ──▶ score ──▶ report
Record     Segmentation  Ordering    Example     tensors   nats      folder       Score      table, page
"""

__version__ = "0.1.0"
