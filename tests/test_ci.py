"""`.ci/run` decides the same for the same commit: what it draws is a matter of the commit's content alone."""

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"
pytestmark = [
    pytest.mark.skipif(not SCRIPT.is_file(), reason="no checkout"),
]


def git(folder, *words):
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def turn(folder):
    """What the script draws in this checkout, by its own lines."""
    lines = re.findall(r"^(?:turn=|export LDIV_TEST_TURN=).*$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    words = ["bash", "-euo", "pipefail", "-c", "\n".join([*lines, "echo $LDIV_TEST_TURN"])]
    return int(subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout)


def test_the_same_content_draws_the_same_with_any_history(tmp_path):
    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    whole.mkdir()
    git(whole, "init", "--quiet")
    drawn = []
    for number in range(4):
        (whole / "file").write_text(f"{number % 3}")
        git(whole, "add", ".")
        git(whole, "commit", "--quiet", "-m", f"{number}")
        drawn.append(turn(whole))
    assert drawn[0] == drawn[3] and len(set(drawn)) == 3
    git(whole, "commit", "--quiet", "--allow-empty", "-m", "the same again")
    git(tmp_path, "clone", "--quiet", "--depth", "1", whole.as_uri(), str(shallow))
    assert turn(shallow) == turn(whole) == drawn[3]


def test_without_a_commit_it_is_fixed(tmp_path):
    git(tmp_path, "init", "--quiet")
    assert turn(tmp_path) == turn(tmp_path) > 0
