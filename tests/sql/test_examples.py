"""What the headers of the central templates say by example is so."""

from examples import run_example

from ldiv_db.database.templates import header
from tests.sql.templates import all_templates


def test_the_examples_hold(con):
    examples = [template for template in all_templates() if "example" in header(template)]
    assert len(examples) >= 20
    con.execute("PRAGMA disable_optimizer")  # of a few rows it takes longer to optimise a statement than to run it
    for template in examples:
        expected, records = run_example(con, template)
        assert all(list(record) == expected.columns for record in records), template
        rows = [[float(f"{v:.4g}") if isinstance(v, float) else v for v in record.values()] for record in records]
        assert sorted(rows, key=repr_of) == sorted(expected.rows, key=repr_of), template


def repr_of(row):
    return [str(float(value)) if isinstance(value, int) else str(value) for value in row]
