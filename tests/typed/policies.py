"""Policies as users write them: mypy takes what a policy takes, and refuses what it does not (the ignored lines)."""

import ldiv_db
from ldiv_db.require import Distinct, Frequency, K, TCloseness, Threshold

POLICY = ldiv_db.Policy(
    quasi_identifiers=["age", "zip"],
    sensitive="disease",
    require=[Distinct(3), K("auto"), Frequency(2.5, sensitive=["disease"]), {"k": 5}],
    target="published.patients",
)
PARTS = ldiv_db.Policy(
    source="main.patients",
    target=ldiv_db.Target(file="patients.parquet"),
    quasi_identifiers={
        "age": ldiv_db.QuasiIdentifier(numeric=True, weight=2),
        "zip": ldiv_db.QuasiIdentifier(taxonomy=ldiv_db.TaxonomySpec(prefix=[5, 3, 1])),
        "sex": None,
    },
    sensitive={"disease": ldiv_db.Sensitive(harmless=["none"])},
    require=[Threshold(0.5, values={"HIV": 0.1}), TCloseness(0.2, "equal", others_known=True)],
    nulls="suppress",
)
TEXT: str = POLICY.to_yaml()

ldiv_db.Policy(quasi_identifers=["age"])  # type: ignore[call-arg]
ldiv_db.Policy(quasi_identifiers=["age"], nulls="drop")  # type: ignore[arg-type]
ldiv_db.Policy(quasi_identifiers=["age"], require=[3])  # type: ignore[list-item]
Distinct("three")  # type: ignore[arg-type]
Threshold(0.5, absent="perhaps")  # type: ignore[arg-type]
K()  # type: ignore[call-arg]


def compare(frame: object) -> bool:
    """What runs, audits and attacks return."""
    result = ldiv_db.run(frame, POLICY)
    audits = ldiv_db.check(result.table(), qi=["age", "zip"], sensitive="disease", require=[Distinct(3)])
    attacks = ldiv_db.attack(result.table(), policy=POLICY, known=frame)
    return audits.holds is True and attacks.holds is not False and result.loss.lm_mean < 1


def ask(con: object) -> list[str]:
    """The arguments of calls have the types of the requests that they are made of."""
    audits = ldiv_db.check(con, "t", "age", "disease", ["distinct:3"], suppressed="ignore", twice=True)
    lost = ldiv_db.measure(con, "t", POLICY, kl=False)
    explored = ldiv_db.explore(con, POLICY, range(2, 5), algorithms="bsgi", by="utility")
    profiled = ldiv_db.profile(con, "t", hipaa=True)
    reported = ldiv_db.report(con, "t", POLICY, recipient="a hospital", harms="none", reasons={"age": "by law"})
    ldiv_db.check(con, "t", suppressed="maybe")  # type: ignore[arg-type]
    ldiv_db.explore(con, POLICY, by="cost")  # type: ignore[arg-type]
    ldiv_db.measure(con, "t", queries="many")  # type: ignore[arg-type]
    ldiv_db.profile(con, "t", hippa=True)  # type: ignore[call-arg]
    ldiv_db.report(con, "t", receiver="a hospital")  # type: ignore[call-arg]
    return [(audits.holds is True and reported.html()) or "", lost.source, explored.by, profiled.table]
