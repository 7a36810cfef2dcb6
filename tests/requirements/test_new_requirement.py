"""A requirement that is defined here alone: all that the program does with requirements it does with this one too."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.requirements import REQUIREMENTS, Distribution, Requirement, parse_requirement
from ldiv_db.requirements.guarantees import Ceiling, Guarantee
from ldiv_db.requirements.parameters import whole

pytestmark = pytest.mark.usefixtures("no_remedies")

VALUES = ["HIV", "Cancer", "Hepatitis", "Flu", "Cold", "Asthma"]


@pytest.fixture(autouse=True)
def crowd() -> Iterator[None]:
    """`crowd: n` asks for n different values, and for twice as many rows."""

    @dataclass(frozen=True)
    class Crowd(Requirement):
        """At least 2n rows and n different sensitive values."""

        name = "crowd"
        reaches = "values"
        fields = {"n": whole}  # noqa: RUF012
        more_is_better = counts_only = met_by_eligible = True
        n: int

        @property
        def template(self) -> str:
            return "requirements/p_sensitive"

        def params(self, template: str) -> dict[str, Any]:
            return {"p": self.n, "k": 2 * self.n}

        def promise(self) -> Guarantee:
            return Guarantee(size=2 * self.n, values=self.n)

        def ceiling(self, distribution: Distribution) -> Ceiling:
            return Ceiling(distribution.rows - self.n + 1)

        @property
        def least_rows(self) -> int:
            return 2 * self.n

        def unique_class_size(self) -> int:
            return 2 * self.n

        def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
            return f"n: {min(distribution.distinct, distribution.rows // 2)}"

        def nearest_at(self, size: int) -> str:
            return f"n: {size // 2}"

    yield
    del REQUIREMENTS["crowd"]


@pytest.fixture
def rows(table: Any) -> None:
    table("t", {"age": "INTEGER", "disease": "VARCHAR"}, [(20 + i % 50, VALUES[i * 7 % 6]) for i in range(120)])


def policy(**changes: Any) -> dict[str, Any]:
    base = {"source": "t", "target": "released", "sensitive": ["disease"], "require": [{"crowd": 2}]}
    return base | {"quasi_identifiers": {"age": {"numeric": True}}} | changes


@pytest.mark.parametrize("algorithm", some(["bsgi", "cuts", "auto", "topdown", "mondrian", "peel", "tp"]))
def test_runs_meet_it(algorithm: str, con: Any, rows: None) -> None:
    age = {"taxonomy": {"ranges": [5, 10]}} if algorithm == "cuts" else {"numeric": True}
    keys = {"quasi_identifiers": {"age": age}}
    result = ldiv_db.run(con, policy(algorithm=algorithm, output={"class_id": True}, **keys))
    (verdict,) = result.requirements
    assert (verdict["name"], verdict["holds"], verdict["worst_is"]) == ("crowd", True, "values")
    sizes = con.execute("SELECT count(*), count(DISTINCT disease) FROM released GROUP BY class_id").fetchall()
    assert sum(size for size, _ in sizes) == 120 and all(size >= 4 and values >= 2 for size, values in sizes)
    assert con.execute("SELECT requirement, parameters FROM ldiv.run_requirement").fetchall() == [("crowd", '{"n": 2}')]


def test_a_check_judges_it(con: Any, rows: None) -> None:
    (audit,) = ldiv_db.check(con, "t", ["age"], "disease", ["crowd:1", {"crowd": {"n": 2}}])
    one, two = audit.verdicts
    assert one.holds and (two.holds, two.violating_classes, two.worst) == (False, 50, 2)


def test_attacks_stay_below_what_it_promises(con: Any, rows: None) -> None:
    wanted = policy(algorithm={"name": "bsgi", "select": "bisect"})
    ldiv_db.run(con, wanted)
    gains = {
        (attack.name, gain.measure): gain
        for attack in ldiv_db.attack(con, "released", policy=wanted).attacks
        for gain in attack.gains
    }
    assert {gain.holds for gain in gains.values()} == {True, None}
    assert gains["prosecutor", "1 / people alike"].bound == float(Fraction(1, 4))
    assert gains["homogeneity", "share of rows in classes of one value"].bound == 0


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        ("topdown", "crowd n=7 on disease fails even in the whole table as one class; the nearest it meets is n: 6"),
        ("tp", "for this algorithm: the most frequent sensitive value holds 20 of 120 rows, more than 1/14"),
        ("bsgi", "classes of 14 different sensitive values are impossible"),
    ],
)
def test_an_error_says_what_is_nearest(algorithm: str, reason: str, con: Any, rows: None) -> None:
    with pytest.raises(InfeasibleError) as raised:
        ldiv_db.run(con, policy(require=[{"crowd": 7}], algorithm=algorithm))
    assert reason in str(raised.value) and "n: 6" in str(raised.value)


@pytest.mark.parametrize(
    ("require", "code"),
    [({"crowd": 0}, "require.0.crowd"), ({"crowd": {"m": 1}}, "require.0.crowd"), ({"crowds": 1}, "require.0")],
)
def test_it_is_read_like_any_other(require: Any, code: str, con: Any, rows: None) -> None:
    assert parse_requirement("crowd:3").resolve(None).label == "crowd n=3"
    with refuses(code):
        ldiv_db.run(con, policy(require=[require]))


def test_algorithms_refuse_what_it_does_not_bound(con: Any, rows: None) -> None:
    keys = {"age": {"taxonomy": {"ranges": [5, 10]}}}
    with refuses("algorithm.scheme"):
        ldiv_db.run(con, policy(algorithm={"name": "cuts", "scheme": "vioRec"}, quasi_identifiers=keys))
