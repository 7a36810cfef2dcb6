"""`ldiv taxonomy` and `ldiv migrate`: the catalog from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from ldiv_db.taxonomies import making

SUMMARY_KEYS = {"name", "origin", "leaves", "height"}
NODE_KEYS = {"node", "parent", "label", "depth", "low", "high", "min_value", "max_value"}


def taxonomy(bed: Any, verb: str, *words: Any) -> Any:
    return bed.call("taxonomy", verb, bed.database, *words)


def fails(bed: Any, verb: str, *words: Any) -> str:
    return str(bed.fails(2, "taxonomy", verb, bed.database, *words))


def test_a_level_file_is_imported_shown_listed_and_used(bed: Any) -> None:
    called = taxonomy(bed, "import", "country", bed.folder / "country.csv")
    assert called.code == 0 and "4 leaves" in called.out
    shown = taxonomy(bed, "show", "country").out
    assert "Europe" in shown and shown.index("Norway") < shown.index("Italy") < shown.index("Japan")
    assert "country.csv" in taxonomy(bed, "list").out
    bed.write_policy(quasi_identifiers={"age": {"numeric": True}, "country": {"taxonomy": "country"}})
    assert bed.call("plan", bed.database, bed.policy).code == 0


def test_json_has_the_documented_keys(bed: Any) -> None:
    found = taxonomy(bed, "import", "country", bed.folder / "country.csv", "--json").json
    assert set(found) == SUMMARY_KEYS and found["leaves"] == 4
    found = taxonomy(bed, "show", "country", "--json").json
    assert set(found) == SUMMARY_KEYS | {"nodes"}
    assert all(set(node) == NODE_KEYS for node in found["nodes"])
    found = taxonomy(bed, "list", "--json").json
    assert set(found) == {"taxonomies"} and set(found["taxonomies"][0]) == SUMMARY_KEYS
    found = taxonomy(bed, "check", "country", "--table", "patients", "--column", "country", "--json").json
    assert found == {"taxonomy": "country", "table": "patients", "column": "country", "missing_values": 0}


def test_one_tree_of_a_nested_file(bed: Any) -> None:
    file = bed.write("trees.yml", "a: {x: [1, 2], y: [3]}\nb: {no: [off]}\n")
    assert taxonomy(bed, "import", "t", file, "--tree", "a").code == 0
    assert "off" not in taxonomy(bed, "show", "t").out
    assert "no tree 'c'" in fails(bed, "import", "u", file, "--tree", "c")


def test_a_table_of_edges(bed: Any) -> None:
    bed.sql("CREATE TABLE edges AS FROM (VALUES ('Norway', 'Europe'), ('Europe', NULL)) v(c, p)")
    words = ("--table", "edges", "--child", "c", "--parent", "p")
    assert taxonomy(bed, "import", "t", *words).code == 0
    assert "Norway" in taxonomy(bed, "show", "t").out
    assert "child" in fails(bed, "import", "u", "--table", "edges", "--child", "x", "--parent", "p")
    assert "no table" in fails(bed, "import", "u", "--table", "edgs", "--child", "c", "--parent", "p")


def test_ranges_are_built(bed: Any) -> None:
    words = ("--ranges", "5,10,20", "--origin", "17", "--from", "0", "--to", "99")
    assert taxonomy(bed, "build", "age", *words).code == 0
    shown = taxonomy(bed, "show", "age").out
    assert "[17 .. 36]" in shown and "[17 .. 21]" in shown and ".0" not in shown
    assert taxonomy(bed, "build", "w", "--ranges", "0.5,5", "--from", "0", "--to", "10", "--decimal").code == 0
    assert "[0 .. 0.5)" in taxonomy(bed, "show", "w").out


def test_ranges_that_are_none(bed: Any) -> None:
    ends = ("--from", "0", "--to", "9")
    for widths in ("5,12", "x", "nan", "inf", "-5", "0.5"):
        assert "ranges" in fails(bed, "build", "age", "--ranges", widths, *ends), widths
    for words in (("--from", "nan", "--to", "9"), ("--from", "0", "--to", "inf"), ("--from", "10", "--to", "9")):
        assert fails(bed, "build", "age", "--ranges", "5", *words)
    assert "leaves" in fails(bed, "build", "age", "--ranges", "0.000001", "--from", "0", "--to", "999", "--decimal")


def test_a_taxonomy_that_exists_needs_replace(bed: Any) -> None:
    words = ("country", bed.folder / "country.csv")
    taxonomy(bed, "import", *words)
    assert "exists" in fails(bed, "import", *words)
    bed.write("country.csv", "Norway;*\nItaly;*\n")
    assert taxonomy(bed, "import", *words, "--replace").code == 0
    assert taxonomy(bed, "show", "country", "--json").json["leaves"] == 2


def test_check_counts_values_without_a_leaf_and_lists_them_if_asked_to(bed: Any) -> None:
    taxonomy(bed, "import", "country", bed.folder / "country.csv")
    bed.sql("CREATE TABLE lands AS SELECT 'Land ' || i AS land FROM range(15) t(i) UNION ALL SELECT NULL")
    words = ("check", "country", "--table", "lands", "--column", "land")
    called, counted = taxonomy(bed, *words), taxonomy(bed, *words, "--json")
    assert (called.code, called.out, counted.code) == (1, "", 1)
    assert called.err == "15 values of land have no leaf in taxonomy country\n"
    assert counted.json == {"taxonomy": "country", "table": "lands", "column": "land", "missing_values": 15}
    called, listed = taxonomy(bed, *words, "--show-values"), taxonomy(bed, *words, "--show-values", "--json")
    assert (called.code, listed.code, listed.json["missing_values"]) == (1, 1, 15)
    assert sorted(called.out.splitlines()) == sorted(listed.json["missing"]) == sorted(f"Land {i}" for i in range(15))
    assert taxonomy(bed, "check", "country", "--table", "patients", "--column", "country").code == 0


def test_check_of_ranges_takes_numbers(bed: Any) -> None:
    taxonomy(bed, "build", "age", "--ranges", "10", "--from", "20", "--to", "39")
    called = taxonomy(bed, "check", "age", "--table", "patients", "--column", "age", "--show-values")
    assert called.code == 1 and all(int(line) >= 40 for line in called.out.splitlines())
    assert "VARCHAR" in fails(bed, "check", "age", "--table", "patients", "--column", "ward")


def test_names_that_are_not_there(bed: Any) -> None:
    taxonomy(bed, "import", "country", bed.folder / "country.csv")
    assert "did you mean 'country'" in fails(bed, "show", "contry")
    assert "no column" in fails(bed, "check", "country", "--table", "patients", "--column", "x")


def test_import_takes_a_file_or_a_table(bed: Any) -> None:
    for words in ((), ("f.csv", "--table", "t"), ("--table", "t"), ("f.csv", "--child", "c"), ("--tree", "t")):
        assert "--table" in fails(bed, "import", "x", *words)


def test_a_name_that_looks_like_sql(bed: Any) -> None:
    name = "'; DROP TABLE patients; --"
    assert taxonomy(bed, "import", name, bed.folder / "country.csv").code == 0
    assert taxonomy(bed, "list", "--json").json["taxonomies"][0]["name"] == name
    assert bed.sql("SELECT count(*) FROM patients") == [(24,)]


def test_migrate(bed: Any) -> None:
    before = bed.files()
    found = bed.call("migrate", bed.database, "--pending", "--json").json
    assert set(found) == {"applied", "pending"} and found["pending"][0] == "0001_taxonomies_and_runs"
    assert bed.files() == before
    called = bed.call("migrate", bed.database)
    assert called.code == 0 and "applied 0001_taxonomies_and_runs" in called.out
    assert bed.call("migrate", bed.database, "--json").json == {"applied": [], "pending": []}
    assert "up to date" in bed.call("migrate", bed.database).out


def test_a_catalog_of_a_newer_version_is_refused(bed: Any) -> None:
    bed.call("migrate", bed.database)
    number = bed.sql("SELECT max(number) + 1 FROM ldiv.migration")[0][0]
    bed.sql(f"INSERT INTO ldiv.migration VALUES ({number}, 'x', 'y', now())")
    for words in (("migrate",), ("migrate", "--pending")):
        assert "older" in bed.fails(3, *words[:1], bed.database, *words[1:])
    assert "older" in bed.fails(3, "run", bed.database, bed.policy)


def test_a_draft_groups_the_values_and_is_read_again(bed: Any) -> None:
    bed.sql(
        "CREATE TABLE drafted AS SELECT i % 40 AS age, format('{:05d}', i * 7) AS zip, ['Fracture of arm',"
        " 'fracture of leg', 'acute asthma', 'Chronic asthma', 'Flu'][i % 5 + 1] AS what, DATE '2020-01-01' AS day,"
        " ' x' || i AS blank FROM range(80) s(i)"
    )
    groups = {"Fracture of arm": "fracture …", "fracture of leg": "fracture …", "acute asthma": "… asthma",
              "Chronic asthma": "… asthma", "Flu": "Flu"}  # fmt: skip
    for column, by in (("age", "quantiles"), ("zip", "prefixes"), ("what", "words")):
        file = bed.folder / f"{column}.csv"
        found = taxonomy(bed, "new", "drafted", column, "--file", file, "--json").json
        lines = [line.split(";") for line in file.read_text().splitlines()]
        assert found == {"file": str(file), "column": column, "by": by, "leaves": len(lines)}
        bed.sql(
            f"CREATE TABLE v_{column} AS SELECT CAST({column} AS VARCHAR) AS v, count(*) AS n FROM drafted GROUP BY 1"
        )
        rows = dict(bed.sql(f"FROM v_{column}"))
        assert sorted(line[0] for line in lines) == sorted(rows)
        shown = taxonomy(bed, "show", file, "--table", "drafted", "--column", column, "--json").json
        assert shown["rows_missing"] == 0
        counted = {node["label"]: node["rows"] for node in shown["nodes"]}
        assert counted["*"] == 80 and {leaf: counted[leaf] for leaf in rows} == rows
        for _, *above in lines:
            for label in {*above}:
                assert counted[label] == sum(rows[line[0]] for line in lines if label in line)
        if column == "what":
            assert {line[0]: line[1] for line in lines} == groups
        if column == "age":
            for value, *above, _ in lines:
                ends = [label.strip("[]").split(" .. ") for label in above]
                assert all(int(low) <= int(value) <= int(high) for low, *_, high in [[*e, e[-1]] for e in ends])
    assert "exists" in fails(bed, "new", "drafted", "age", "--file", bed.folder / "age.csv")
    assert "quantiles are of numbers" in fails(bed, "new", "drafted", "zip", "--by", "quantiles")
    assert "no way" in fails(bed, "new", "drafted", "zip", "--by", "luck")
    assert "blanks at their ends" in fails(bed, "new", "drafted", "blank")


def test_ready_taxonomies_are_shown_and_checked_with_the_rows_of_a_table(
    bed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ICD-10-CM a few blocks: statements with all of them take most of the time."""
    every, kept = making._rows, {"E08-E13", "I10-I1A", None}
    monkeypatch.setattr(making, "_rows", lambda file: [row for row in every(file) if row.get("block") in kept])
    bed.sql(
        "CREATE TABLE codes AS FROM (VALUES ('E11.9', 91), ('E13', 5), ('I10', 5), ('unknown', NULL), ('', NULL),"
        " (NULL, NULL)) AS v(icd, age)"
    )
    of_codes = ("--table", "codes", "--column", "icd")
    shown = taxonomy(bed, "show", "icd10cm", *of_codes, "--json").json
    rows = {node["label"]: node["rows"] for node in shown["nodes"]}
    assert rows["E08-E13"] == 2 and rows["*"] == 3 and shown["rows_missing"] == 2
    found = taxonomy(bed, "check", "icd10cm", *of_codes, "--show-values")
    assert (found.code, found.out.split("\n")[:2]) == (1, ["", "unknown"])
    assert "2 values of icd have no leaf" in found.err
    shown = taxonomy(bed, "show", "hipaa_age", "--table", "codes", "--column", "age").out
    assert "90+  1" in shown and "[0 .. 29]  2" in shown and "[30 .. 59]" not in shown
    assert "Northern Europe" in taxonomy(bed, "show", "country_name").out
    assert "made of the values" in fails(bed, "show", "icd10cm")
    assert "--column" in fails(bed, "show", "icd10cm", "--table", "codes")
