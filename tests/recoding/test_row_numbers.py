"""Rows as they are numbered: by their codes, in the order of the columns."""

from strategies import draws, search

from ldiv_db.database.names import Identifier
from ldiv_db.recoding.encode import packed
from ldiv_db.recoding.encoded import NUMBER_SCALE, Axis

#: Axes of few codes, and of so many that two of them, or more, do not go into one number.
SCALES = (0, 1, 6, 1000, NUMBER_SCALE)


@search(20, draw=draws)
def test_rows_are_numbered_by_their_codes(engine, draw):
    axes, listed = [], []
    for number in range(1, draw.randint(1, 6)):
        scale = draw.choice(SCALES)
        codes = sorted({0, scale, scale + 1, draw.randint(0, scale)})  # that of NULL is one more
        values = [(None if code > scale else code, code) for code in codes]
        dictionary = engine.load("dictionary", {"value": "BIGINT", "code": "INTEGER"}, values)
        name = Identifier(f"q{number}")
        axes.append(Axis(name, name, dictionary, scale, scale + 1, 1.0))
        listed.append(values)
    told = [(value, value) for value in (1, 2, 3)]
    attribute = Axis(
        Identifier("s1"), Identifier("s1"), engine.load("d", {"value": "BIGINT", "code": "INTEGER"}, told), 3, None, 1
    )
    drawn = [[draw.choice(values) for values in (*listed, told)] for _ in range(60)]
    columns = dict.fromkeys([*(axis.code.name for axis in axes), "s1"], "BIGINT")
    rows = engine.load("rows", columns, [[value for value, _ in row] for row in drawn])
    params = {"sensitive": [attribute], "kept": [], "own": [], "key": None, "carried": [], "weight": None}
    found = engine.materialise(
        "coded", "recoding/input/encode_rows", rows=rows, axes=axes, packed=packed(axes), **params
    )
    numbered = sorted(engine.columns(found, "row_id", *columns))
    assert [row[1:] for row in numbered] == sorted(tuple(code for _, code in row) for row in drawn)
