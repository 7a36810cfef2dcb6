"""What a role of PostgreSQL's lacks is said before any work, with the grants that mend it."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from strategies import some

from ldiv_db.database import migrate
from ldiv_db.database.addresses import address_of
from ldiv_db.database.attach import open_address
from ldiv_db.database.engine import Engine

#: What a run needs whose release is moved into place, beside what every run needs.
SETTLING = ("UPDATE", "DELETE")


@pytest.fixture
def role(postgres: Any) -> str:
    """A role that may read the source, and nothing else."""
    name = f"ana_{uuid.uuid4().hex[:8]}"
    postgres.sql(f"CREATE ROLE {name} LOGIN; GRANT SELECT ON patients TO {name}; CREATE SCHEMA published")
    return name


def called(postgres: Any, role: str, command: str) -> Any:
    address = postgres.address.replace("user=postgres", f"user={role}")
    return postgres.call(command, address, postgres.policy)


def grants(output: str) -> list[str]:
    """The statements that an error names."""
    return [line.strip() for line in output.splitlines() if line.strip().startswith(("GRANT", "ALTER"))]


def granted_in_turn(postgres: Any, role: str) -> list[str]:
    """All that plans ask for, granted as they say, until a run can go through; neither of them writes before that."""
    found: list[str] = []
    before = postgres.sql("SELECT count(*) FROM pg_class")
    for _ in range(3):
        planned = called(postgres, role, "plan")
        if planned.exit_code == 0:
            return found
        assert planned.exit_code == 3 and "lacks rights" in planned.output, planned.output
        if not found:  # a run says the same
            ran = called(postgres, role, "run")
            assert ran.exit_code == 3 and grants(ran.output) == grants(planned.output)
        assert postgres.sql("SELECT count(*) FROM pg_class") == before
        if "ldiv migrate" in planned.output:
            assert postgres.call("migrate", postgres.address).exit_code == 0
            before = postgres.sql("SELECT count(*) FROM pg_class")
        found += grants(planned.output)
        postgres.sql("; ".join(grants(planned.output)))
    raise AssertionError(found)


TARGETS = [
    {"table": "published.released", "if_exists": "replace"},
    {"table": "anew.released"},
    {"file": "released.csv", "if_exists": "replace"},
]


@pytest.mark.parametrize("target", some(TARGETS), ids=["table", "new schema", "file"])
@pytest.mark.parametrize("migrated", some([False, True]), ids=["no ledger", "ledger"])
def test_the_grants_that_are_named_are_those_that_a_run_needs(
    postgres: Any, role: str, target: dict[str, str], migrated: bool
) -> None:
    postgres.write_policy(target=target)
    if migrated:
        postgres.call("migrate", postgres.address)
    asked = granted_in_turn(postgres, role)
    for _ in range(2 if "if_exists" in target else 1):
        ran = called(postgres, role, "run")
        assert ran.exit_code == 0, ran.output
    settles = [grant for grant in asked if grant.split()[1] in SETTLING and "ldiv.source_lock" not in grant]
    assert bool(settles) == ("file" in target)
    assert any(grant.startswith("GRANT INSERT ON ldiv.run_secret TO") for grant in asked)


def test_default_privileges_grant_nobody_the_secrets_of_the_ledger(postgres: Any, role: str) -> None:
    postgres.sql(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}, PUBLIC")
    try:
        assert postgres.call("migrate", postgres.address).exit_code == 0
        asked = f"SELECT relname LIKE '%\\_secret', has_table_privilege('{role}', oid, 'SELECT') FROM pg_class"
        of_ledger = f"{asked} WHERE relnamespace = 'ldiv'::regnamespace AND relkind = 'r'"
        assert set(postgres.sql(of_ledger)) == {(True, False), (False, True)}
    finally:
        postgres.sql(f"ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM {role}, PUBLIC")


def test_the_grants_of_the_page_are_enough(postgres: Any, role: str) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/postgresql.md").read_text()
    (listed,) = re.findall("```sql\n(GRANT.*?)```", page, re.DOTALL)
    assert postgres.call("migrate", postgres.address).exit_code == 0
    postgres.sql(listed.replace("publisher", role))
    postgres.write_policy(target=TARGETS[0])
    for command in ("plan", "run", "run"):
        found = called(postgres, role, command)
        assert found.exit_code == 0, found.output
    assert "unchanged" in found.output


def test_rules_of_a_recoding_are_entered_by_leave_and_a_second_run_needs_no_more(postgres: Any, role: str) -> None:
    tree = {"taxonomy": {"file": "country.csv"}}
    postgres.write_policy(
        target=TARGETS[0], algorithm="cuts", quasi_identifiers={"country": tree}, identifiers=["name", "age"],
        require=[{"distinct": 2}], seed=None,
    )  # fmt: skip
    assert any("ldiv.run_rule" in grant for grant in granted_in_turn(postgres, role))
    for _ in range(2):
        ran = called(postgres, role, "run")
        assert ran.exit_code == 0, ran.output
    assert "unchanged" in ran.output


@pytest.mark.parametrize("columns", some(["others", "alike"]))
def test_a_table_of_somebody_else_s_is_filled_or_made_anew_by_leave(postgres: Any, role: str, columns: str) -> None:
    postgres.run(target=TARGETS[0])
    if columns == "others":
        postgres.sql("ALTER TABLE published.released ADD COLUMN more integer")
    postgres.write_policy(target=TARGETS[0])
    asked = granted_in_turn(postgres, role)
    wanted = "GRANT DELETE ON published.released" if columns == "alike" else "ALTER TABLE published.released OWNER"
    assert any(grant.startswith(wanted) for grant in asked)
    ran = called(postgres, role, "run")
    assert ran.exit_code == 0, ran.output


def test_an_old_ledger_is_its_owner_s_to_bring_up_to_date(postgres: Any, role: str) -> None:
    for older in migrate.available()[:8]:
        (postgres.folder / f"{older.number:04d}_{older.name}.sql").write_text(older.sql)
    with open_address(address_of(postgres.address)) as con:
        migrate.migrate(Engine(con), postgres.folder)
    postgres.sql(f"GRANT USAGE ON SCHEMA ldiv TO {role}; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA ldiv TO {role}")
    planned = called(postgres, role, "plan")
    assert planned.exit_code == 3 and "ldiv migrate" in planned.output


@pytest.mark.parametrize("command", some(["run", "plan"]))
def test_a_session_that_only_reads_is_refused_before_work(postgres: Any, role: str, command: str) -> None:
    postgres.sql(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    found = called(postgres, role, command)
    assert found.exit_code == 3 and "read only" in found.output


@pytest.mark.parametrize(("address", "name"), [("", "ldiv_db"), (" application_name=nightly", "nightly")])
def test_the_server_sees_who_asks(postgres: Any, address: str, name: str) -> None:
    with open_address(address_of(postgres.address + address)) as con:
        asked = (
            "SELECT * FROM postgres_query(current_database(), 'SELECT current_setting(''application_name'') AS name')"
        )
        assert con.execute(asked).fetchall() == [(name,)]


@pytest.mark.parametrize("table", some(["patients", "published.released"]))
def test_rows_that_a_policy_hides_are_neither_left_out_nor_left_behind(postgres: Any, role: str, table: str) -> None:
    postgres.run(target={"table": "published.released"})
    postgres.write_policy(target={"table": "published.released", "if_exists": "replace"})
    granted_in_turn(postgres, role)
    postgres.sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; CREATE POLICY seen ON {table} USING (country = 'FR')")
    failed = called(postgres, role, "run")
    assert failed.exit_code == 2 and "hides rows from this user" in failed.output, failed.output
    assert postgres.sql("SELECT count(*) FROM published.released") == [(24,)]
    postgres.sql(f"ALTER ROLE {role} BYPASSRLS")
    assert called(postgres, role, "run").exit_code == 0
    assert postgres.sql("SELECT count(*) FROM published.released") == [(24,)]
