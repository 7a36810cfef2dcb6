"""`.ci/run` runs each step, whatever became of the others, and names those that failed."""

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="no checkout")
#: Every step, and those of a pass.
STEPS = re.findall(r"^step_(\w+)\(\)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE) if SCRIPT.is_file() else []


def ended(folder: Path, *words: str, **bodies: str) -> subprocess.CompletedProcess[str]:
    """The script, a copy of which has other bodies for its steps: `true` where none is given."""
    own = "\n".join(f"step_{name}() {{\n{bodies.get(name, 'true')}\n}}" for name in STEPS)
    text = SCRIPT.read_text(encoding="utf-8").replace("\nrun_step readme\n", f"\n{own}\nrun_step readme\n")
    copy = folder / "ci" / "run"
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(text)
    return subprocess.run(["bash", copy, *words], capture_output=True, text=True, check=False)


def test_every_step_is_run(tmp_path):
    done = ended(tmp_path)
    assert done.returncode == 0, done.stdout
    assert sorted(re.findall(r"^== (\w+) passed", done.stdout, re.MULTILINE)) == sorted(STEPS)


def test_a_step_ends_at_its_first_failure_and_the_others_are_run(tmp_path):
    done = ended(tmp_path, dbt="false\necho went on", wheel="echo of the wheel\nexit 3", lint="echo of lint")
    assert done.returncode == 1 and "went on" not in done.stdout
    assert set(done.stdout.splitlines()[-1].split()) == {"failed:", "dbt", "wheel"}
    assert "of lint" in done.stdout and "of the wheel" in done.stdout


def test_steps_are_run_alone_and_whole(tmp_path):
    done = ended(tmp_path, "whole", "site", site="echo whole $whole", readme="echo only $only")
    assert done.returncode == 0 and "whole 1" in done.stdout and "only site" in done.stdout
    assert "== dbt" not in done.stdout
