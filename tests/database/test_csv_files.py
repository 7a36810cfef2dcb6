"""CSV files: every line is part of a row, or the file is refused, and types never change what a file writes unseen."""

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from strategies import draws, search

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.csv_files import as_spelt
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError
from ldiv_db.database.sources import resolve_source

LINES = [f"{20 + i},{'FM'[i % 2]},{('flu', 'HIV', 'ulcer')[i % 3]}" for i in range(30)]
TABLE = "\n".join(["age,sex,dx", *LINES, ""])


def opened(con, folder, name="t.csv"):
    return resolve_source(Engine(con), name, folder)


def types(file):
    return dict(file.form.columns)


def rows(con, file):
    return con.execute(f"SELECT * FROM {file.sql('$p')}", {"p": file.path}).fetchall()


def refused(con, folder, content, name="t.csv"):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PolicyError) as caught:
        opened(con, folder, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TABLE),
        ("t.csv", TABLE.replace(",", ";")),
        ("t.tsv", TABLE.replace(",", "\t")),
        ("t.csv", TABLE.replace(",", "|")),
        ("t.csv", "\ufeff" + TABLE),
        ("t.csv", TABLE.replace("\n", "\r\n")),
        ("t.csv", TABLE.replace("\n", "\r")),
        ("t.csv", TABLE.rstrip("\n")),
        ("t.csv", TABLE.replace("\n2", "\n#2")),
        ("t.csv", TABLE.replace("\n25", "\n#N/A")),
        ("t.csv", TABLE.replace("age", "#age")),
        ("t.csv", TABLE.replace("age", '"age"').replace("flu", '"flu, mild"')),
        ("t.csv", TABLE.replace("flu", '"flu\nor a cold"')),
        ("t.csv", TABLE.replace("25,M,ulcer", '25,M,"an ""ulcer"""')),
        ("t.csv", TABLE.replace("\n25", "\n\n25") + "\n\n"),
        ("t.csv", TABLE.replace("flu", '5" pipe')),
    ],
)
def test_every_line_is_a_row(con, tmp_path, name, content):
    with open(tmp_path / name, "w", newline="", encoding="utf-8") as file:
        file.write(content)
    separator = next(mark for mark in ",;\t|" if mark in content)
    wanted = [row for row in csv.reader(io.StringIO(content.removeprefix("\ufeff"), ""), delimiter=separator) if row]
    file = opened(con, tmp_path, name)
    assert [name for name, _ in file.form.columns] == wanted[0]
    assert [tuple(map(str, row)) for row in rows(con, file)] == list(map(tuple, wanted[1:]))


def test_packed_files_and_those_in_utf_16_are_read(con, tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TABLE.replace("\n2", "\n#2").encode()))
    (tmp_path / "u.csv").write_bytes(TABLE.replace("flu", "grippé").encode("utf-16"))
    assert len(rows(con, opened(con, tmp_path, "t.csv.gz"))) == 30
    assert rows(con, opened(con, tmp_path, "u.csv"))[0] == (20, "F", "grippé")


def test_files_of_a_pattern_are_read_as_one_is(con, tmp_path):
    for year, first in ((2023, "1"), (2024, "#2")):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        (folder / "t.csv").write_text(f"age,sex\n{first},F\n2,M\n")
    file = opened(con, tmp_path, "*/*.csv")
    assert sorted(rows(con, file)) == [("#2", "F", 2024), ("1", "F", 2023), ("2", "M", 2023), ("2", "M", 2024)]
    assert [column.name for column in columns_of(Engine(con), file)] == ["age", "sex", "year"]
    (tmp_path / "year=2024" / "t.csv").write_text("sex,age\nF,1\n")
    with pytest.raises(PolicyError, match="another header than the first"):
        opened(con, tmp_path, "*/*.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# made by a tool\n" + TABLE, "has one field in line 1, and 3 in line 2"),
        ("A title\n\n" + TABLE, "has one field in line 1, and 3 in line 3"),
        ("\n" + TABLE, "has a blank first line"),
        ("", "is empty"),
        (TABLE.replace("dx\n", "dx,\n"), "a header of 4 names, the last of them empty, over lines of 3 fields"),
        ("dx;age;\nflu;3\nHIV;4\n", "a header of 3 names, the last of them empty, over lines of 2 fields"),
        (
            TABLE.replace("\n2", "\n1,2").replace("\n3", "\n1,3").replace("\n4", "\n1,4"),
            "3 names over lines of 4 fields",
        ),
        (TABLE.replace("25,M,ulcer", "25,M"), "has 2 fields in line 7, and a header of 3 names"),
        (TABLE.replace("25,M,ulcer", "25,M,ulcer,x"), "has 4 fields in line 7, and a header of 3 names"),
        (TABLE.replace("25,M,ulcer\n", "25,M,ulcer\r\n"), "lines that end in different ways"),
        (TABLE.replace("flu", "grippé").encode("latin-1"), "is not in UTF-8 in line 2.*encoding = 'latin-1'"),
        (b"\xfe\xff" + TABLE.encode("utf-16-be"), "is in UTF-16, big-endian"),
    ],
)
def test_what_is_no_table_is_refused_in_words_that_quote_nothing(con, tmp_path, content, said):
    message = refused(con, tmp_path, content)
    assert re.search(said, message)
    assert not {"ulcer", "HIV", "title", "tool"} & set(message.replace(",", " ").split())


def test_lines_beyond_the_sample_are_held_against_its_types(con, tmp_path):
    ages = [str(20 + i % 60) for i in range(30_000)]
    for last, kind in (("unknown", "VARCHAR"), ("007", "VARCHAR"), ("1.5", "DOUBLE"), ("21", "BIGINT")):
        (tmp_path / "t.csv").write_text("\n".join(["age,x", *(f"{age},a" for age in [*ages, last])]))
        file = opened(con, tmp_path)
        assert types(file)["age"] == kind
        assert len(rows(con, file)) == 30_001
    (tmp_path / "t.csv").write_text("\n".join(["age,x", *(f"{age},a" for age in ages), "1,a,b"]))
    with pytest.raises(PolicyError, match=r"has 3 fields in line 30,00\d, and 2 columns"):
        opened(con, tmp_path)


def test_text_in_another_encoding_beyond_the_sample_is_told_as_such(con, tmp_path):
    """A column of text is read by what uses it: the error that comes then names the encoding, and quotes nothing."""
    lines = [f"{20 + i % 60},grippe" for i in range(30_000)]
    (tmp_path / "t.csv").write_bytes("\n".join(["age,dx", *lines, "30,grippé"]).encode("latin-1"))
    with pytest.raises((PolicyError, DatabaseError)) as told:
        Engine(con).count_groups("counted", opened(con, tmp_path), ("dx", "value"))
    assert "is not in UTF-8, in line 30002 of the file" in str(told.value) and "'latin-1'" in str(told.value)
    assert "gripp" not in str(told.value)


#: What a column holds, the type in which it is counted, and that which writes it as the file does.
SPELLINGS = {
    "yes no": ("VARCHAR", "VARCHAR"),
    "True False": ("VARCHAR", "VARCHAR"),
    "t f": ("VARCHAR", "VARCHAR"),
    "true false": ("BOOLEAN", "BOOLEAN"),
    "10:00 11:30": ("VARCHAR", "VARCHAR"),
    "1.50 2.25": ("DOUBLE", "DECIMAL(18,2)"),
    "1.50 2.5": ("DOUBLE", "VARCHAR"),
    "3 2.5": ("DOUBLE", "VARCHAR"),
    "1.5 2.25": ("DOUBLE", "DOUBLE"),
    "1e3 1E50": ("DOUBLE", "VARCHAR"),
    "01 1": ("VARCHAR", "VARCHAR"),
    "1 2": ("BIGINT", "BIGINT"),
    "31.05.2024 03.05.2024": ("DATE", "VARCHAR"),
    "12/31/2024 03/05/2024": ("DATE", "VARCHAR"),
    "2024-05-31 2024-05-03": ("DATE", "DATE"),
    "2024-05-31T10:00:00 2024-05-03T11:00:00": ("TIMESTAMP", "VARCHAR"),
    "2024-05-31T10:00:00Z 2024-05-03T11:00:00Z": ("TIMESTAMP WITH TIME ZONE", "VARCHAR"),
}


@pytest.mark.parametrize("values", SPELLINGS)
def test_a_column_is_counted_by_its_type_and_published_as_it_is_written(con, tmp_path, values):
    written = values.split(" ") * 3
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *(f"{value},a" for value in written)]))
    file = opened(con, tmp_path)
    spelt = as_spelt(Engine(con), file, ["X"])
    assert (types(file)["x"], types(spelt)["x"]) == SPELLINGS[values]
    # The text of a value, also in statements that ask for nothing else.
    for read in (spelt, *([file] if SPELLINGS[values][0] == SPELLINGS[values][1] else [])):
        found = con.execute(f"SELECT CAST(x AS VARCHAR) FROM {read.sql('$p')}", {"p": read.path}).fetchall()
        assert [text for (text,) in found] == written


def test_equal_values_that_are_written_differently_keep_their_type(con, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1.5,3\n1.50,3\n2,2.5\n")
    file = as_spelt(Engine(con), opened(con, tmp_path), ["x", "y"], counted=["x", "y"])
    assert types(file) == {"x": "DOUBLE", "y": "VARCHAR"}


@search(8, draw=draws)
def test_any_table_is_read_as_python_reads_it(con, tmp_path, draw):
    words = ["a", "#b", "1", "2.50", "no", "x y", "", "é", "03.05.2024", "-", "a;b", "c,d", "e\tf", 'g"h', "i\nj", "#"]
    columns = draw.randint(2, 4)
    table = [[f"c{i}" for i in range(columns)]]
    table += [[draw.choice(words) for _ in range(columns)] for _ in range(draw.randint(5, 60))]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        separator, ends = draw.choice(",;\t|"), draw.choice(["\n", "\r\n"])
        csv.writer(file, delimiter=separator, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows(table)
    found = opened(con, tmp_path)
    spelt = as_spelt(Engine(con), found, [name for name, _ in found.form.columns])
    assert rows(con, spelt) == [tuple(value or None for value in row) for row in table[1:]]


def test_a_query_names_an_encoding(con, tmp_path):
    path = Path(tmp_path, "t.csv")
    path.write_bytes(TABLE.replace("flu", "grippé").encode("latin-1"))
    found = con.execute(f"FROM read_csv('{path}', encoding = 'latin-1', comment = '')").fetchall()
    assert found[0] == (20, "F", "grippé")
