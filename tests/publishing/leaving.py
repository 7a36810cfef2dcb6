"""What of a release others get to see, to the byte, however it was made: tables in their physical order, and files.

A release says nothing beyond its classes, if whatever leaves stays the same where the classes do and the values of
their rows are dealt out anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ldiv_db.database.names import Relation


def table_content(con: Any, *tables: Relation) -> list[Any]:
    """Columns, types and rows of tables, in the order in which they lie there."""
    found = []
    for table in tables:
        shown = f"SELECT rowid, CAST(COLUMNS(*) AS VARCHAR) FROM {table.sql()} ORDER BY rowid"
        rows = con.execute(shown).fetchall()
        assert rows, "what is compared is there"
        found.append((con.execute(f"DESCRIBE {table.sql()}").fetchall(), rows))
    return found


def file_content(write: Callable[[Path], None], folder: Path, name: str, repeats: int = 1) -> list[bytes]:
    """The bytes of a file as it is written, so many times."""
    found = []
    for _ in range(repeats):
        path = folder / name
        write(path)
        found.append(path.read_bytes())
        path.unlink()
    return found


def same_but(first: bytes, other: bytes, alike: Sequence[bytes]) -> bool:
    """Whether two files agree in all words of eight bytes in which those agree that are `alike`.

    A database file has an identity that is drawn for it, the name under which it was attached, and checksums of that.
    """
    assert len({len(content) for content in alike}) == 1
    words = range(0, len(first), 8)
    noise = {word for word in words if any(content[word : word + 8] != first[word : word + 8] for content in alike)}
    assert len(noise) < 16, "what differs of itself is no more than identity, name and checksums"
    return len(first) == len(other) and all(
        first[word : word + 8] == other[word : word + 8] for word in words if word not in noise
    )


def deal_out(draw: random.Random, classes: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The values, dealt out anew among the rows of each class."""
    found = list(values)
    for number in set(classes):
        places = [place for place, own in enumerate(classes) if own == number]
        for place, value in zip(places, draw.sample([values[place] for place in places], len(places)), strict=True):
            found[place] = value
    return found
