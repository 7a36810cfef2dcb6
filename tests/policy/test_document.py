"""Policies that are built in Python: typed calls for requirements, errors in our words, and their YAML."""

import inspect
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

import ldiv_db
from ldiv_db import require
from ldiv_db.database.errors import DatabaseError, PolicyError
from ldiv_db.policy.parts import Sensitive, TaxonomySpec
from ldiv_db.policy.reading import parse_policy, read_policy, read_requirements
from ldiv_db.require import Distinct, K, PSensitive, builder_name
from ldiv_db.requirements import REQUIREMENTS, RequirementSpec
from tests import require_stub

ROOT = Path(__file__).parents[2]
PLAIN = {"quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], "require": [{"distinct": 3}]}


def test_every_requirement_has_a_call():
    assert {builder_name(name) for name in REQUIREMENTS} <= set(require.__all__)
    for name in require.__all__:
        assert {"sensitive", "others_known"} < set(inspect.signature(getattr(require, name)).parameters)


def test_the_types_are_those_of_the_calls():
    assert require_stub.PATH.read_text(encoding="utf-8") == require_stub.stub()


@pytest.mark.parametrize(
    ("built", "written"),
    [
        (lambda: Distinct(3), {"distinct": 3}),
        (lambda: Distinct(l="auto"), {"distinct": "auto"}),
        (lambda: K(5, sensitive="disease"), {"k": 5, "sensitive": "disease"}),
        (lambda: PSensitive(2, k=3, others_known=True), {"p_sensitive": {"p": 2, "k": 3}, "others_known": True}),
        (lambda: require.TCloseness(0.2), {"t_closeness": 0.2}),
        (lambda: require.TCloseness(0.2, "equal"), {"t_closeness": {"t": 0.2, "distance": "equal"}}),
        (lambda: require.Threshold(0.5), {"threshold": 0.5}),
        (
            lambda: require.Threshold(0.5, values={"HIV": 0.1}, absent="allow"),
            {"threshold": {"default": 0.5, "absent": "allow", "values": {"HIV": 0.1}}},
        ),
        (lambda: require.Range(k=2, e="30 days"), {"range": {"k": 2, "e": "30 days"}}),
    ],
)
def test_a_call_is_what_a_document_says(built, written):
    (expected,) = parse_policy({**PLAIN, "require": [written]}).require
    assert built() == expected
    assert read_requirements(built()) == [expected]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Distinct(0), PolicyError, "whole number from 1"),
        (lambda: require.Frequency("x"), PolicyError, "takes a number"),
        (require.Threshold, PolicyError, "names no threshold"),
        (K, TypeError, "missing a required argument: 'k'"),
        (lambda: K(5, l=2), TypeError, "'l'"),
    ],
)
def test_a_call_refuses_what_is_no_parameter(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_policy_is_built():
    policy = ldiv_db.Policy(quasi_identifiers=["age", "sex"], sensitive="disease", require=[Distinct(3)], seed=1)
    assert policy == parse_policy({**PLAIN, "seed": 1})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"quasi_identifers": ["age"]}, r"quasi_identifers: unknown key \(did you mean 'quasi_identifiers'\?\)"),
        ({"require": [3]}, "takes `name: value`"),
        ({"nulls": "drop"}, "nulls: takes 'value', 'suppress' or 'reject'"),
        ({"quasi_identifiers": {"age": {"numerc": True}}}, r"age.numerc: unknown key \(did you mean 'numeric'\?\)"),
        (
            {"quasi_identifiers": {"recode": {"numerc": True}}},
            r"recode.numerc: unknown key \(did you mean 'numeric'\?\)",
        ),
        (
            {"sensitive": {"disease": {"taxonomy": {"fil": "x"}}}},
            r"taxonomy.fil: unknown key \(did you mean 'file'\?\)",
        ),
    ],
)
def test_what_cannot_be_built_is_said_in_our_words(changes, says):
    with pytest.raises(PolicyError, match=says):
        ldiv_db.Policy(**{**PLAIN, **changes})


def test_a_part_is_refused_in_our_words():
    with pytest.raises(PolicyError, match=r"numerc: unknown key \(did you mean 'numeric'\?\)"):
        ldiv_db.QuasiIdentifier(numerc=True)


def test_what_does_not_go_together_is_said_where_it_is_used(con, table):
    table("t", {"age": "INTEGER", "disease": "VARCHAR"}, [(1, "a"), (2, "b")])
    policy = ldiv_db.Policy(source="t", target="r", quasi_identifiers=["age"], sensitive=["age"], require=[Distinct(2)])
    with pytest.raises(PolicyError, match="is classified already under"):
        ldiv_db.run(con, policy)


@pytest.mark.parametrize("path", sorted(ROOT.glob("fixtures/*/*policy*.yml")), ids=lambda path: path.name)
def test_a_policy_of_a_file_is_the_same_after_its_yaml(path, tmp_path):
    policy = read_policy(path)
    (tmp_path / "policy.yml").write_text(policy.to_yaml(), encoding="utf-8")
    again = read_policy(tmp_path / "policy.yml")
    drawn = set() if "seed" in policy.model_fields_set else {"seed"}
    assert again.model_dump(exclude=drawn) == policy.model_dump(exclude=drawn)


def test_a_policy_of_many_parts_is_the_same_after_its_yaml(tmp_path):
    policy = ldiv_db.Policy(
        source={"query": "SELECT 1 AS age"},
        target={"file": "out.parquet", "if_exists": "replace"},
        quasi_identifiers={
            "age": ldiv_db.QuasiIdentifier(numeric=True, weight=2),
            "010": {"taxonomy": TaxonomySpec(prefix=[5, 3])},
            "no": None,
        },
        sensitive={"disease": Sensitive(harmless=["none", None]), "ward": None},
        require=[
            require.Threshold(Decimal("0.123456789"), values={"HIV": 0.1, None: 0.5, "null": 0.2}, sensitive="disease"),
            require.Frequency(Decimal(2), others_known=True),
        ],
        algorithm={"name": "auto"},
        seed=7,
    )  # fmt: skip
    (tmp_path / "policy.yml").write_text(policy.to_yaml(), encoding="utf-8")
    again = read_policy(tmp_path / "policy.yml")
    assert [(spec.name, spec.sensitive, spec.others_known) for spec in again.require] == [
        (spec.name, spec.sensitive, spec.others_known) for spec in policy.require
    ]
    for one, other in zip(again.require, policy.require, strict=True):
        assert one.resolve(None) == other.resolve(None)
    assert again.model_dump(exclude={"require"}) == policy.model_dump(exclude={"require"})


def test_a_policy_is_that_of_another_source(con):
    policy = ldiv_db.Policy(**PLAIN)
    relation = con.sql("SELECT 1 AS age")
    assert policy.with_source(relation).source.value is relation
    assert yaml.safe_load(policy.with_source("main.t").to_yaml()) == {"source": "main.t", **PLAIN}
    assert yaml.safe_load(policy.to_yaml()) == PLAIN
    with pytest.raises(PolicyError, match="source: takes a text"):
        policy.with_source(3)


def test_places_that_are_not_said_are_not_written():
    document = yaml.safe_load(ldiv_db.Policy(**PLAIN).to_yaml())
    assert document == PLAIN


def test_a_decomposition_needs_no_requirements_in_python():
    policy = ldiv_db.Policy(quasi_identifiers=["age"], sensitive={"disease": {"l": 2}}, algorithm="anatomy")
    assert policy.require == [] and policy.decomposes


def test_the_repr_is_short_and_has_no_seed_and_no_rows(con):
    relation = con.sql("SELECT 1 AS age, 'flu' AS disease")
    policy = ldiv_db.Policy(source=relation, seed=987654321, **PLAIN)
    assert (
        repr(policy) == "Policy(source=frame, quasi_identifiers=[age, sex], sensitive=[disease], require=[distinct: 3])"
    )


def test_a_misspelt_key_beside_a_relation_is_said(con):
    relation = con.sql("SELECT 1 AS age, 'flu' AS disease")
    with pytest.raises(PolicyError, match="sensitve: unknown key"):
        ldiv_db.run(con, {**PLAIN, "source": relation, "target": "r", "sensitve": ["disease"]})


def test_a_built_requirement_is_checked(con, table):
    table("t", {"a": "INTEGER", "s": "VARCHAR"}, [(1, "x"), (1, "y"), (2, "x")])
    (audit,) = ldiv_db.check(con, "t", "a", "s", [K(2)])
    assert not audit.holds
    assert isinstance(K(2), RequirementSpec)


@pytest.mark.parametrize("listed", [list, tuple, frozenset])
@pytest.mark.parametrize(
    ("key", "members"),
    [("require", ["distinct", 3]), ("identifiers", [1, 2]), ("keep", [("a", 1), 2, "c"]), ("individual", ["a", 2])],
)
def test_wrong_members_of_any_list_are_refused_in_our_words(con, table, key, members, listed):
    table("t", {"a": "INTEGER", "s": "VARCHAR"}, [(1, "x"), (2, "y")])
    policy = {"source": "t", "target": "out", "quasi_identifiers": ["a"], "sensitive": ["s"], "require": [{"k": 2}]}
    for call in (ldiv_db.run, ldiv_db.plan):
        with pytest.raises(PolicyError, match=rf"{key}.*: takes"):
            call(con, policy | {key: listed(members)})


@pytest.mark.parametrize("algorithm", [{}, {"algorithm": "auto"}, {"algorithm": "bsgi"}, {"algorithm": "cuts"}])
@pytest.mark.parametrize("file", [{}, {"file": "r.duckdb"}, {"table": "r"}])
def test_a_prefix_without_a_key_is_refused_in_our_words(con, table, tmp_path, algorithm, file):
    table("t", {"a": "INTEGER", "s": "VARCHAR"}, [(1, "x"), (2, "y")])
    policy = {"source": "t", "quasi_identifiers": ["a"], "sensitive": ["s"], "require": [{"k": 2}]} | algorithm
    for call in (ldiv_db.run, ldiv_db.plan):
        with pytest.raises(PolicyError, match=r"key: is required|target.prefix: goes with releases"):
            call(con, policy | {"target": {"prefix": "x", **file}}, tmp_path)


def test_a_query_that_fails_on_a_row_is_reported_without_our_sql(con, table):
    table("t", {"a": "VARCHAR", "s": "VARCHAR"}, [("1", "x"), ("2", "y"), ("secret", "z")])
    policy = {"target": "out", "quasi_identifiers": ["a"], "sensitive": ["s"], "require": [{"k": 2}]}
    with pytest.raises(DatabaseError, match=r"^the query cannot be read: ConversionException") as error:
        ldiv_db.run(con, policy | {"source": {"query": "SELECT CAST(a AS INTEGER) AS a, s FROM t"}})
    assert "SELECT" not in str(error.value) and "secret" not in str(error.value)
