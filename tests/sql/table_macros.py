"""The table macros of `sql/ldiv.sql`, written from the macros of the dbt package: `python -m tests.sql.table_macros`.

Each measure is rendered with a macro's parameter where dbt has a number, so that dbt's tests, the second reading of a
run and these macros judge classes by one text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldiv_db.database.dbt_macros import _package
from ldiv_db.database.templates import resource_folder

PATH: Path = resource_folder("sql") / "ldiv.sql"


class Expression(str):
    """SQL in place of a whole number of Jinja's."""

    __slots__ = ()

    def __sub__(self, other: int) -> Expression:
        return Expression(f"({self} - {other})")


PARAMETER, BESIDE_K, BESIDE_C = Expression("parameter"), Expression("k"), Expression("c")
#: The requirements that a macro judges, with what each takes as `parameter`, and by name.
JUDGED: dict[str, dict[str, Any]] = {
    **{"k": {"k": PARAMETER}, "risk": {"max": PARAMETER}, "threshold": {"default": PARAMETER}},
    **{name: {"l": PARAMETER} for name in ("distinct", "unique_distinct", "frequency", "entropy")},
    **{"recursive": {"l": PARAMETER, "c": BESIDE_C}, "p_sensitive": {"p": PARAMETER, "k": BESIDE_K}},
    **{"alpha_k": {"alpha": PARAMETER, "k": BESIDE_K}, "t_closeness": {"t": PARAMETER, "distance": "equal"}},
}
HEAD = """\
-- Table macros for DuckDB: is a published table l-diverse, how large are its classes, what did it lose?
-- `.read ldiv.sql` in DuckDB's shell, or `ldiv_db.register(con)` in Python, makes them for the session alone.
-- Written by `python -m tests.sql.table_macros` from the dbt package: do not change it here.

CREATE OR REPLACE TEMP MACRO ldiv_whole(value, name) AS
    CASE WHEN value >= 1 AND value = floor(value) AND value < 1000000000 THEN CAST(value AS BIGINT)
        ELSE error(name || ' takes a whole number from 1, not ' || coalesce(CAST(value AS VARCHAR), 'NULL')) END;

CREATE OR REPLACE TEMP MACRO ldiv_billionths(value, name, least, most, without_least) AS
    CASE WHEN value >= least AND (value > least OR NOT without_least) AND value <= most
            AND value = CAST(value AS DECIMAL(28, 9))
        THEN CAST(CAST(value AS DECIMAL(28, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS HUGEINT)
        ELSE error(name || ' takes a number ' || CASE WHEN without_least THEN 'above ' ELSE 'from ' END || least
            || ' to ' || most || ', with up to 9 digits after the point, not '
            || coalesce(CAST(value AS VARCHAR), 'NULL')) END;

-- A text alone would stand for all columns whose names have it.
CREATE OR REPLACE TEMP MACRO ldiv_listed(columns) AS
    CASE WHEN typeof(columns) <> 'VARCHAR[]' THEN error('columns are a list of names')
        WHEN contains(lower(CAST(columns AS VARCHAR)), 'ldiv_value') THEN error('rename the column ldiv_value')
        ELSE true END;

-- A value as bytes, so that no collation makes two values one; 0.0 and -0.0 are one.
CREATE OR REPLACE TEMP MACRO ldiv_written(value) AS
    encode(CASE
        WHEN regexp_matches(typeof(value), '\\]$|^(STRUCT|MAP|UNION|INTERVAL|VARIANT)')
            THEN error('a column holds ' || typeof(value) || ': give a number or a text in a view')
        WHEN typeof(value) IN ('FLOAT', 'DOUBLE') AND CAST(value AS VARCHAR) IN ('-0.0', '-nan')
            THEN substr(CAST(value AS VARCHAR), 2)
        ELSE CAST(value AS VARCHAR) END);

-- A value that tells classes apart: whoever reads the table tells -0.0 from 0.0, which GROUP BY does not.
CREATE OR REPLACE TEMP MACRO ldiv_apart(value) AS
    CASE WHEN typeof(value) IN ('FLOAT', 'DOUBLE') AND CAST(value AS VARCHAR) IN ('-0.0', '-nan')
        THEN error('a column of classes holds ' || CAST(value AS VARCHAR) || ': write it without its sign in a view')
        ELSE ldiv_written(value) END;

-- The rows of each class, as they are published: the columns, and `rows`.
CREATE OR REPLACE TEMP MACRO ldiv_classes(published, columns) AS TABLE
    SELECT first(COLUMNS(columns)) AS '\\0', count(*) AS rows
    FROM (
        SELECT list_value(*COLUMNS('^ldiv_value ')) AS ldiv_value, COLUMNS(columns)
        FROM (
            SELECT ldiv_apart(COLUMNS(columns)) AS 'ldiv_value \\0', COLUMNS(columns)
            FROM query_table(published)
            WHERE ldiv_listed(columns)
        )
    )
    GROUP BY ldiv_value;

"""
#: The rows of a published table: what tells classes apart as one value, and the sensitive value.
ROWS = """(
    SELECT list_value(*COLUMNS(* EXCLUDE (ldiv_value))) AS class, ldiv_value AS v
    FROM (
        SELECT
            ldiv_apart(COLUMNS(columns)),
            ldiv_written(COLUMNS(CASE WHEN sensitive IS NULL THEN columns[:1] ELSE [sensitive] END)) AS ldiv_value
        FROM query_table(published)
        WHERE ldiv_listed(columns)
    )
)"""
#: Its classes with their rows.
CLASSES = """(
    SELECT class, count(*) AS class_rows
    FROM (
        SELECT list_value(*COLUMNS(*)) AS class
        FROM (SELECT ldiv_apart(COLUMNS(columns)) FROM query_table(published) WHERE ldiv_listed(columns))
    )
    GROUP BY class
)"""
MACRO = """\
-- {said}
CREATE OR REPLACE TEMP MACRO {name}({takes}) AS TABLE
    SELECT{columns}
    FROM (
{judged}
    ) AS measured;
"""


def _symbolic() -> Any:
    """The macros of the package, of which those that read a parameter write the check of one that is given later."""
    package = _package([], str)

    def fraction(test: str, name: str, value: str, least: int, most: int | None, without: bool = False) -> Any:
        bounds = f"{least}, {1_000_000_000 if most is None else most}, {str(without).lower()}"
        over = f"ldiv_billionths({value}, '{name}', {bounds})"
        return {"over": over, "under": 1_000_000_000, "text": f"({over} / 1000000000)"}

    package.whole_parameter = lambda test, name, value: Expression(f"ldiv_whole({value}, '{name}')")
    package.fraction_between = fraction
    return package


def _choice(measures: dict[str, dict[str, Any]], part: str, package: Any) -> str:
    cases = []
    for name, measure in measures.items():
        written = measure[part] if part == "good" else package.real(measure[part])
        cases.append(f"            WHEN '{name}' THEN {written}")
    known = ", ".join(measures)
    refused = f"error('no requirement ' || requirement || '; known: {known}')"
    return "\n".join(["CASE requirement", *cases, f"            ELSE {refused} END"])


def text() -> str:
    """The file."""
    package = _symbolic()
    of_table = {"t_closeness": [{"sensitive": {"v": {}}}]}  # what it asks of the column
    measures = {
        name: getattr(package, f"measure_{name}")(
            "", *of_table.get(name, []), given, *(["v"] if name in of_table else [])
        )
        for name, given in JUDGED.items()
    }
    beside = {key: sql for measure in measures.values() for key, sql in measure["beside"].items()}
    # The rows from the l-th most frequent value on are counted where there is an l.
    beside["tail"] = f"CASE WHEN requirement = 'recursive' THEN {beside['tail']} END"
    summary = package.summary_of(ROWS, ["class"], "v", {"beside": beside, "is_ordered": False})
    parts = {part: _choice(measures, part, package) for part in ("reached", "margin", "good")}
    summary = "\n".join(line for line in summary.splitlines() if line.strip())
    judged = "\n".join(
        [
            "        SELECT class_rows,",
            *(f"        {written} AS {part}{',' if part != 'good' else ''}" for part, written in parts.items()),
            f"        FROM ({summary}) AS summary",
        ]
    )
    check = MACRO.format(
        said="The verdict of `ldiv check`, in a row: `holds`, and how far the worst class is from what is required.",
        name="ldiv_check",
        takes="published, columns, sensitive, requirement, parameter, k := NULL, c := NULL",
        columns="""
        requirement AS requirement,
        count(*) AS classes,
        count(*) FILTER (WHERE good IS NOT TRUE) AS violating_classes,
        coalesce(CAST(sum(class_rows) FILTER (WHERE good IS NOT TRUE) AS BIGINT), 0) AS violating_rows,
        arg_min(reached, margin) AS worst,
        min(margin) AS margin,
        count(*) FILTER (WHERE good IS NOT TRUE) = 0 AS holds""",
        judged=judged,
    )
    risk = MACRO.format(
        said="How likely somebody who knows the columns finds the row of a person: at most, on average, and surely.",
        name="ldiv_risk",
        takes="published, columns",
        columns="""
        CAST(sum(class_rows) AS BIGINT) AS rows,
        count(*) AS classes,
        min(class_rows) AS smallest_class,
        max(risk) AS largest_risk,
        count(*) / sum(class_rows) AS mean_risk,
        count(*) FILTER (WHERE class_rows = 1) AS unique_rows""",
        judged=f"SELECT class_rows, {measures['risk']['reached']} AS risk FROM {CLASSES} AS classes",
    )
    loss = MACRO.format(
        said="What anybody sees of the loss of a table: discernibility, the size of classes, cells published as `*`.",
        name="ldiv_loss",
        takes="published, columns",
        columns="""
        CAST(sum(class_rows) AS BIGINT) AS rows,
        count(*) AS classes,
        CAST(sum(CAST(class_rows AS HUGEINT) * class_rows) AS HUGEINT) AS dm,
        sum(class_rows) / count(*) AS mean_class_size,
        CAST(sum(class_rows * stars) AS BIGINT) AS stars""",
        judged=f"""SELECT class_rows, len(list_filter(class, lambda cell: cell = encode('*'))) AS stars
FROM {CLASSES} AS classes""",
    )
    lines = "\n".join([check, risk, loss]).replace("\n--", "\n\n--").splitlines()
    return HEAD + "\n".join(line for line in lines if line.strip() or not line) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
