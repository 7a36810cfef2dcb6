"""The databases that tests start give back what was put into them."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from servers import TYPES, comparable

ROWS = [
    ('it\'s "ü" \\ \n\té', -3, 0.25, Decimal("1.50"), date(1969, 1, 2), datetime(2001, 1, 2, 3), True),
    ("", 2**31 - 1, -1e300, Decimal("-0.25"), date(2262, 4, 12), datetime(1969, 1, 2, 3, 4, 5, 6), False),
    (None,) * 7,
]


def test_a_table_comes_back(server):
    names = ["select", 'my "a`ge"', "größe", "o'k", "Big", "plain", "-- y"]
    if server.plain_names:
        names = [f"größe_{place}" for place in range(len(names))]
    name = "my t" if server.plain_names else 'my "t'
    table = server.quoted(name)
    server.create(name, list(zip(names, TYPES, strict=True)), ROWS)
    listed = ", ".join(server.quoted(name) for name in names)
    found = server.query(f"SELECT {listed} FROM {table}")
    assert comparable(found) == comparable(ROWS)
    assert found[0][:2] and server.version()
    server.create(name, [("x", "integer")], [])
    assert server.query(f"SELECT * FROM {table}") == []
    server.drop(name)
    with pytest.raises(Exception, match="my"):
        server.query(f"SELECT * FROM {table}")
