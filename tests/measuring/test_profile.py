"""Profiles piece by piece: keys of other tables, ways to generalise, the columns that tell most, what to require."""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from strategies import draws, search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.measuring import uniqueness as risk
from ldiv_db.measuring.generalisations import falling_lengths
from ldiv_db.measuring.profile import ProfileRequest, profile_table
from ldiv_db.measuring.roles import why_by_name, why_by_values
from ldiv_db.measuring.starter_policy import make_starter_policy
from ldiv_db.measuring.suggestions import distance_between, suggest
from ldiv_db.measuring.uniqueness import Summary, Texts


def profiled(con: Any, *sensitive: str, table: str = "t", keys: list[str] | None = None) -> Any:
    return profile_table(Engine(con), Relation.parse(table), ProfileRequest(None, keys, sensitive))


def reasons(con: Any, table: str = "t") -> dict[str, tuple[str, str]]:
    return {column.column.name: (column.role, column.reason) for column in profiled(con, table=table).columns}


# -- keys of other tables -----------------------------------------------------------------------------


@pytest.fixture
def warehouse(con: Any) -> Any:
    """People who have several rows each in a table of visits, and others whose numbers or types do not fit."""
    con.execute("CREATE TABLE person (p_personkey INTEGER, name VARCHAR)")
    con.execute("INSERT INTO person SELECT i, 'n' || i FROM range(60) AS r(i)")
    con.execute("CREATE TABLE t AS SELECT CAST(i % 60 AS INTEGER) AS t_personkey, i % 7 AS a FROM range(300) AS r(i)")
    return con


def test_a_column_of_the_same_stem_names_rows_of_another_table(warehouse: Any) -> None:
    for kind in ("INTEGER", "BIGINT"):
        warehouse.execute(f"ALTER TABLE t ALTER t_personkey TYPE {kind}")
        assert reasons(warehouse)["t_personkey"] == ("identifier", "names rows of person")


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO person VALUES (7, 'again')",
        "INSERT INTO person VALUES (NULL, 'nobody')",
        "DELETE FROM person WHERE p_personkey = 7",
        "ALTER TABLE person ALTER p_personkey TYPE VARCHAR",
        "ALTER TABLE person RENAME p_personkey TO number",
    ],
)
def test_a_column_that_is_no_key_or_lacks_a_value_owns_nothing(warehouse: Any, change: str) -> None:
    warehouse.execute(change)
    assert "names rows" not in reasons(warehouse)["t_personkey"][1]


def test_a_foreign_key_says_so_whatever_its_name_is(con: Any) -> None:
    con.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
    con.execute("CREATE TABLE t (who INTEGER REFERENCES person (id), a INTEGER)")
    con.execute("INSERT INTO person FROM range(40)")
    con.execute("INSERT INTO t SELECT i % 30, i % 9 FROM range(200) AS r(i)")
    assert reasons(con)["who"] == ("identifier", "names rows of person")


def test_an_id_is_found_by_the_name_of_its_table(con: Any) -> None:
    con.execute("CREATE SCHEMA crm")
    con.execute("CREATE TABLE crm.customers AS SELECT i AS id FROM range(40) AS r(i)")
    con.execute("CREATE TABLE t AS SELECT i % 40 AS customer_id, i % 9 AS a FROM range(200) AS r(i)")
    assert reasons(con)["customer_id"] == ("identifier", "names rows of customers")


def test_a_list_of_categories_owns_nobody(con: Any) -> None:
    """A hundred rows a value and more are no person's."""
    con.execute("CREATE TABLE countries AS SELECT 'c' || i AS country FROM range(4) AS r(i)")
    con.execute("CREATE TABLE t AS SELECT 'c' || i % 4 AS country, i % 9 AS a FROM range(400) AS r(i)")
    assert reasons(con)["country"][0] == "quasi-identifier"
    con.execute("DELETE FROM t WHERE a = 8")
    assert reasons(con)["country"] == ("identifier", "names rows of countries")


def test_nothing_is_asked_of_the_tables_beside_a_file(con: Any, tmp_path: Any) -> None:
    con.execute("CREATE TABLE person AS SELECT i AS code FROM range(40) AS r(i)")
    con.execute(f"COPY (SELECT i % 40 AS code, i % 9 AS a FROM range(200) AS r(i)) TO '{tmp_path}/t.parquet'")
    profile = ldiv_db.profile(con, f"{tmp_path}/t.parquet")
    assert [column.role for column in profile.columns] == ["quasi-identifier", "quasi-identifier"]


# -- roles --------------------------------------------------------------------------------------------


def summary(kind: str, distinct: int, rows: int = 1000, name: str = "x") -> Summary:
    texts = Texts(1, 9, 1, 0, 0, 0) if kind == "VARCHAR" else None
    return Summary(Column(name, kind), rows, distinct, 0, 1, 0, texts)


@pytest.mark.parametrize(
    ("kind", "distinct", "taken"),
    [
        ("INTEGER", 951, True), ("INTEGER", 950, False), ("VARCHAR", 501, True), ("VARCHAR", 500, False),
        ("DOUBLE", 951, True), ("DOUBLE", 950, False), ("DATE", 1000, False), ("TIMESTAMP", 1000, False),
    ],
)  # fmt: skip
def test_columns_of_many_values_are_identifiers_unless_they_are_times(kind: str, distinct: int, taken: bool) -> None:
    assert bool(why_by_values(summary(kind, distinct))) is taken


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("salary", False), ("Gross_Income", False), ("income_eur_net", False), ("fee_no", True), ("income_id", True),
        ("discharge", True), ("feed", True), ("discharge_number", True),
    ],
)  # fmt: skip
def test_whole_numbers_identify_nobody_where_they_are_amounts_by_name(name: str, taken: bool) -> None:
    assert bool(why_by_values(summary("INTEGER", 1000, name=name))) is taken


def test_numbers_with_decimals_identify_nobody() -> None:
    """A cost of its own in every row is a measure, and a column of whole numbers numbers rows, whatever its type."""
    whole = summary("DOUBLE", 1000, name="customer")
    assert why_by_values(whole) and why_by_name(whole)
    cost = replace(whole, decimals=1)
    assert not why_by_values(cost) and not why_by_name(cost)


def test_a_few_values_identify_nobody_by_being_most(con: Any) -> None:
    assert not why_by_values(summary("VARCHAR", 15, rows=24))
    assert why_by_values(summary("VARCHAR", 24, rows=24))


@pytest.mark.parametrize(
    ("name", "kind", "taken"),
    [
        ("name", "VARCHAR", True), ("Last_Name", "VARCHAR", True), ("email", "VARCHAR", True), ("ssn", "VARCHAR", True),
        ("filename", "VARCHAR", False), ("patient_id", "INTEGER", True), ("patientId", "BIGINT", True),
        ("o_custkey", "INTEGER", True), ("id", "VARCHAR", True), ("paid", "INTEGER", False),
        ("monkey", "DATE", False), ("width", "INTEGER", False), ("name", "INTEGER", False),
    ],
)  # fmt: skip
def test_names_tell_what_identifies(name: str, kind: str, taken: bool) -> None:
    assert bool(why_by_name(summary(kind, 200, name=name))) is taken


# -- ways ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [(2, [2, 1]), (3, [3, 1]), (5, [5, 3, 1]), (8, [8, 6, 4, 2]), (10, [10, 8, 6, 4, 2]), (17, [17, 13, 9, 5, 1])],
)
def test_prefixes_fall_from_the_whole_code(longest: int, lengths: list[int]) -> None:
    assert falling_lengths(longest) == lengths


def test_prefixes_are_few_and_fall() -> None:
    for longest in range(2, 200):
        lengths = falling_lengths(longest)
        assert lengths[0] == longest and lengths == sorted(set(lengths), reverse=True) and 2 <= len(lengths) <= 5


@pytest.mark.parametrize(
    ("values", "way"),
    some(
        [
            ("CASE i % 2 WHEN 0 THEN 'a;\"b' ELSE 'y*' END", {"file": "x.csv"}),
            ("lpad(CAST(hash(i) % 60 AS VARCHAR), 5, '0')", {"prefix": [5, 3, 1]}),
            ("CASE i % 2 WHEN 0 THEN '*' ELSE 'y' END", None),
            ("lpad(CAST(i % 40 AS VARCHAR), 5, '0')", {"file": "x.csv"}),
            ("'a b' || hash(i) % 60", {"file": "x.csv"}),
            ("' a' || i % 6", {"prefix": [3]}),
            ("chr(160) || i % 6", {"prefix": [2]}),
            ("'line' || chr(10) || i % 6", {"prefix": [6]}),
            ("CASE i % 3 WHEN 0 THEN 'child' WHEN 1 THEN 'root' ELSE 'dog' END", {"prefix": [5]}),
            ("CASE i % 2 WHEN 0 THEN 'X' ELSE 'y' END", {"prefix": [1]}),
            ("CASE i % 2 WHEN 0 THEN '' ELSE 'y' END", {"prefix": [1]}),
            ("CASE WHEN i < 0 THEN 'y' END", None),
            ("i % 2 = 0", None),
        ],
    ),
)
def test_a_text_finds_a_way_that_a_run_takes(con: Any, tmp_path: Any, values: str, way: Any) -> None:
    con.execute(f"CREATE TABLE t AS SELECT {values} AS x, i % 30 AS age, 'd' || i % 7 AS s FROM range(300) AS r(i)")
    profile = profiled(con, "s")
    found = {column.column.name: column for column in profile.columns}["x"]
    assert (found.way.settings.get("taxonomy") if found.way else None) == way
    skeleton, _ = make_starter_policy(Engine(con), profile, Relation.parse("t"), "t")
    assert skeleton is not None
    for name, text in skeleton.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert ldiv_db.run(con, {"algorithm": "mondrian"} | skeleton.policy, folder=tmp_path).loss.rows_published == 300


@pytest.mark.parametrize("name", some(["home_plz", "zip", "ZIP_CODE", "postcode", "postal_code"]))
def test_postal_codes_are_known_by_name(con: Any, name: str) -> None:
    con.execute(f"CREATE TABLE t AS SELECT 'AB' || i % 12 || ' 1C' AS \"{name}\", i % 7 AS a FROM range(100) AS r(i)")
    assert profiled(con).columns[0].way.settings == {"taxonomy": {"prefix": [7, 5, 3, 1]}}


@pytest.mark.parametrize(
    ("name", "values", "taken"),
    some(
        [
            ("home", ["Norway", "Denmark", "Narnia"], None),
            ("country", ["NO", "DK", "KE"], "country_alpha2"),
            ("state", ["AL", "CA", "DE"], None),  # all of them are codes of countries
            ("icd", ["E119", "250.00"], None),
            ("icd_code", ["E119", "I10"], "icd10cm"),
            ("home", ["Norway", "Denmark", "Kenya"], "country_name"),
            ("nationality", ["NOR", "DNK", None], "country_alpha3"),
            ("ward", ["A01", "B02"], None),
            ("cause", [f"A{number / 10}" for number in range(200, 290)], "icd10cm"),
            ("cause", [f"A{number / 10}" for number in range(200, 300)], None),  # A29 is no category
        ],
        2,
    ),
)
def test_taxonomies_of_the_program_are_proposed_where_values_show_them(
    con: Any, name: str, values: list[str | None], taken: str | None
) -> None:
    con.execute(f'CREATE TABLE t ("{name}" VARCHAR, s VARCHAR)')
    con.executemany("INSERT INTO t SELECT ?, 'd' || i FROM range(6) AS r(i)", [(value,) for value in values])
    found = profiled(con, "s").columns[0]
    assert (found.way.settings.get("taxonomy") == taken) is (taken is not None)
    if taken:
        policy = {"source": "t", "target": "out", "quasi_identifiers": {name: found.way.settings}, "sensitive": ["s"]}
        policy |= {"require": [{"frequency": 3}], "algorithm": "topdown"}
        assert ldiv_db.run(con, policy).loss.rows_published == 6 * len(values)


# -- forms --------------------------------------------------------------------------------------------


def form_of(value: str) -> str:
    """The form of a text, character by character."""
    kinds = {"Lu": "A", "Nd": "9", "Nl": "9", "No": "9"}
    known = [(kinds.get(unicodedata.category(c)) or ("a" if c.isalpha() else c if c.isascii() else "?")) for c in value]
    runs = [(kind, len(list(run))) for kind, run in itertools.groupby(known)]
    return "".join(kind * 6 + "…" if kind in "Aa9" and n > 6 else kind * n for kind, n in runs)


@search(2, seed=seeds)
def test_forms_are_those_of_many_rows_of_several_values(con: Any, seed: int) -> None:
    draw = random.Random(seed)
    known = ["AB{}-{}", "{}", "Ünter {} ß", "日本{}", "Abcdefghi {}", "x\u00a0{}", "zzsecretvalue", "{}{}{}{}", "№{}'"]
    chosen = draw.sample(known, 6)
    values = [draw.choice(chosen).format(*(draw.randrange(100) for _ in range(4))) for _ in range(200)]
    rows = [(value, len(value), "2020-01-01") for value in values]
    fill(con, "t", {"x": "VARCHAR", "n": "INTEGER", "d": "DATE"}, rows)
    counts: dict[str, Counter[str]] = {}
    for value in values:
        counts.setdefault(form_of(value), Counter())[value] += 1
    shown = {form: sum(c.values()) for form, c in counts.items() if sum(c.values()) - max(c.values()) >= 10}
    text, number, day = (column.forms for column in profiled(con).columns)
    assert list(text) == sorted(shown, key=lambda form: (-shown[form], form))[:3]
    assert set(number) <= {"9", "99"} and day == ()
    assert not any("secret" in form for form in text)


# -- few columns --------------------------------------------------------------------------------------


@search(3, draw=draws)
def test_the_few_columns_that_tell_most_agree_with_plain_python(con: Any, draw: random.Random) -> None:
    names = [f"q{i}" for i in range(draw.randint(1, 5))]
    kinds = [draw.choice([2, 5, 30]) for _ in names]
    rows = [tuple(draw.choice([None, *map(str, range(kind))]) for kind in kinds) for _ in range(draw.randint(2, 60))]
    fill(con, "t", dict.fromkeys(names, "VARCHAR"), rows)
    found = {few.columns: few for few in profiled(con, keys=names).uniqueness.small}

    def counts(chosen: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row[names.index(name)] for name in chosen) for row in rows)

    for chosen, few in found.items():
        expected = counts(chosen)
        assert few.combinations == len(expected)
        assert few.unique_rows == sum(count == 1 for count in expected.values())
    for size in (1, 2):
        best = [sum(n == 1 for n in counts(chosen).values()) for chosen in itertools.combinations(names, size)]
        mine = [few.unique_rows for chosen, few in found.items() if len(chosen) == size]
        assert mine == (sorted(best, reverse=True)[: len(mine)] if size < len(names) else [])
    assert all(len(chosen) < len(names) for chosen in found)


def test_what_is_counted_keeps_to_its_budget(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ", ".join(f"i % {n} AS q{n}" for n in range(2, 12))
    con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(1000) AS r(i)")
    for budget in (0, 500_000, 4_000_000):
        monkeypatch.setattr(risk, "SMALL_BUDGET", budget)
        statements: list[Any] = []
        engine = Engine(con, on_statement=statements.append)
        profile_table(engine, Relation.parse("t"))
        counted = [s for s in statements if s.template == "measuring/profile/count_unique"]
        read = sum(s.sql.partition("GROUP BY")[2].count(",") + 1 for s in counted) * risk.STATEMENT_ROWS
        assert read <= budget
        assert bool(counted) is (budget >= 500_000)


def test_none_of_many_columns_is_left_out(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "MANY_COLUMNS", 3)
    for columns, left_out in ((3, 3), (4, 0)):
        names = ", ".join(f"i % {n + 5} AS q{n}" for n in range(columns))
        con.execute(f"CREATE OR REPLACE TABLE t AS SELECT {names} FROM range(50) AS r(i)")
        keys = [f"q{n}" for n in range(columns)]
        found = profiled(con, keys=keys).uniqueness
        assert len(found.unique_without) == left_out and found.unique_rows > 0


# -- what to require ----------------------------------------------------------------------------------


def suggested(con: Any, rows: list[tuple[str | None, int]], kind: str = "VARCHAR") -> Any:
    con.execute(f"CREATE OR REPLACE TABLE t (s {kind}, q INTEGER)")
    con.executemany("INSERT INTO t SELECT ?, i FROM range(?) AS r(i)", rows)
    return suggest(Engine(con), Relation.parse("t"), profiled(con, "s").sensitive[0])


@pytest.mark.parametrize(
    ("rows", "require"),
    [
        ([("a", 10), ("b", 10), ("c", 10), ("d", 10)], [{"frequency": 3}]),
        ([("a", 10), ("b", 7), ("c", 5)], [{"frequency": 2}]),
        ([("a", 10), ("b", 10)], [{"frequency": 2}]),
        ([("a", 50), ("b", 25), ("c", 24)], [{"distinct": 3}, {"alpha_k": {"alpha": 0.68, "k": 5}}]),
        ([("a", 9_990), ("b", 10)], [{"distinct": 2}, {"alpha_k": {"alpha": 0.99934, "k": 5}}]),
        ([(None, 80), ("b", 20)], [{"distinct": 2}, {"alpha_k": {"alpha": 0.87, "k": 5}}]),
    ],
)
def test_what_is_required_can_be_met_by_all_rows(con: Any, rows: list[tuple[str, int]], require: Any) -> None:
    """As the whole table, which is one class, does."""
    assert suggested(con, rows).require == require
    con.execute("UPDATE t SET q = 1")
    (audit,) = ldiv_db.check(con, "t", ["q"], "s", require)
    assert audit.holds


@search(3, draw=draws)
def test_the_bound_lies_between_the_largest_share_and_certainty(con: Any, draw: random.Random) -> None:
    others = [(f"v{i}", draw.randint(1, 5)) for i in range(draw.randint(1, 4))]
    rest = sum(count for _, count in others)
    most = draw.randint(rest + 1, rest * draw.choice([2, 30, 500]) + 2)
    alpha = Fraction(str(suggested(con, [("v", most), *others]).require[1]["alpha_k"]["alpha"]))
    share = Fraction(most, most + rest)
    assert share + (1 - share) / 3 <= alpha < share + (1 - share) * Fraction(2, 5) or alpha < 1
    assert share < alpha < 1


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([("Flu", 10), ("Cold", 10), ("Cough", 10)], None),
        ([("Flu", 20), ("Cold", 10), ("Cough", 10)], ("Flu",)),
        ([("Flu", 30), (" None", 1), ("Cough", 10)], ("Flu",)),
        ([("Flu", 30), (None, 2), ("NULL", 4), ("Cough", 10)], ("Flu",)),
        ([("Flu", 12), (None, 2), ("NULL", 9), ("Cough", 10)], ("NULL", None)),
        ([("0", 3), ("n/a", 2)], None),
    ],
)
def test_values_that_may_be_harmless(con: Any, rows: list[tuple[str | None, int]], values: Any) -> None:
    found = suggested(con, rows).harmless
    assert (found.values if found else None) == values
    if found:
        others = [count for value, count in rows if value not in values]
        assert found.rows == sum(count for value, count in rows if value in values)
        assert found.largest_l == sum(count for _, count in rows) // max(others)


def test_numbers_may_be_harmless_as_their_column_writes_them(con: Any) -> None:
    found = suggested(con, [("0", 30), ("7.5", 9), ("8.25", 9)], "DECIMAL(6, 2)").harmless
    assert found.values == ("0.00",)


def test_spellings_are_counted_as_plain_python_counts_them(con: Any) -> None:
    values = ["Flu", "flu", " FLU", "Flu\u00a0", "Asthma", "asthma ", "Kölner", "KO\u0308LNER", "None", None]
    con.execute("CREATE TABLE t (s VARCHAR, q INTEGER)")
    con.executemany("INSERT INTO t VALUES (?, 1)", [(value,) for value in values])
    (found,) = profiled(con, "s").sensitive
    folded = Counter(value and unicodedata.normalize("NFC", value.strip().lower()) for value in values)
    assert found.folded is not None and list(found.folded.counts) == sorted(folded.values(), reverse=True)
    assert found.distribution.distinct == len(values)
    con.execute("DELETE FROM t WHERE s NOT IN ('Flu', 'None')")
    assert profiled(con, "s").sensitive[0].folded is None


# -- how far apart ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "distance"),
    [
        ("12 + i % 400 / 10.0", "DECIMAL(6, 2)", 3),
        ("12 + i % 400 / 10.0", "DOUBLE", 3),
        ("i % 400", "INTEGER", 30),
        ("i % 400 / 1000.0", "DOUBLE", 0.03),
        ("CASE WHEN i < 380 THEN 0 ELSE i END", "INTEGER", 3),
        ("i % 19", "INTEGER", None),
        ("i", "VARCHAR", None),
        ("CASE WHEN i = 3 THEN CAST('nan' AS DOUBLE) ELSE i END", "DOUBLE", None),
        ("DATE '2020-01-01' + CAST(i AS INTEGER)", "DATE", "30 days"),
        ("DATE '2020-01-01' + CAST(i % 30 AS INTEGER)", "DATE", "2 days"),
        ("TIMESTAMP '2020-01-01' + INTERVAL 1 MINUTE * i", "TIMESTAMP", "30 minutes"),
    ],
)
def test_values_of_a_class_should_span_a_tenth_of_where_most_lie(
    con: Any, values: str, kind: str, distance: Any
) -> None:
    con.execute(f"CREATE TABLE t AS SELECT CAST({values} AS {kind}) AS s FROM range(400) AS r(i)")
    assert (
        distance_between(Engine(con), Relation.parse("t"), Column("s", kind), 400 if "19" not in values else 19)
        == distance
    )


def test_safe_harbor_asks_for_years_three_digits_and_no_smaller_areas(con):
    con.execute(
        "CREATE TABLE t AS SELECT DATE '1920-01-01' + CAST(i * 90 AS INTEGER) AS born, i % 101 AS age,"
        " i % 30 AS age_years,"
        " format('{:05d}', i % 60 * 1613) AS zip, i AS postcode, 'Town ' || i % 9 AS homeCity, i % 2 = 0 AS smokes,"
        " (i % 50) / 7.0 AS ageAtVisit, 1950 + i % 50 AS birth_year, i % 4 AS disease, 'x' || i % 30 AS state"
        " FROM range(300) AS s(i)"
    )
    engine, table = Engine(con), Relation.parse("t")
    found = profile_table(engine, table, ProfileRequest(sensitive=["disease"], hipaa=True))
    roles = {column.column.name: column.role for column in found.columns}
    assert {name for name, role in roles.items() if role == "identifier"} == {
        "postcode", "homeCity", "ageAtVisit", "birth_year"
    }  # fmt: skip
    written, _ = make_starter_policy(engine, found, table, "t")
    settings = written.policy["quasi_identifiers"]
    before = datetime.now(UTC).year - 89
    assert settings["born"] == {"taxonomy": {"dates": ["year", "decade"], "before": before}}
    assert settings["zip"] == {"taxonomy": "hipaa_zip"}
    assert settings["age"] == settings["age_years"] == {"taxonomy": "hipaa_age"}
    assert "45 CFR 164.514" in written.text
    with pytest.raises(ldiv_db.PolicyError, match="Safe Harbor allows years alone"):
        profile_table(engine, table, ProfileRequest(sensitive=["born"], hipaa=True))
    assert profile_table(engine, table).hipaa is False


def test_postal_codes_that_are_numbers_are_said_to_lack_zeros(con):
    con.execute(
        "CREATE TABLE t AS SELECT [2134, 2135, 10001, 94103][i % 4 + 1] AS zip, i % 3 AS d FROM range(60) AS r(i)"
    )
    engine, table = Engine(con), Relation.parse("t")
    (zips, _) = profile_table(engine, table, ProfileRequest(sensitive=["d"])).columns
    assert zips.way.settings == {"numeric": True}
    assert "2 values (rows: 30) of 4, 2 values (rows: 30) of 5 digits" in zips.reason and "lpad" in zips.reason
    (zips, _) = profile_table(engine, table, ProfileRequest(sensitive=["d"], hipaa=True)).columns
    assert zips.way.settings == {"taxonomy": "hipaa_zip"}
    con.execute("UPDATE t SET zip = 36 WHERE zip = 2134")
    (zips, _) = profile_table(engine, table, ProfileRequest(sensitive=["d"], hipaa=True)).columns
    assert zips.role == "identifier" and zips.reason.startswith("1 of its values is no ZIP code")
    con.execute("ALTER TABLE t ALTER zip TYPE VARCHAR")
    (zips, _) = profile_table(engine, table, ProfileRequest(sensitive=["d"])).columns
    assert zips.way.settings == {"taxonomy": {"prefix": [5, 3, 1]}} and "1 value (rows: 15) of 2" in zips.reason


PLACES = {"taxonomy": {"ranges": [0.01, 0.1, 1, 10]}}


@pytest.mark.parametrize(
    ("names", "most", "of_a_grid"),
    some(
        [
            (("homeLatitude", "homeLongitude"), 179, True),
            (("pickup_lat", "home_lng"), 50, False),  # of two places
            (("lat", "lon"), 50, True),
            (("pickup_lat", "pickup_lng"), 50, True),
            (("lat", "lon"), 359, False),  # no longitude has so many degrees
            (("lat", "distance"), 50, False),
            (("plate", "along"), 50, False),
        ],
    ),
)
def test_latitude_and_longitude_are_a_grid_and_no_numbers(con, names, most, of_a_grid):
    lat, lon = names
    con.execute(
        f"CREATE TABLE t AS SELECT i % 80 + i / 977.0 AS {lat}, CAST(i % {most} + 0.5 AS DECIMAL(9, 4)) AS {lon},"
        " i % 7 AS disease FROM range(400) AS r(i)"
    )
    found = profiled(con, "disease")
    ways = [column.way.settings for column in found.columns[:2]]
    assert ways == [PLACES if of_a_grid else {"numeric": True}] * 2
    if not of_a_grid:
        return
    written, _ = make_starter_policy(Engine(con), found, Relation.parse("t"), "t")
    ldiv_db.run(con, written.policy | {"target": "out", "algorithm": "mondrian"})
    labels = {label for row in con.execute(f"SELECT {lat}, {lon} FROM out").fetchall() for label in row}
    assert all(label == "*" or label.endswith(")") for label in labels)


def test_whole_degrees_are_numbers(con):
    con.execute("CREATE TABLE t AS SELECT i % 80 AS lat, i % 90 AS lon, i % 7 AS disease FROM range(400) AS r(i)")
    assert [column.way.settings for column in profiled(con, "disease").columns[:2]] == [{"numeric": True}] * 2
