"""A newcomer's first tasks: from an empty folder, by the commands that somebody who read the first page would type."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from beds import called

from ldiv_db.commands.cli import app


class Shell:
    """A terminal in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def type(self, line: str, code: int = 0) -> str:
        """What a command line prints on stdout, and on stderr if it fails, as it is expected to with another `code`."""
        name, *words = shlex.split(line)
        found = called(app, words, name)
        assert found.code == code, found
        return found.err if code else found.out

    def sql(self, text: str, database: str = "w.duckdb") -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.folder / database)) as con:
            return con.execute(text).fetchall()

    def policy(self, name: str = "policy.yml") -> Any:
        return yaml.safe_load((self.folder / name).read_text(encoding="utf-8"))

    def hurry(self) -> None:
        """Take the first good release: by default it is made better for up to a minute."""
        (self.folder / "policy.yml").write_text(yaml.safe_dump(self.policy() | {"algorithm": "topdown"}))

    def run(self, table: str, rows: int) -> None:
        """The policy is run as it is, but for the algorithm, and every row is published."""
        self.hurry()
        self.type("ldiv run w.duckdb policy.yml")
        assert self.sql(f"SELECT count(*) FROM {table}") == [(rows,)]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return Shell(tmp_path)


def roles(out: str) -> dict[str, str]:
    """The role of each column that the first table on the screen names."""
    cells = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if line.startswith("│")]
    known = {"identifier", "quasi-identifier", "sensitive"}
    return {row[1]: row[3] for row in cells if len(row) > 4 and row[3] in known}


def agrees(shell: Shell, out: str) -> dict[str, str]:
    """The roles on the screen, which are those of the policy that was written."""
    policy, said = shell.policy(), roles(out)
    keys = {"identifiers": "identifier", "quasi_identifiers": "quasi-identifier", "sensitive": "sensitive"}
    listed = {column: role for key, role in keys.items() for column in policy.get(key) or ()}
    assert said == listed | ({policy["individual"]: "identifier"} if "individual" in policy else {})
    return said


def drawn(seed: int, below: int) -> str:
    """A whole number from 0, the same in every version of the database, drawn for the row `i` by a seed."""
    return f"(CAST(concat('0x', left(md5(concat(i, ' {seed}')), 7)) AS BIGINT) % {below})"


PEOPLE = 300
CENSUS = f"""
    CREATE OR REPLACE TABLE people AS
    SELECT 16 + {drawn(1, 70)} AS age, ['f', 'm'][1 + {drawn(2, 2)}] AS sex,
        'school ' || {drawn(3, 12)} AS education, 'code ' || {drawn(4, 60)} AS industry,
        CAST(1700 + {drawn(5, 100000000)} / 10000.0 AS VARCHAR) AS instance_weight,
        CASE WHEN {drawn(6, 100)} < 56 THEN '0' ELSE CAST(1 + {drawn(7, 20)} AS VARCHAR) END AS occupation
    FROM range({PEOPLE}) AS r(i)
"""


def test_a_warehouse_with_two_schemas(shell: Shell) -> None:
    shell.sql("CREATE SCHEMA clinic")
    shell.sql(
        f"CREATE TABLE clinic.patients AS SELECT 'P' || i AS name, 20 + {drawn(1, 60)} AS age,"
        f" ['Norway', 'Italy', 'Japan'][1 + {drawn(3, 3)}] AS country, 'd' || {drawn(5, 6)} AS disease"
        " FROM range(100) AS r(i)"
    )
    shell.sql("CREATE TABLE main.patients AS SELECT 1 AS another")
    out = shell.type("ldiv profile w.duckdb clinic.patients --sensitive disease --policy policy.yml")
    assert agrees(shell, out) == {
        "name": "identifier", "age": "quasi-identifier", "country": "quasi-identifier", "disease": "sensitive",
    }  # fmt: skip
    assert "nearly every row has its own value" in out and "written: policy.yml" in out
    shell.run("published.patients", 100)
    assert "yes" in shell.type(
        "ldiv check w.duckdb published.patients --qi age,country --sensitive disease --require frequency:3"
    )


def test_a_census(shell: Shell) -> None:
    """Codes of many values find a place, a weight that is another's in few rows is hidden, and the reasons say so."""
    shell.sql(CENSUS)
    out = shell.type("ldiv profile w.duckdb people --sensitive occupation --policy policy.yml")
    said = agrees(shell, out)
    assert (said["industry"], said["instance_weight"]) == ("quasi-identifier", "identifier")
    assert "which few columns single out most rows" in out and "age, industry" in out
    text = (shell.folder / "policy.yml").read_text()
    assert "- instance_weight  # " in text and "industry.csv}, recode: set}  # 60 texts: a level file" in text
    shell.run("published.people", PEOPLE)


def test_a_survey_of_wages(shell: Shell) -> None:
    """What is written asks for wages that are apart, and a run has nothing to warn of."""
    shell.sql(
        f"CREATE TABLE survey AS SELECT 18 + {drawn(1, 50)} AS age, 'job ' || {drawn(3, 9)} AS job,"
        f" CAST(12 + {drawn(5, 4000)} / 100.0 AS DECIMAL(6, 2)) AS wage FROM range(200) AS r(i)"
    )
    out = shell.type("ldiv profile w.duckdb survey --sensitive wage --policy policy.yml")
    assert agrees(shell, out)["wage"] == "sensitive"
    assert shell.policy()["require"] == [{"frequency": 3}, {"range": {"k": 3, "e": 3}}, {"k": 5}]
    shell.hurry()
    assert "count as different" not in shell.type("ldiv run w.duckdb policy.yml")
    assert shell.sql("SELECT count(*) FROM published.survey") == [(200,)]


def test_orders(shell: Shell) -> None:
    """A key of the table, one of another table, a date, a sum that nearly no other order has, and a remark."""
    shell.sql(
        "CREATE TABLE customer AS SELECT CAST(i AS BIGINT) AS c_custkey, 'Customer ' || i AS c_name"
        " FROM range(150) AS r(i)"
    )
    shell.sql(
        f"CREATE TABLE orders AS SELECT i AS o_orderkey, {drawn(1, 150)} AS o_custkey,"
        f" DATE '1992-01-01' + CAST({drawn(3, 2400)} AS INTEGER) AS o_orderdate,"
        f" CAST(900 + {drawn(5, 40000000)} / 100.0 AS DECIMAL(15, 2)) AS o_totalprice,"
        f" 'Clerk ' || {drawn(7, 40)} AS o_clerk, 'remark no. ' || i || ' of the clerk' AS o_comment,"
        f" ['F', 'O', 'P'][1 + {drawn(11, 3)}] AS o_orderstatus,"
        f" ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-LOW'][1 + {drawn(13, 4)}] AS o_orderpriority"
        " FROM range(400) AS r(i)"
    )
    out = shell.type("ldiv profile w.duckdb orders --sensitive o_orderpriority --policy policy.yml")
    assert agrees(shell, out) == {
        "o_orderkey": "identifier", "o_custkey": "identifier", "o_orderdate": "quasi-identifier",
        "o_totalprice": "quasi-identifier", "o_clerk": "quasi-identifier", "o_comment": "identifier",
        "o_orderstatus": "quasi-identifier", "o_orderpriority": "sensitive",
    }  # fmt: skip
    assert "names rows of customer" in out and "names rows of customer" in Path("policy.yml").read_text()
    assert shell.policy()["individual"] == "o_custkey"  # customers have several orders
    assert shell.policy()["quasi_identifiers"]["o_orderdate"] == {"numeric": True}
    assert "nothing was written" in shell.type("ldiv plan w.duckdb policy.yml")


def test_a_messy_file(shell: Shell) -> None:
    """Blanks around values, mixed case, empty cells and names with blanks."""
    towns, diseases = ("Oslo", " oslo", "OSLO ", "Bergen", ""), ("Flu", "flu", "Asthma", "None")
    lines = [f'"{towns[i % 5]}",{20 + i * 7 % 40},{diseases[i % 4]}\n' for i in range(300)]
    (shell.folder / "Survey 2020.csv").write_text("Home Town,age,Disease\n" + "".join(lines))
    shell.sql("CREATE TABLE nothing (a INTEGER)")
    words = "'Survey 2020.csv' --sensitive disease --qi 'home town,AGE' --policy policy.yml"
    out = shell.type(f"ldiv profile w.duckdb {words}")
    assert agrees(shell, out) == {"Home Town": "quasi-identifier", "age": "quasi-identifier", "Disease": "sensitive"}
    assert "texts: themselves or sets" in out and "different, ignoring case and blanks" in out
    shell.run('published."Survey 2020"', 300)


def test_a_file_without_a_database(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `profile` writes can be run as it is; texts that differ by blanks alone do not allow less than is said."""
    rows = [f"{20 + i % 40};{i % 7},5;{('Flu', ' flu', 'Asthma', 'Burn')[i % 4]}\n" for i in range(200)]
    (shell.folder / "a.csv").write_text("age;weight;disease\n" + "".join(rows))
    assert "`:memory:`" in shell.type("ldiv profile w.duckdb a.csv", code=3)
    out = shell.type("ldiv profile :memory: a.csv --sensitive disease --policy policy.yml")
    assert "4, 2 ignoring case and blanks" in out and shell.policy()["target"] == "release.parquet"
    shell.hurry()
    shell.type("ldiv run :memory: policy.yml")
    shell.type("ldiv check :memory: release.parquet --policy policy.yml")
    (shell.folder / "policy.yml").write_text(yaml.safe_dump(shell.policy() | {"target": "published.a"}))
    assert "is gone" in shell.type("ldiv plan :memory: policy.yml", code=2)


HOLD = "import duckdb, sys; con = duckdb.connect('w.duckdb'); print('open', flush=True); sys.stdin.read()"


def test_two_processes_at_once(shell: Shell) -> None:
    """The one that comes second is told who has the file, and goes on when it is free."""
    shell.sql(CENSUS)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=shell.folder, stdin=pipe, stdout=pipe) as first:
        assert first.stdin is not None and first.stdout is not None
        assert first.stdout.readline() == b"open\n"
        said = shell.type("ldiv profile w.duckdb people --qi sex", code=3)
        assert f"in use by another process: PID {first.pid}" in said
        first.stdin.close()
    assert "sex" in shell.type("ldiv profile w.duckdb people --qi sex")


def test_a_value_with_more_than_half_the_rows(shell: Shell) -> None:
    """The policy that is written tells how to name the value harmless; the screen shows no value unless it is asked."""
    shell.sql(CENSUS)
    words = "w.duckdb people --sensitive occupation --qi age,sex"
    shown = shell.type(f"ldiv profile {words}")
    assert "harmless: […]" in shown and "'0'" not in shown and "--show-values" in shown
    out = shell.type(f"ldiv profile {words} --policy policy.yml")
    assert "'0'" not in out
    text = (shell.folder / "policy.yml").read_text()
    assert "    # harmless: ['0']\n" in text and text in shell.type(f"ldiv profile {words} --show-values")
    share = shell.sql("SELECT count(*) FILTER (occupation = '0') / count(*) FROM people")[0][0]
    distinct, bound = shell.policy()["require"]
    assert distinct == {"distinct": 3} and share < bound["alpha_k"]["alpha"] < (1 + share) / 2
    text = text.replace("    # harmless:", "    harmless:")  # who takes two signs away can run it, too
    (shell.folder / "policy.yml").write_text(text)
    shell.hurry()
    shell.type("ldiv plan w.duckdb policy.yml")


def test_dates_and_postal_codes(shell: Shell) -> None:
    shell.sql(
        f"CREATE TABLE visits AS SELECT DATE '1940-01-01' + CAST({drawn(1, 20000)} AS INTEGER) AS born,"
        f" TIMESTAMP '2020-01-01' + INTERVAL 1 MINUTE * CAST({drawn(3, 500000)} AS INTEGER) AS seen,"
        f" DATE '2020-01-01' + 30 * CAST({drawn(5, 12)} AS INTEGER) AS month,"
        f" lpad(CAST({drawn(7, 400)} * 7 AS VARCHAR), 5, '0') AS zip, 'K' || 10 + {drawn(11, 80)} AS ward,"
        f" 'd' || {drawn(13, 8)} AS disease FROM range(240) AS r(i)"
    )
    out = shell.type("ldiv profile w.duckdb visits --sensitive disease --policy policy.yml")
    assert set(agrees(shell, out).values()) == {"quasi-identifier", "sensitive"}
    assert shell.policy()["quasi_identifiers"] == {
        "born": {"numeric": True},
        "seen": {"numeric": True},
        "month": {"taxonomy": {"dates": ["day", "month", "quarter", "year"]}},
        "zip": {"taxonomy": {"prefix": [5, 3, 1]}},
        "ward": {"taxonomy": {"prefix": [3, 1]}},
    }
    shell.run("published.visits", 240)


@pytest.mark.slow
def test_many_columns(shell: Shell) -> None:
    kinds = (lambda n: drawn(n, 90), lambda n: f"'t' || {drawn(n, 7)}", lambda n: f"{drawn(n, 2)} = 0")
    columns = ", ".join(f"{kinds[n % 3](n)} AS column_{n}" for n in range(1, 23))
    shell.sql(f"CREATE TABLE wide AS SELECT {columns}, 'd' || {drawn(0, 9)} AS disease FROM range(40) AS r(i)")
    out = shell.type("ldiv profile w.duckdb wide --sensitive disease --policy policy.yml")
    assert len(agrees(shell, out)) == 23 and "which few columns single out most rows" in out
