"""A private database on disk: order, look-ups and counts over more rows than memory should hold.

In: the tables it is to have. Out: a connection of SQLite. It has no name, belongs to one process, and is gone when it
is closed; what fits into SQLite's cache of 2 MB never reaches the disk (TMPDIR says which one). Trade-off: a row takes
some microseconds on its way there, and as many back.
"""

import sqlite3


def open_scratch(schema: str) -> sqlite3.Connection:
    """Return an empty database with the tables of `schema`; whoever opens it closes it."""
    # An owner may be collected, and so close it, in any thread.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    # Nothing is ever rolled back or found again, so one transaction without a journal lasts to the end.
    database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {schema}; BEGIN")
    return database
