"""The tables of steps beside the templates are what runs do."""

import pytest
from steps import CASES, page

from ldiv_db.database.templates import resource_folder

#: Which steps a run takes is ours to say, whatever version of the database takes them.


@pytest.mark.parametrize("name", CASES)
def test_a_run_takes_the_steps_that_are_written(name):
    assert page(name, CASES[name]) == (resource_folder("sql") / name / "steps.md").read_text(encoding="utf-8")
