"""What the headers of the central templates say by example is so."""

import pytest
from examples import run_example

from ldiv_db.database.templates import header
from tests.sql.templates import all_templates

EXAMPLES = [template for template in all_templates() if "example" in header(template)]


def test_the_central_templates_have_one():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("template", EXAMPLES)
def test_the_example_holds(con, template):
    expected, records = run_example(con, template)
    assert all(list(record) == expected.columns for record in records)
    rows = [[float(f"{value:.4g}") if isinstance(value, float) else value for value in r.values()] for r in records]
    assert sorted(rows, key=repr_of) == sorted(expected.rows, key=repr_of)


def repr_of(row):
    return [str(float(value)) if isinstance(value, int) else str(value) for value in row]
