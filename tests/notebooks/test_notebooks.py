"""The notebooks of the documentation run from top to bottom, and are stored without what they print."""

import json
import re
from pathlib import Path

import pytest
from strategies import some

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_bare(path):
    text = path.read_text(encoding="utf-8")
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert not re.search(r"/(home|root|tmp|work|Users)/|[A-Z]:\\\\", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_lead_somewhere(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (FOLDER / link).exists(), link


@pytest.mark.parametrize("path", some(NOTEBOOKS), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    for name in ("pandas", "ipykernel"):
        pytest.importorskip(name, reason="the extra `notebooks` is not installed")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    failed = [output for output in outputs if output.output_type == "error"]
    expected = [cell for cell in notebook.cells if "raises-exception" in cell.metadata.get("tags", ())]
    assert len(failed) == len(expected)
    for output in failed:  # what went wrong and the way out, and no line of our program
        assert output.traceback[0].startswith("InfeasibleError: ")
        text = "".join(output.traceback)
        assert len(output.traceback) > 1 and "File " not in text and "Traceback" not in text
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<svg" in page for page in pages) and any("<table" in page for page in pages)
