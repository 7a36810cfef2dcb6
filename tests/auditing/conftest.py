"""What tests of audits share: a file of our SQL that says something else, so that one of the readings is wrong."""

import shutil

import pytest

from ldiv_db.database import dbt_macros, templates
from ldiv_db.database.templates import resource_folder


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """Has one file of our SQL say something else."""

    def clear():
        templates._environment.cache_clear()
        dbt_macros._templates.cache_clear()

    def change(module, name, old, new):
        folder = tmp_path / "sql"
        if not folder.exists():
            shutil.copytree(resource_folder("sql"), folder)
        text = (folder / name).read_text()
        assert text.count(old) == 1
        (folder / name).write_text(text.replace(old, new))
        monkeypatch.setattr(module, "resource_folder", lambda _: folder)
        clear()

    yield change
    monkeypatch.undo()
    clear()
