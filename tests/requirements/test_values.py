"""Values that a policy names: read as they are written, compared in their column's type, refused if no row has them."""

import datetime
import json
from decimal import Decimal

import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.documents import parse_document
from ldiv_db.requirements import parse_requirement
from ldiv_db.requirements.values import named_value, read_named, shown_value

pytestmark = pytest.mark.usefixtures("no_remedies")

#: Type of the column, the value as SQL, how YAML names it.
SPELLINGS = [
    ("INTEGER", "10", "010"),
    ("VARCHAR", "'default'", "values: {default: 0.4}"),
    ("BOOLEAN", "false", "No"),
    ("BOOLEAN", "true", "true"),
    ("VARCHAR", "'No'", "No"),
    ("VARCHAR", "'true'", "true"),
    ("VARCHAR", "'010'", "010"),
    ("INTEGER", "10", "10.0"),
    ("BIGINT", "1000", "1e3"),
    ("HUGEINT", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
    ("DOUBLE", "1.5", "1.5"),
    ("DOUBLE", "1e20", "100000000000000000000"),
    ("DOUBLE", "0.0", "-0"),
    ("FLOAT", "0.1", "0.10"),
    ("DECIMAL(4,2)", "1.5", "1.5"),
    ("VARCHAR", "'1.50'", "1.50"),
    ("DATE", "'2020-01-02'", "2020-01-02"),
    ("TIMESTAMP", "'2020-01-02'", "2020-01-02"),
    ("UUID", "'0190A5B8-0000-7000-8000-000000000000'", "0190A5B8-0000-7000-8000-000000000000"),
    ("VARCHAR", "NULL", "null"),
    ("INTEGER", "NULL", "~"),
    ("VARCHAR", "'null'", "'null'"),
    ("VARCHAR", "''", "''"),
    ("VARCHAR", "'absent'", "values: {absent: 0.4}"),
    ("VARCHAR", "'values'", "values"),
    ("ENUM('a', 'No', 'c', 'd')", "'No'", "No"),
]
OTHERS = {"BOOLEAN": ["true", "false"], "DATE": ["'2021-01-01'", "'2022-01-01'"], "TIMESTAMP": ["'2021-01-01'"]}
OTHERS |= {"VARCHAR": ["'a'", "'b'"], "UUID": ["'0190a5b8-0000-7000-8000-000000000001'"]}


def fill(con, kind, value):
    """A table of which half of the rows have the value, and the others others."""
    others = ["'a'", "'c'"] if kind.startswith("ENUM") else OTHERS.get(kind, ["7", "8"])
    others = [other for other in others if other != value]
    con.execute(f"CREATE OR REPLACE TABLE t (q INTEGER, s {kind})")
    con.execute(
        f"INSERT INTO t SELECT i % 3, CASE WHEN i % 2 = 0 THEN {value} ELSE {others[0]} END FROM range(12) AS r(i)"
    )


def policy(threshold, **changes):
    """The policy that a YAML text says."""
    text = (
        "{source: t, target: released, quasi_identifiers: {q: {numeric: true}}, sensitive: [s], nulls_sensitive: value,"
    )
    read = parse_document(f"{text} algorithm: topdown, require: [{{threshold: {threshold}}}]}}")
    return read | changes


def mapping(spelling, share):
    return "{%s}" % (spelling.replace("0.4", str(share)) if "{" in spelling else f"{spelling}: {share}")


@pytest.mark.parametrize(("kind", "value", "spelling"), some(SPELLINGS))
def test_a_threshold_is_of_the_value_that_is_named(con, kind, value, spelling):
    """Half of the rows have it: a threshold of 0.4 cannot be met, one of 0.5 can, by run, plan and check alike."""
    fill(con, kind, value)
    with pytest.raises(ldiv_db.InfeasibleError, match="threshold"):
        ldiv_db.plan(con, policy(mapping(spelling, 0.4)))
    result = ldiv_db.run(con, policy(mapping(spelling, 0.5)))
    assert result.requirements[0]["worst"] == 1
    (low,), (high,) = (policy(mapping(spelling, share))["require"] for share in (0.4, 0.5))
    (audit,) = ldiv_db.check(con, "t", ["q"], "s", [low, high])
    assert [verdict.holds for verdict in audit.verdicts] == [False, True]


@pytest.mark.parametrize(
    ("kind", "value", "named"),
    some([
        ("BOOLEAN", "true", True), ("VARCHAR", "'true'", True), ("DOUBLE", "1.5", 1.5), ("INTEGER", "10", 10.0),
        ("DECIMAL(4,2)", "1.5", Decimal("1.500")), ("DATE", "'2020-01-02'", datetime.date(2020, 1, 2)),
        ("DATE", "'2020-01-02'", datetime.datetime(2020, 1, 2)), ("VARCHAR", "NULL", None),
        ("TIMESTAMP", "'2020-01-02 03:04:05'", datetime.datetime(2020, 1, 2, 3, 4, 5)),
    ], 3),
)  # fmt: skip
def test_python_may_name_values_by_its_own(con, kind, value, named):
    fill(con, kind, value)
    (audit,) = ldiv_db.check(con, "t", ["q"], "s", [{"threshold": {named: share}} for share in (0.4, 0.5)])
    assert [verdict.holds for verdict in audit.verdicts] == [False, True]


NO_VALUE = [
    # The database would round it.
    ("INTEGER", "2", "{1.5: 0.5}", "1 of the values named are not of type INTEGER: '1.5'"),
    ("VARCHAR", "'10'", "{010: 0.5, 10: 0.5}", "1 of the values named are in no row: '010'"),
    ("INTEGER", "10", "{HIV: 0.5}", "1 of the values named are not of type INTEGER: 'HIV'"),
    ("DECIMAL(4,2)", "1.5", "{1.504: 0.5}", "are not of type DECIMAL"),
    ("DATE", "'2020-01-02'", "{'2020-01-02 12:00:00': 0.5}", "are not of type DATE"),
    ("INTEGER", "10", "{11: 0.5, 12: 0.5}", "2 of the values named are in no row: '11', '12'"),
    ("VARCHAR", "'null'", "{null: 0.5}", "1 of the values named are in no row: NULL"),
]


@pytest.mark.parametrize(("kind", "value", "threshold", "says"), some(NO_VALUE))
def test_a_value_that_no_row_has_is_an_error_unless_it_may_be_absent(con, kind, value, threshold, says):
    fill(con, kind, value)
    require = policy(threshold)["require"]
    for do in (ldiv_db.plan, lambda c, p: ldiv_db.check(c, "t", ["q"], "s", p["require"])):
        with pytest.raises(ldiv_db.PolicyError, match=says):
            do(con, policy(threshold))
    require[0]["threshold"]["absent"] = "allow"
    allowed = policy(threshold, require=require)
    assert ldiv_db.run(con, allowed).loss.rows_published == 12
    assert ldiv_db.check(con, "released", ["q"], "s", require)[0].holds


def test_a_value_need_not_be_one_of_every_attribute_that_a_requirement_is_for(con):
    con.execute("CREATE TABLE t AS SELECT i % 2 AS q, i % 3 AS a, 'v' || i % 3 AS b FROM range(12) AS r(i)")
    for names, says in (({"v1": 0.5, "2": 0.5}, None), ({"v1": 0.5, "v7": 0.5}, "1 of the values named .*: 'v7'")):
        require = [{"threshold": names}]
        if says is None:
            assert all(audit.holds for audit in ldiv_db.check(con, "t", ["q"], ["a", "b"], require))
            continue
        with pytest.raises(ldiv_db.PolicyError, match=says):
            ldiv_db.check(con, "t", ["q"], ["a", "b"], require)
    with pytest.raises(ldiv_db.PolicyError, match="are not of type BIGINT: 'v1'"):  # of the other attribute alone
        of_both = [{"threshold": {"v1": 0.5}, "sensitive": name} for name in "ba"]
        ldiv_db.check(con, "t", ["q"], ["a", "b"], of_both)


@pytest.mark.parametrize("named", ["{1.5: 0.5, 1.50: 0.4}", "{1.5: 0.5, 15e-1: 0.4, absent: allow}"])
def test_one_value_named_twice_is_an_error(con, named):
    fill(con, "DOUBLE", "1.5")
    with pytest.raises(ldiv_db.PolicyError, match=r"names one value twice: '1\.5', '1"):
        ldiv_db.plan(con, policy(named))


def test_equal_keys_of_a_document_are_an_error_and_null_is_not_its_name():
    read = parse_document("{true: 1, 1.5: 2, No: 3, 010: 4, ~: 5, '~': 6, 2020-01-02: 7}")
    assert read == {"true": 1, "1.5": 2, "No": 3, "010": 4, None: 5, "~": 6, "2020-01-02": 7}
    for text in ("{true: 1, 'true': 2}", "{null: 1, ~: 2}", "{[a]: 1}"):
        with pytest.raises(ValueError):
            parse_document(text)


def test_a_value_called_as_a_word_stands_under_values(con):
    fill(con, "VARCHAR", "'base'")
    assert not ldiv_db.check(con, "t", ["q"], "s", [{"threshold": {"default": 1, "values": {"base": 0.4}}}])[0].holds
    for wrong, says in (({"absent": 0.4}, "under `values`"), ({"a": 1, "values": {"a": 0.4}}, "names 'a' twice")):
        with pytest.raises(ldiv_db.PolicyError, match=says):
            ldiv_db.check(con, "t", ["q"], "s", [{"threshold": wrong}])


def test_a_command_line_names_values_in_quotes_or_without():
    spec = parse_requirement('s=threshold:0.5,null=0.1,"null"=0.2,"a, ""b"""=0.3,"absent"=0.4,a=b=0.6,absent=allow')
    values = {None: "0.1", "null": "0.2", 'a, "b"': "0.3", "absent": "0.4", "a=b": "0.6"}
    assert spec.argument == {"default": "0.5", "absent": "allow", "values": values}
    assert spec.problems("require") == []
    shown = str(spec.resolve(None))
    assert shown == 'threshold default=0.5, null=0.1, a, "b"=0.3, a=b=0.6, "absent"=0.4, "null"=0.2'
    for text in ("threshold:0.5,HIV=0.1,HIV=0.2", "threshold:0.5,0.6", 'threshold:"HIV"=0.1,HIV=0.2'):
        with pytest.raises(ValueError, match="twice"):
            parse_requirement(text)


@pytest.mark.parametrize("value", ["", "null", "~", " a", '"', '"a"', "default", "HIV", 'say "x"', None])
def test_what_is_shown_of_a_value_is_read_as_that_value(value):
    assert read_named(shown_value(value, ("default",))) == value


@pytest.mark.parametrize("wrong", [[1], {"a": 1}, (1,), b"x", {1}])
def test_what_is_no_value_is_refused(wrong):
    with pytest.raises(ValueError, match="names values"):
        named_value(wrong)


CATEGORIES = [
    ("BOOLEAN", "true", "[[true], [No]]"),
    ("INTEGER", "10", "[[010, 99], [7.0, 8]]"),
    ("DECIMAL(4,2)", "1.5", "[[1.5], [7, 8.0]]"),
    ("VARCHAR", "'010'", "[[010, ~], [a, b]]"),
    ("VARCHAR", "'No'", "[[No], [a, b]]"),
    ("VARCHAR", "NULL", "[[a, b], [null]]"),
]


@pytest.mark.parametrize(("kind", "value", "categories"), some(CATEGORIES))
def test_categories_are_of_the_values_that_are_named(con, tmp_path, kind, value, categories):
    """In a policy's file and on a command line; that some of what is listed does not occur is no error."""
    fill(con, kind, value)
    wanted = {"distinct_alpha": {"l": 2, "alpha": 0.5}}
    path = tmp_path / "policy.yml"
    path.write_text(
        "{source: t, target: released, quasi_identifiers: {q: {numeric: true}}, nulls_sensitive: value,"
        f" algorithm: topdown, sensitive: {{s: {{categories: {categories}}}}}, require: {json.dumps([wanted])}}}"
    )
    result = ldiv_db.run(con, ldiv_db.read_policy(path))
    assert all(found["holds"] for found in result.requirements)
    text = parse_document(categories, [()])
    assert ldiv_db.check(con, "released", ["q"], {"s": {"categories": text}}, [wanted])[0].holds


@pytest.mark.parametrize(
    ("kind", "value", "categories", "says"),
    [
        ("INTEGER", "10", "[[HIV], [10, 7]]", "are not of type INTEGER: 'HIV'"),
        ("DECIMAL(4,2)", "1.5", "[[1.5], [1.50, 7]]", "names one value twice"),
        ("VARCHAR", "'No'", "[['no'], [a]]", "not 1 of those in the table"),
    ],
)
def test_categories_that_name_no_value_or_not_all_are_refused(con, kind, value, categories, says):
    """Also where no requirement but the count of the similarity attack depends on them."""
    fill(con, kind, value)
    changes = {"sensitive": {"s": {"categories": parse_document(categories, [()])}}, "require": [{"distinct": 2}]}
    with pytest.raises(ldiv_db.PolicyError, match=says):
        ldiv_db.plan(con, policy("1", **changes))


def test_a_merged_part_of_a_policy_is_read_as_written():
    text = "x: &x {categories: [[010], [No]]}\nsensitive: {s: {<<: *x}, t: {<<: [*x], weights: [0, 1]}}\nk: 010"
    read = parse_document(text, [("sensitive", "*", "categories")])
    assert [read["sensitive"][name]["categories"] for name in "st"] == [[["010"], ["No"]]] * 2
    assert read["sensitive"]["t"]["weights"] == [0, 1] and read["k"] == 8


@pytest.mark.parametrize(
    ("counts", "base"),
    some([({None: 3, "b": 2, "c": 1, "d": 1}, "0.25"), ({"a": 2, "b": 1}, "0.5"), ({"a": 5, None: 1}, "0.5")]),
)
@pytest.mark.parametrize("algorithm", some(["topdown", {"name": "cuts", "scheme": "none"}]), ids=["topdown", "cuts"])
def test_a_base_that_the_whole_table_meets_is_accepted(con, algorithm, counts, base):
    """Shares such as 2/3 equal thresholds such as 0.5 * 2 / 1.5, which nine digits do not."""
    values = [value for value, count in counts.items() for _ in range(count)]
    con.execute("CREATE TABLE t AS SELECT 1 AS q, unnest($v::VARCHAR[]) AS s", {"v": values})
    keys = {"q": {"taxonomy": {"ranges": [5]}}}
    wanted = policy(f"{{base: {base}}}", algorithm=algorithm, quasi_identifiers=keys)
    less = wanted | {"require": [{"threshold": {"base": str(Decimal(base) - Decimal("1e-9"))}}]}
    with pytest.raises(ldiv_db.InfeasibleError):
        ldiv_db.run(con, less)
    assert ldiv_db.run(con, wanted).loss.rows_published == len(values)
