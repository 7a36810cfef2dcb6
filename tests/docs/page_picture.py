"""`docs/pictures/report.png`: how the page begins that `ldiv report` writes for whoever signs, on made-up patients.

`python -m tests.docs.page_picture` takes it again, with Chromium. Its pixels depend on the fonts of the machine, so no
test compares them.
"""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

from tests.browser.chromium import installed, launched
from tests.docs.pages import DOCS, Reader

PICTURE = DOCS / "pictures" / "report.png"
#: The width of a column of text on GitHub, in pixels, and room below what is shown.
_WIDTH, _MARGIN = 860, 12
#: README's policy with classes of five, and a seed, so that each picture has the same numbers.
_POLICY = """
source: patients
target: {table: published.patients, if_exists: replace}
identifiers: [patient_id]
quasi_identifiers: {age: {numeric: true}, sex: {}, zip: {taxonomy: {prefix: [5, 3, 1]}}}
sensitive: [diagnosis]
require: [{frequency: 3}, {k: 5}]
seed: 1
"""
_REPORT = (
    "ldiv report clinic.duckdb published.patients --policy policy.yml --public --release-model shared"
    ' --recipient "University hospital" --purpose "Quality of care" --out report.html'
)


def take(page: Path, picture: Path) -> None:
    """A picture of the head of a report."""
    program = installed()
    assert program, "Chromium is not installed"
    with launched(program) as browser:
        tab = browser.tab()
        tab.open(page, _WIDTH)
        height = tab.value("document.querySelector('header .facts').getBoundingClientRect().bottom") + _MARGIN
        clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height, "scale": 1}
        picture.write_bytes(base64.b64decode(tab.call("Page.captureScreenshot", clip=clip)["data"]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        reader = Reader(Path(folder))
        reader.start_clinic()
        Path("policy.yml").write_text(_POLICY, encoding="utf-8")
        reader.call("ldiv run clinic.duckdb policy.yml", 0)
        reader.call(_REPORT, 0)
        take(Path(folder) / "report.html", PICTURE)


if __name__ == "__main__":
    main()
