"""A target that the run reads from is refused before any work: what it is made of must not be replaced by it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from refusals import refuses
from strategies import some

import ldiv_db

#: Views that read `patients`, by other views, macros and names; the last statement makes `v`.
VIEWS = {
    "view": "CREATE VIEW v AS FROM patients",
    "nested": "CREATE VIEW a AS FROM patients; CREATE VIEW b AS FROM a WHERE age > 0; CREATE VIEW v AS FROM b",
    "cte": "CREATE VIEW v AS WITH p AS (FROM main.patients) FROM p",
    "macro": "CREATE MACRO m(least) AS TABLE FROM patients WHERE age >= least; CREATE VIEW v AS FROM m(0)",
    "named": "CREATE VIEW v AS FROM query_table('patients')",
    "query": "CREATE VIEW v AS FROM query('FROM hospital.main.PATIENTS')",
    "subquery": "CREATE TABLE x AS FROM patients; CREATE VIEW v AS FROM x WHERE age IN (SELECT age FROM patients)",
    "scalar": "CREATE MACRO s() AS (SELECT max(age) FROM patients); CREATE TABLE x AS FROM patients;"
    " CREATE VIEW v AS FROM x WHERE age <= s()",
    "no row": "CREATE TABLE x AS FROM patients; CREATE VIEW v AS FROM x UNION ALL FROM patients WHERE false",
    "schema": "CREATE SCHEMA s; CREATE VIEW s.v AS FROM main.patients; CREATE VIEW v AS FROM s.v",
}
#: Views on the file `raw.parquet` of the current folder, some in another spelling.
FILES = {
    "reader": "CREATE VIEW v AS FROM read_parquet('raw.parquet')",
    "name": "CREATE VIEW v AS FROM 'raw.parquet'",
    "pattern": "CREATE VIEW v AS FROM read_parquet('r*.parquet', union_by_name = true)",
    "list": "CREATE VIEW v AS FROM read_parquet(['./raw.parquet'])",
    "put together": "CREATE VIEW v AS FROM read_parquet('raw' || '.parquet')",
    "nested": "CREATE VIEW a AS FROM 'raw.parquet'; CREATE VIEW v AS WITH p AS (FROM a) FROM p",
    "macro": "CREATE MACRO m(file) AS TABLE FROM read_parquet(file); CREATE VIEW v AS FROM m('raw.parquet')",
    "query": "CREATE VIEW v AS FROM query('FROM ''raw.parquet''')",
    "spelling": "CREATE VIEW v AS FROM read_parquet('{folder}/../{name}//raw.parquet')",
    "link": "CREATE VIEW v AS FROM read_parquet('link.parquet')",
    "second name": "CREATE VIEW v AS FROM read_parquet('second.parquet')",
    "no row": "CREATE VIEW v AS FROM patients UNION ALL FROM 'raw.parquet' WHERE false",
    "scalar": "CREATE MACRO s() AS (SELECT max(age) FROM 'raw.parquet');"
    " CREATE VIEW v AS FROM patients WHERE age <= s()",
}


def make_files(bed: Any, sql: str) -> None:
    """`raw.parquet` with a link and a second name, and the view on it."""
    bed.sql(f"COPY patients TO '{bed.folder}/raw.parquet'")
    os.symlink(bed.folder / "raw.parquet", bed.folder / "link.parquet")
    os.link(bed.folder / "raw.parquet", bed.folder / "second.parquet")
    bed.sql(sql.replace("{folder}", str(bed.folder)).replace("{name}", bed.folder.name))


def require_read(bed: Any, target: str) -> None:
    """Assert that a run is refused, whose source reads its target."""
    assert f"target: {target} is read by the source" in bed.fails(2, "run", bed.database, bed.policy)


@pytest.mark.parametrize("view", some(VIEWS, 3))
def test_a_table_that_the_source_reads_is_not_replaced(bed: Any, view: str) -> None:
    bed.sql(VIEWS[view])
    bed.write_policy(source="v", target={"table": "Main.PATIENTS", "if_exists": "replace"})
    require_read(bed, "Main.PATIENTS")


def test_a_table_that_the_source_reads_is_not_appended_to(released: Any) -> None:
    bed = released
    bed.sql(
        "CREATE VIEW v AS SELECT 'n' AS name, CAST(rowid AS INTEGER) AS age, 'Norway' AS country, disease, ward"
        " FROM published.patients"
    )
    bed.write_policy(source="v", target={"table": "published.patients", "if_exists": "append"})
    require_read(bed, "published.patients")


def test_a_table_beside_those_that_the_source_reads_is_replaced(bed: Any) -> None:
    """Also where a view of the same name is read, and a table of that name in another schema."""
    bed.sql("CREATE SCHEMA raw; CREATE TABLE raw.people AS FROM patients; CREATE VIEW v AS FROM raw.people")
    bed.sql("CREATE TABLE people AS SELECT 1 AS x")
    bed.write_policy(source="v", target={"table": "people", "if_exists": "replace"})
    assert bed.run().code == 0
    assert len(bed.sql("FROM people")) == 24 == len(bed.sql("FROM raw.people"))


def test_a_database_attached_by_a_second_name_of_its_file_is_known_again(bed: Any) -> None:
    """The same table under another database's name: replacing one would replace what the other reads."""
    os.link(bed.database, bed.folder / "other.duckdb")
    policy = yaml.safe_load(bed.policy.read_text())
    with duckdb.connect(str(bed.database)) as con:
        con.execute(f"ATTACH '{bed.folder}/other.duckdb' AS other")
        con.execute("CREATE TEMP VIEW v AS FROM other.main.patients")
        policy |= {"source": "temp.main.v", "target": {"table": "patients", "if_exists": "replace"}}
        with refuses("target"):
            ldiv_db.run(con, policy, folder=bed.folder)
        assert con.execute("SELECT count(*) FROM patients").fetchall() == [(24,)]


@pytest.mark.parametrize("target", some(["second.parquet", "raw.parquet", "link.parquet"]))
@pytest.mark.parametrize("view", some(FILES, 2))
def test_a_file_that_the_source_reads_is_not_replaced(bed: Any, monkeypatch: Any, view: str, target: str) -> None:
    monkeypatch.chdir(bed.folder)
    make_files(bed, FILES[view])
    bed.write_policy(source="v", target={"file": target, "if_exists": "replace"})
    bed.refuses("target.file", "plan", bed.database, bed.policy)


def test_a_folder_that_the_source_reads_holds_no_target(bed: Any) -> None:
    (bed.folder / "raw").mkdir()
    bed.sql(f"COPY patients TO '{bed.folder}/raw/1.csv'")
    bed.sql(f"COPY patients TO '{bed.folder}/raw/2.csv'")
    bed.sql(f"CREATE VIEW v AS FROM read_csv('{bed.folder}/raw/**/*.csv')")
    bed.write_policy(source="v", target={"file": "raw/2.csv", "if_exists": "replace"})
    bed.refuses("target.file", "run", bed.database, bed.policy)


def test_files_that_cannot_be_told_are_not_replaced(bed: Any, monkeypatch: Any) -> None:
    """What a macro makes of its parameter is not known; a file that is not there yet may be written all the same."""
    monkeypatch.chdir(bed.folder)
    make_files(bed, "CREATE MACRO m(f) AS TABLE FROM read_parquet(f || '.parquet'); CREATE VIEW v AS FROM m('raw')")
    bed.write_policy(source="v", target={"file": "raw.parquet", "if_exists": "replace"})
    bed.refuses("target.file", "run", bed.database, bed.policy)
    bed.write_policy(source="v", target={"file": "new.parquet", "if_exists": "replace"})
    assert bed.call("plan", bed.database, bed.policy).code == 0


def test_a_file_beside_those_that_the_source_reads_may_be_replaced(bed: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(bed.folder)
    make_files(bed, "CREATE VIEW v AS SELECT DISTINCT a.* FROM 'raw.parquet' AS a JOIN 'raw.parquet' USING (name)")
    bed.write_policy(source="v", target={"file": "release.parquet", "if_exists": "replace"})
    bed.write("release.parquet", "of another run")
    assert bed.call("plan", bed.database, bed.policy).code == 0


@pytest.mark.parametrize(
    ("name", "what"), [("country.csv", "the taxonomy of country"), ("d.csv", "the taxonomy of disease"),
                       ("policy.csv", "the policy itself"), ("./link.csv", "the taxonomy of country")],
)  # fmt: skip
def test_a_file_that_the_policy_reads_is_no_target(bed: Any, name: str, what: str) -> None:
    """Taxonomies of quasi-identifiers and of sensitive attributes, the policy's own file, and links to them."""
    bed.write("d.csv", "Flu;ill;*\nCancer;ill;*\nHepatitis;ill;*\nAsthma;ill;*\n")
    os.symlink(bed.folder / "country.csv", bed.folder / "link.csv")
    bed.write_policy(
        target={"file": name, "if_exists": "replace"}, sensitive={"disease": {"taxonomy": {"file": "d.csv"}}}
    )
    policy = bed.policy.rename(bed.folder / "policy.csv")
    assert f"target.file: {name} is {what}" in bed.fails(2, "run", bed.database, policy)


@pytest.mark.parametrize("name", some(["ours.duckdb", "second.duckdb", "hospital.duckdb", "link.duckdb"], 2))
def test_a_database_that_is_open_is_no_target(bed: Any, name: str) -> None:
    """The source's file and the catalog's, by any of their names."""
    assert bed.call("migrate", bed.database, "--catalog", bed.folder / "ours.duckdb").code == 0
    os.symlink(bed.database, bed.folder / "link.duckdb")
    os.link(bed.database, bed.folder / "second.duckdb")
    bed.write_policy(target={"file": name, "table": "x", "if_exists": "replace"})
    options = ["--catalog", bed.folder / "ours.duckdb"]
    bed.refuses("target.file", "run", bed.database, bed.policy, *options)


def test_a_series_does_not_read_its_own_releases(bed: Any) -> None:
    series = {
        "target": {"prefix": "published.p"}, "key": "name", "identifiers": None, "output": None, "seed": 1,
        "quasi_identifiers": {"age": {"numeric": True}}, "keep": ["country", "ward"],
    }  # fmt: skip
    bed.write_policy(**series)
    assert bed.call("run", bed.database, bed.policy).code == 0
    bed.sql("CREATE VIEW v AS FROM patients WHERE ward IN (SELECT ward FROM published.p_1)")
    bed.write_policy(**series, source="v")
    bed.refuses("target", "run", bed.database, bed.policy)


def test_a_series_is_not_published_over_its_source(bed: Any) -> None:
    bed.sql("CREATE SCHEMA published; CREATE TABLE published.census_1_qid AS FROM patients")
    bed.sql("CREATE VIEW v AS FROM published.census_1_qid")
    bed.write_policy(
        source="v", target={"prefix": "published.census"}, key="name", identifiers=None, keep=None, require=None,
        quasi_identifiers=["age", "country", "ward"], sensitive={"disease": {"l": 2}}, algorithm="decomposition_plus",
    )  # fmt: skip
    bed.refuses("target", "run", bed.database, bed.policy)


def test_violations_go_to_no_table_that_is_there(bed: Any) -> None:
    bed.sql("CREATE VIEW v AS FROM patients")
    words = ["--qi", "age", "--sensitive", "disease", "--require", "k:2", "--into", "patients"]
    bed.refuses("into", "check", bed.database, "v", *words)


@pytest.mark.parametrize("locked", some([True, False]))
def test_looking_leaves_the_connection_as_it_was(bed: Any, locked: bool) -> None:
    """No setting is changed; where settings are locked the plan that they show is looked at."""
    policy = yaml.safe_load(bed.policy.read_text())
    with duckdb.connect(str(bed.database)) as con:
        con.execute("CREATE VIEW v AS FROM patients")
        con.execute("SET explain_output = 'optimized_only'" if not locked else "SET lock_configuration = true")
        settings = con.execute("FROM duckdb_settings() ORDER BY name").fetchall()
        policy |= {"source": "v", "target": {"table": "patients", "if_exists": "replace"}}
        with refuses("target"):
            ldiv_db.run(con, policy, folder=bed.folder)
        assert con.execute("FROM duckdb_settings() ORDER BY name").fetchall() == settings


def test_what_python_registers_is_a_source_still(bed: Any, tmp_path: Path) -> None:
    """A relation of Python's that reads the target is known, and beside another target it is planned with."""
    policy = yaml.safe_load(bed.policy.read_text()) | {"source": "temp.main.rows"}
    with duckdb.connect(str(bed.database)) as con:
        con.register("rows", con.sql("FROM patients"))
        policy["target"] = {"table": "patients", "if_exists": "replace"}
        with refuses("target"):
            ldiv_db.run(con, policy, folder=bed.folder)
        policy["target"] = {"table": "out", "if_exists": "replace"}
        assert ldiv_db.plan(con, policy, folder=bed.folder)
