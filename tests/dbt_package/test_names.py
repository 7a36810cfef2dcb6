"""The generic tests as other engines get them, by each engine's own rules of names; no adapter is needed for that."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from own_names import held, resolve
from random_cases import TYPES, random_case
from sqlglot import exp
from strategies import draws, search

from ldiv_db.database import dbt_macros
from ldiv_db.database.dialects import written_table
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import DIALECTS

#: Of what adapters each adapter is one, beside itself.
PARENTS = {"databricks": ("spark",), "redshift": ("postgres",)}
#: Adapters in whose texts a quote stands behind a backslash.
BACKSLASH = ("bigquery", "databricks", "snowflake", "spark")


def rendered(case: dict[str, Any], dialect: str) -> str:
    """The statement of `meets_policy` on the table of a case, as it is rendered with dbt's adapter of that name."""
    quoted = "\\'" if dialect in BACKSLASH else "''"
    words = SimpleNamespace(
        escape_single_quotes=lambda text: text.replace("'", quoted),
        string_literal=lambda text: f"'{text}'",
        type_string=lambda: "varchar" if quoted == "''" else "string",
    )
    package = dbt_macros._package(
        [
            SimpleNamespace(name=held(name, dialect), dtype=kind)
            for name, kind in zip(case["columns"], TYPES, strict=True)
        ],
        lambda name: exp.to_identifier(name, quoted=True).sql(dialect),
        (dialect, *PARENTS.get(dialect, ())),
        dbt=words,
    )
    table = written_table(Relation((case["table"],)), dialect)
    asked = [case[name] for name in ("require", "qi", "sensitive", "class_column")]
    return str(package.test_requirements("meets_policy", table, *asked, None))


@search(2, draw=draws, number=st.integers(0, 107))
def test_each_name_of_a_generic_test_is_one(draw: random.Random, number: int) -> None:
    case = random_case(draw, number)
    tables = {case["table"]: dict(zip(case["columns"], TYPES, strict=True))}
    for dialect in DIALECTS:
        found = resolve(rendered(case, dialect), dialect, tables)
        assert [select.alias.lower() for select in found.selects] == ["requirement", "class_rows", "reached", "margin"]
