"""A hospital's table and its release, which reports are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.attacking.question import Knowledge
from ldiv_db.reporting import attempts, evidence
from tests.reporting.hospitals import FEW, HOSTILE, SAID, fill_hospital, hospital_policy, quoted, whole_context


@pytest.fixture(scope="session")
def hospital() -> Iterator[Any]:
    """A connection to both, and to tables that tests hold reports against: none of them may change anything here."""
    with duckdb.connect(config={"threads": 1}) as con:
        fill_hospital(con)
        ldiv_db.run(con, hospital_policy())
        con.execute("CREATE TABLE copied AS FROM published ORDER BY disease DESC, age")
        con.execute("CREATE TABLE changed AS FROM published")
        con.execute("UPDATE changed SET disease = 'zzother' WHERE rowid = 7")
        con.execute("CREATE TABLE named AS SELECT *, 'zzname' AS name FROM published")
        con.execute("CREATE TABLE others AS FROM patients")
        for name, columns in {"everybody": ["age", HOSTILE], "everybodys_ages": ["age"]}.items():
            names = ", ".join(map(quoted, columns))
            con.execute(
                f"CREATE TABLE {name} AS SELECT {names} FROM patients, range(3) WHERE age % 3 > 0"
                f" UNION ALL SELECT {names} FROM patients WHERE age % 5 = 0"
            )
        yield con


#: The attacks on the hospital's tables, once they are tried.
TRIED: dict[Any, Any] = {}


def remembering(tried: dict[Any, Any], patch: pytest.MonkeyPatch) -> None:
    real = evidence.attempts_on

    def attempts_on(subject: Any) -> Any:
        key = str(subject.table), subject.asked.public, subject.asked.policy is None, subject.asked.tries
        if key not in tried:
            tried[key] = real(subject)
        return tried[key]

    patch.setattr(evidence, "attempts_on", attempts_on)


@pytest.fixture(scope="session")
def report(hospital: Any) -> ldiv_db.Report:
    with pytest.MonkeyPatch.context() as patch:
        remembering(TRIED, patch)
        return ldiv_db.report(hospital, "published", hospital_policy(), **FEW, **SAID)


@pytest.fixture(scope="session")
def document(report: ldiv_db.Report) -> Any:
    """What all tests read, and none may change."""
    return report.document


@pytest.fixture(scope="session")
def public(hospital: Any) -> ldiv_db.Report:
    return ldiv_db.report(hospital, "published", hospital_policy(), public=True)


@pytest.fixture(scope="session")
def final(hospital: Any) -> ldiv_db.Report:
    """A report without a blank, which is final."""
    with pytest.MonkeyPatch.context() as patch:
        remembering(TRIED, patch)
        asked = {"context": whole_context(), "final": True}
        return ldiv_db.report(hospital, "published", hospital_policy(), **FEW, **asked)


@pytest.fixture
def remembered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks on a table are tried once: they take most of a report's time, and these tests are of something else."""
    remembering(TRIED if "hospital" in request.fixturenames else {}, monkeypatch)


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attack is tried that needs people, but for a population."""
    real = attempts.attack_table

    def attacks(engine: Any, table: Any, columns: Any, known: Knowledge) -> Any:
        people = {key: one for key, one in known.people.items() if key == "population"}
        return real(engine, table, columns, Knowledge(people=people, threshold=known.threshold))

    monkeypatch.setattr(attempts, "attack_table", attacks)
