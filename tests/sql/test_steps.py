"""The tables of steps beside the templates are what runs do."""

import pytest
from steps import CASES, page
from strategies import some

from ldiv_db.database.templates import resource_folder


@pytest.mark.parametrize("name", some(CASES))
def test_a_run_takes_the_steps_that_are_written(name):
    assert page(name, CASES[name]) == (resource_folder("sql") / name / "steps.md").read_text(encoding="utf-8")
