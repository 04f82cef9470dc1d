"""Records of jsonl, json, csv, tsv, parquet and txt files (plain, .gz, .zst), or of a Hub dataset."""

from spt.corpus.read import input_key, make_record, read_records, read_rows
from spt.corpus.rows import REASONS, Reject, Rejects, Row, stop

__all__ = ["REASONS", "Reject", "Rejects", "Row", "input_key", "make_record", "read_records", "read_rows", "stop"]
