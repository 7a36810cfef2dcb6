"""The materialization on dbt-postgres alone: nights under a key, and what is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from clinics import POLICY, Clinic, clinic_in

from ldiv_db.running import dbt_model

pytest.importorskip("dbt.adapters.postgres", reason="dbt-postgres is not installed: pip install dbt-postgres")
from dbt_ldiv_db import publish_anonymized

pytestmark = pytest.mark.dbt


@pytest.fixture
def clinic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clinic]:
    with clinic_in("postgres", tmp_path / "project", request) as found:
        yield found


def test_every_build_adds_classes_under_a_key_and_none_begins_a_series_anew(clinic: Clinic) -> None:
    nightly = {name: value for name, value in POLICY.items() if name != "identifiers"} | {"key": "id"}
    for number, rows in enumerate((30, 40), 1):
        clinic.models(rows=rows, patients=nightly)
        done = clinic.project.run("build")
        assert done.success, done.said[-8:]
        assert done.message("patients").startswith(f"release {number}: ")
    done = clinic.project.run("run", "--full-refresh")
    assert not done.success and "cannot be restarted" in done.message("patients")
    assert clinic.read("SELECT count(*) FROM ldiv.release WHERE status = 'published'") == [(2,)]


def test_the_view_of_a_models_rows_goes_whatever_ends_the_release(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dbt_model, "publish_there", interrupt)
    clinic.read("CREATE VIEW public.rows_of_a_model AS SELECT 1 AS age")
    opened = SimpleNamespace(transaction_open=False, handle=clinic.connection)
    connections = SimpleNamespace(get_thread_connection=lambda: opened, data_type_code_to_name=str)
    adapter = SimpleNamespace(type=lambda: "postgres", connections=connections, execute=clinic.read)
    with pytest.raises(KeyboardInterrupt):
        publish_anonymized(adapter, "{}", "DROP VIEW public.rows_of_a_model")
    assert clinic.read("SELECT to_regclass('public.rows_of_a_model')") == [(None,)]
