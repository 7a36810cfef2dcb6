"""Release, audit and ledger row are one transaction of the database they lie in; what is there is kept as it is."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from homes import policy_document
from strategies import some

import ldiv_db
from ldiv_db.database.addresses import address_of
from ldiv_db.database.attach import attach_address, open_address
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.publishing import draft as drafts


def replaced(**changes: Any) -> dict[str, Any]:
    return {"target": {"table": "released", "if_exists": "replace"}, **changes}


@pytest.mark.parametrize("failing", some(["audit", "enter"]))
def test_what_fails_leaves_nothing(home: Any, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home.run()
    before = sorted(home.sql("SELECT * FROM released")), home.sql(f"SELECT run_id FROM {home.table('run')}")

    def fail(*_: Any) -> None:
        raise AuditError("as the test wants it")

    with monkeypatch.context() as patched:
        patched.setattr(drafts.RunDraft, failing, fail)
        home.write_policy(**replaced(seed=5))
        called = home.call("run", home.address, home.policy)
        assert called.exit_code == 1 and "as the test wants it" in called.output
    after = sorted(home.sql("SELECT * FROM released")), home.sql(f"SELECT run_id FROM {home.table('run')}")
    assert before == after
    home.run(**replaced())
    assert home.sql(f"SELECT count(*) FROM {home.table('run')}") == [(2,)]


def test_the_audit_reads_what_stands_in_the_database(published: Any) -> None:
    """A trigger of the target's own makes another table of it than was sent."""
    published.sql(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN NEW.disease := 'Flu'; RETURN NEW; END$$;"
        " CREATE TRIGGER spoil BEFORE INSERT ON released FOR EACH ROW EXECUTE FUNCTION spoil()"
    )
    before = sorted(published.sql("SELECT * FROM released"))
    published.write_policy(**replaced(seed=5))
    called = published.call("run", published.address, published.policy)
    assert called.exit_code == 1 and "unique_distinct" in called.output
    assert sorted(published.sql("SELECT * FROM released")) == before


def test_a_caller_s_transaction_is_joined(home: Any) -> None:
    with open_address(address_of(home.address)) as con:
        con.execute("BEGIN")
        ldiv_db.run(con, ldiv_db.read_policy(home.policy), folder=home.folder)
        con.execute("ROLLBACK")
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        home.sql("SELECT * FROM released")
    with open_address(address_of(home.address)) as con:
        con.execute("BEGIN")
        ldiv_db.run(con, ldiv_db.read_policy(home.policy), folder=home.folder)
        con.execute("COMMIT")
    assert home.sql("SELECT count(*) FROM released") == [(24,)]


def test_types_of_kept_columns_are_the_source_s(postgres: Any) -> None:
    types = {
        "n": ("numeric", Decimal("12.3400")), "p": ("numeric(9,2)", Decimal("1.50")), "d": ("date", None),
        "z": ("timestamp with time zone", None), "t": ("character varying(20)", "é"), "b": ("boolean", True),
        "j": ("jsonb", {"a": [1]}), "u": ("uuid", None), "c": ("character(3)", "ab "),
        "f": ("real", 1.5), "s": ("smallint", 3), "i": ("bigint", 2**40), "y": ("bytea", b"\x00\x01"),
        "h": ("time without time zone", datetime.time(10, 30)),
    }  # fmt: skip
    listed = ", ".join(f"{name} {kind}" for name, (kind, _) in types.items())
    postgres.sql(f"CREATE TABLE wide AS SELECT * FROM patients; ALTER TABLE wide {add(listed)}")
    postgres.sql(
        "UPDATE wide SET n = 12.3400, p = 1.5, d = '2020-02-29', z = '2020-01-01 10:00+02', t = 'é', b = true,"
        " j = '{\"a\": [1]}', u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', c = 'ab', f = 1.5, s = 3,"
        f" i = {2**40}, y = '\\x0001', h = '10:30'"
    )
    postgres.run(source="wide", keep=["ward", *types], target={"table": "released"})
    found = postgres.sql(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'released'::regclass AND attnum > 0"
    )
    kept = dict(found)
    assert {name: kept[name] for name in types} == {name: kind for name, (kind, _) in types.items()}
    assert (kept["class_id"], kept["age"], kept["disease"]) == ("bigint", "text", "character varying")
    columns = ", ".join(types)
    assert postgres.sql(f"SELECT DISTINCT {columns} FROM released") == postgres.sql(
        f"SELECT DISTINCT {columns} FROM wide"
    )


def test_types_of_a_release_list_no_values_that_its_rows_do_not_have(postgres: Any) -> None:
    """Enums are text, a domain is what it is over, and defaults, checks and comments stay with the source."""
    postgres.sql(
        "CREATE TYPE illness AS ENUM ('Flu', 'Cancer', 'Hepatitis', 'Asthma', 'patient 200');"
        "CREATE DOMAIN feeling AS illness DEFAULT 'patient 200'; CREATE DOMAIN amount AS numeric(9,2);"
        "CREATE DOMAIN price AS amount CHECK (VALUE <> 200.20);"
        "CREATE TABLE typed (LIKE patients, m illness, f feeling, p price CHECK (p <> 200),"
        " v varchar(9) DEFAULT 'p 200');"
        "COMMENT ON COLUMN typed.m IS 'of patient 200'; COMMENT ON TABLE typed IS 'with patient 200';"
        "INSERT INTO typed SELECT *, disease::illness, 'Flu', 1.5, 'x' FROM patients"
    )
    for target in ({"table": "released"}, {"table": "released", "if_exists": "replace"}):
        keep, identifiers = ["ward", "f", "p", "v"], ["name", "disease"]
        postgres.run(source="typed", sensitive=["m"], keep=keep, identifiers=identifiers, target=target)
        found = postgres.sql(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.atthasdef, a.attnotnull,"
            " col_description(a.attrelid, a.attnum), obj_description(a.attrelid) FROM pg_attribute a"
            " WHERE a.attrelid = 'released'::regclass AND a.attname IN ('m', 'f', 'p', 'v') ORDER BY a.attname"
        )
        kinds = {"f": "text", "m": "text", "p": "numeric(9,2)", "v": "character varying(9)"}
        assert found == [(name, kind, False, False, None, None) for name, kind in kinds.items()]
        assert postgres.sql("SELECT count(*) FROM pg_constraint WHERE conrelid = 'released'::regclass") == [(0,)]
        assert postgres.sql("SELECT DISTINCT f, p, v FROM released") == [("Flu", Decimal("1.50"), "x")]


def add(listed: str) -> str:
    return ", ".join(f"ADD {column}" for column in listed.replace("(9,2)", "(9;2)").split(", ")).replace(";", ",")


def test_numbers_that_would_lose_digits_are_refused_by_name(postgres: Any) -> None:
    postgres.sql("CREATE TABLE rich AS SELECT *, 1234567890.12345678901234567890::numeric AS amount FROM patients")
    postgres.write_policy(source="rich", keep=["ward", "amount"])
    called = postgres.call("run", postgres.address, postgres.policy)
    assert called.exit_code == 2
    assert "amount: is numeric without a precision, and 24 values have more digits" in called.output
    postgres.sql("CREATE VIEW exact AS SELECT *, amount::numeric(38, 10) AS exactly FROM rich")
    postgres.run(source="exact", keep=["ward", "exactly"], identifiers=["name", "amount"])
    assert postgres.sql("SELECT DISTINCT exactly FROM released") == [(Decimal("1234567890.1234567890"),)]


def test_arrays_are_refused_by_name(postgres: Any) -> None:
    postgres.sql("CREATE TABLE tagged AS SELECT *, ARRAY[1, 2] AS tags FROM patients")
    postgres.write_policy(source="tagged", keep=["ward", "tags"])
    called = postgres.call("run", postgres.address, postgres.policy)
    assert called.exit_code == 2 and "target: tags is INTEGER[], which is not written there" in called.output


def test_a_replaced_table_keeps_what_is_granted_and_said_of_it(published: Any) -> None:
    role = f"reader_{published.address.rpartition('_')[2]}"
    published.sql(
        f"CREATE ROLE {role}; GRANT SELECT ON released TO {role}; COMMENT ON TABLE released IS 'for research';"
        " COMMENT ON COLUMN released.age IS 'in years'; CREATE INDEX ON released (disease);"
        " CREATE VIEW shown AS SELECT disease FROM released"
    )
    result = published.run(**replaced(seed=3))
    kept = f"SELECT has_table_privilege('{role}', 'released', 'SELECT'), obj_description('released'::regclass)"
    assert published.sql(kept) == [(True, "for research")]
    assert published.sql("SELECT count(*) FROM shown") == [(24,)]
    assert not any("not kept" in note for note in result["notes"])


def test_a_table_that_is_made_anew_says_what_is_lost(published: Any) -> None:
    published.sql("GRANT SELECT ON released TO PUBLIC; COMMENT ON TABLE released IS 'for research'")
    result = published.run(**replaced(keep=None, identifiers=["name", "ward"]))
    assert "the grants and the comments of released are not kept, as its columns are others now" in result["notes"]
    published.sql("CREATE VIEW shown AS SELECT disease FROM released")
    published.write_policy(**replaced())
    for command in ("plan", "run"):
        called = published.call(command, published.address, published.policy)
        assert called.exit_code == 3 and "other objects of the database depend on the table" in called.output
        assert "view shown" in called.output
    assert len(published.sql("SELECT * FROM shown")) == 24


#: What a table of PostgreSQL's is beside its rows, and what a plan and a run say of it.
GIVEN = {
    "CREATE TYPE held AS (age varchar, country varchar, disease varchar, ward varchar); DROP TABLE released;"
    " CREATE TABLE released OF held": "the row type",
    "DROP TABLE released; CREATE TABLE released (age varchar, ward varchar) PARTITION BY LIST (ward);"
    " CREATE TABLE one PARTITION OF released DEFAULT": "the partitions",
}
#: A policy by which a release has fewer columns than by the policy of the bed.
BY_AGE = {
    "target": {"table": "released", "if_exists": "replace"}, "identifiers": ["name", "ward", "country"],
    "quasi_identifiers": {"age": {"numeric": True}}, "keep": None, "require": [{"frequency": 2}], "algorithm": "fast",
}  # fmt: skip
#: What one table has at once, and what is said of it then.
ALL = (
    "GRANT SELECT (age) ON released TO PUBLIC; COMMENT ON COLUMN released.age IS 'in years';"
    " CREATE INDEX ON released (age); ALTER TABLE released ADD CHECK (age <> '');"
    " ALTER TABLE released ALTER age SET DEFAULT 'x';"
    " CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'begin return new;end';"
    " CREATE TRIGGER firing AFTER INSERT ON released EXECUTE FUNCTION fired();"
    " CREATE RULE more AS ON DELETE TO released WHERE false DO ALSO NOTHING;"
    " CREATE PUBLICATION sent FOR TABLE released; ALTER TABLE released REPLICA IDENTITY FULL;"
    " CREATE STATISTICS age_and_disease ON age, disease FROM released; ALTER TABLE released SET (fillfactor = 70);"
    ' ALTER TABLE released ALTER age TYPE varchar COLLATE "C";'
    " CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler;"
    " ALTER TABLE released SET ACCESS METHOD other;"
    " CREATE TABLE above (LIKE released); ALTER TABLE released INHERIT above"
)
OF_ALL = (
    "the grants, the comments, the indexes, the constraints, the defaults, the triggers, the rules, the publications,"
    " the replica identity, the extended statistics, the storage parameters, the collations, the access method and the"
    " parents of released are not kept, as its columns are others now"
)
#: What else needs the table, and what a plan and a run say of it.
NEEDED = {
    "CREATE SCHEMA other; CREATE VIEW other.\"V w\" AS SELECT age FROM released": "view other.\"V w\"",
    "CREATE TABLE held (one released)": "column one of table held",
    "ALTER TABLE released ADD n serial; CREATE TABLE counted (i int DEFAULT nextval('released_n_seq'))":
    "default value for column i of table counted",
}  # fmt: skip


@pytest.mark.parametrize("given", some(GIVEN))
def test_what_is_lost_is_said_by_plan_and_run(published: Any, given: str) -> None:
    published.sql(given)
    published.write_policy(**replaced(keep=None, identifiers=["name", "ward"]))
    said = f"{GIVEN[given]} of released are not kept, as its columns are others now"
    for command in ("plan", "run"):
        assert said in published.json(command, published.policy)["notes"]


@pytest.mark.parametrize("by", some(["attached", "counted"]))
def test_all_that_is_lost_is_said_by_either_way(published: Any, by: str) -> None:
    for sql in ALL.split("; "):
        published.sql(sql)
    policy = policy_document(**BY_AGE)
    with by_either_way(published, by) as database:
        for call in (ldiv_db.plan, ldiv_db.run):
            assert OF_ALL in call(database, policy).notes


@pytest.mark.parametrize("by", some(["counted", "attached"]))
@pytest.mark.parametrize("needed", some(NEEDED))
def test_what_needs_a_table_is_named_by_either_way(published: Any, needed: str, by: str) -> None:
    published.sql(needed)
    policy = policy_document(**BY_AGE)
    with by_either_way(published, by) as database:
        for call in (ldiv_db.plan, ldiv_db.run):
            with pytest.raises(ldiv_db.DatabaseError, match="drop these first: " + re.escape(NEEDED[needed])):
                call(database, policy)


@contextmanager
def by_either_way(postgres: Any, by: str) -> Iterator[Any]:
    """The database as DuckDB attaches it, or as a connection of another driver's, where the server counts."""
    import psycopg  # noqa: PLC0415

    if by == "attached":
        yield postgres.address
    else:
        with psycopg.connect(postgres.address.partition(":")[2]) as connection:
            yield connection


def test_one_policy_is_one_by_either_way_and_has_the_same_rows(postgres: Any) -> None:
    quick = {"name": "auto", "effort": "quick"}
    policy = policy_document(**{**BY_AGE, "require": [{"frequency": 3}], "algorithm": quick, "seed": None})
    rows, told = [], []
    for by in ("attached", "counted"):
        with by_either_way(postgres, by) as database:
            told.append(ldiv_db.run(database, policy))
        rows.append(sorted(postgres.sql("SELECT * FROM released")))
    assert rows[0] == rows[1] and len(rows[0]) == 24
    assert not any("another policy" in note for result in told for note in result.notes)


def test_a_publication_without_an_identity_of_rows_is_named(published: Any) -> None:
    published.sql("CREATE PUBLICATION sends FOR TABLE released")
    published.write_policy(**replaced(seed=3))
    called = published.call("run", published.address, published.policy)
    assert called.exit_code == 3 and "a publication sends what is changed in released, which has" in called.output
    published.sql("ALTER TABLE released REPLICA IDENTITY FULL")
    assert not any("not kept" in note for note in published.run(**replaced(seed=3))["notes"])


def test_row_policies_are_lost_by_leave_alone(published: Any) -> None:
    role = f"reader_{published.address.rpartition('_')[2]}"
    published.sql(
        f"CREATE ROLE {role}; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}; GRANT SELECT ON released TO"
        f" {role}; ALTER TABLE released ENABLE ROW LEVEL SECURITY;"
        f" CREATE POLICY flu ON released FOR SELECT TO {role} USING (disease = 'Flu')"
    )
    other = {"keep": None, "identifiers": ["name", "ward"]}
    published.write_policy(**replaced(**other))
    called = published.call("run", published.address, published.policy)
    assert called.exit_code == 2 and "the row policies of released would be lost" in called.output
    published.run(**replaced())
    assert published.sql("SELECT count(*) FROM pg_policy") == [(1,)]
    may = f"SELECT has_table_privilege('{role}', 'released', 'SELECT')"
    target = {"table": "released", "if_exists": "replace", "lose": ["row policies"]}
    published.run(target=target, **other)
    assert published.sql("SELECT count(*) FROM pg_policy") == [(0,)] and published.sql(may) == [(True,)]
    published.sql(f"REVOKE SELECT ON released FROM {role}")
    published.run(**replaced())
    assert published.sql(may) == [(False,)], "what is granted on every new table is not on one that was withheld"
    published.sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_in_a_lake_release_and_ledger_are_one_snapshot_which_is_read_until_what_the_run_names_is_done(
    lake: Any,
) -> None:
    target = {"table": "released", "if_exists": "replace"}
    first, second = (lake.run(target=target, require=[{"k": k}], over_time="independent") for k in (2, 4))
    ((number, changes),) = lake.sql(
        "SELECT snapshot_id, changes::text FROM ducklake_snapshots('lake') ORDER BY snapshot_id DESC LIMIT 1"
    )
    assert second["snapshot"] == number and "released" in changes
    found = f"SELECT count(*) FROM ldiv.run AT (VERSION => {{}}) WHERE run_id = '{second['run_id']}'"
    assert lake.sql(found.format(number)) == [(1,)] and lake.sql(found.format(number - 1)) == [(0,)]
    assert not any("history" in note for note in first["notes"])
    (note,) = [note for note in second["notes"] if "the history of released shows whoever may read it" in note]
    assert not any("bytes of" in note for note in second["notes"])
    count = f"SELECT count(DISTINCT age) FROM released AT (VERSION => {first['snapshot']})"
    assert lake.sql(count) != lake.sql("SELECT count(DISTINCT age) FROM released")
    lake.sql(note.partition("this ends it: ")[2].replace("'crm'", "'lake'"))
    with pytest.raises(duckdb.Error, match="No snapshot found"):
        lake.sql(count)
    assert len(lake.sql("FROM released")) == 24


def test_what_a_view_of_the_server_s_reads_is_no_target(published: Any) -> None:
    published.sql("CREATE VIEW inner_one AS SELECT * FROM released")
    published.sql("CREATE VIEW again AS SELECT p.* FROM patients p WHERE EXISTS (SELECT FROM inner_one)")
    published.write_policy(**replaced(source="again"))
    called = published.call("run", published.address, published.policy)
    assert called.exit_code == 2 and "released is read by the source" in called.output
    published.sql("CREATE SCHEMA other")
    published.run(source="again", target={"table": "other.released"})
    assert published.sql("SELECT count(*) FROM other.released") == [(24,)]
    published.write_policy(target={"table": "again", "if_exists": "replace"})
    called = published.call("run", published.address, published.policy)
    assert called.exit_code == 2 and "again is a view" in called.output


def test_names_are_looked_up_as_the_server_does(postgres: Any) -> None:
    name = postgres.address.rpartition("=")[2]
    postgres.sql("CREATE SCHEMA ward; CREATE TABLE ward.patients AS SELECT * FROM patients WHERE age < 50")
    postgres.sql(f"ALTER DATABASE {name} SET search_path = ward, public")
    with open_address(address_of(postgres.address), read_only=True) as con:
        assert ldiv_db.profile(con, "patients").rows < 24
        assert ldiv_db.profile(con, "public.patients").rows == 24
        assert ldiv_db.profile(con, f"{name}.public.patients").rows == 24
    postgres.run()
    assert postgres.sql("SELECT count(*) < 24 FROM ward.released") == [(True,)]
    postgres.sql(f"CREATE SCHEMA {name}; CREATE TABLE {name}.odd AS SELECT * FROM patients")
    assert postgres.json("profile", f"{name}.odd")["rows"] < 24


def test_from_python_names_of_attached_databases_and_frames_resolve(home: Any) -> None:
    with duckdb.connect() as con:
        attach_address(Engine(con), address_of(home.address), "lite")
        assert ldiv_db.profile(con, "lite.patients").rows == 24
        con.execute("CREATE TABLE patients AS FROM lite.patients LIMIT 5")
        assert ldiv_db.profile(con, "patients").rows == 5
        con.execute("CREATE TEMP TABLE patients AS FROM lite.patients LIMIT 3")
        assert ldiv_db.profile(con, "patients").rows == 3
