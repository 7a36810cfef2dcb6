"""Algorithms are found by name, and one is found without the code of the others."""

import subprocess
import sys

import pytest

from ldiv_db.algorithms import ALGORITHMS, algorithm_of


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_name_finds_its_algorithm(name):
    assert algorithm_of(name).name == name


def test_one_algorithm_is_imported_at_a_time():
    code = (
        "import sys; from ldiv_db.algorithms import algorithm_of; algorithm_of('mondrian');"
        "print(*(m for m in sys.modules if m.startswith('ldiv_db.algorithms.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    families = {name.split(".")[2] for name in done.stdout.split() if name.count(".") > 2}
    assert families - {"infeasible"} == {"local"}, "infeasible/ is what all families say of a policy"
