"""Lists the tests that take seconds, by the report of a pass on a quiet machine: `python3 -m tests.slowest REPORT.xml`.

The report is pytest's (`--junitxml`). Tests in `slow.txt` are marked `heavy`: a tenth of them is run by default.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).parent / "slow.txt"
#: Files whose tests share what takes long, whichever of them is first.
FILES = ("tests/sql/test_template_contracts.py",)
#: A test with a case that takes longer is listed, in seconds.
MOST = 1.0


def slow_tests(report: Path, most: float = MOST) -> list[str]:
    """The tests, as `tests/room/test_file.py::test_name`, of which a case took longer, set-up included."""
    found = set[str]()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if float(case.get("time") or 0) > most:
            path = (case.get("classname") or "").replace(".", "/")
            found.add(f"{path}.py::{(case.get('name') or '').split('[')[0]}")
    return sorted(name for name in found | set(FILES) if not name.startswith(tuple(f"{file}::" for file in FILES)))


if __name__ == "__main__":
    LIST.write_text("\n".join(slow_tests(Path(sys.argv[1]))) + "\n", encoding="utf-8")
