"""BigQuery lists the datasets of one region; a table is looked for in its dataset, wherever that lies."""

import re

import pytest

from ldiv_db.database.names import Relation
from ldiv_db.database.warehouses import Warehouse

#: The datasets of a project by their regions.
DATASETS = {"US": {"home": ["people"]}, "EU": {"clinic": ["people"]}, "asia-east1": {"lab": ["people", "values"]}}


class Regions:
    """A connection whose statements name a dataset; without one they are of the US."""

    def __init__(self):
        self.sent = []

    def cursor(self):
        return self

    def close(self):
        pass

    def execute(self, sql):
        self.sent.append(sql)
        found = re.search(r"FROM (?:`?other`?\.)?`?(\w+)`?\.INFORMATION_SCHEMA\.TABLES", sql)
        if found:
            tables = {name: tables for region in DATASETS.values() for name, tables in region.items()}
            if found[1] not in tables:
                raise RuntimeError(f"404 Not found: Dataset p:{found[1]} was not found in location US")
            self.rows = [(table,) for table in tables[found[1]]]
        elif "SCHEMATA" in sql:
            self.rows = [(name,) for name in DATASETS["US"]]

    def fetchall(self):
        return self.rows


@pytest.fixture
def there():
    return Warehouse(Regions(), "bigquery")


@pytest.mark.parametrize("dataset", ["home", "clinic", "lab"])
def test_a_table_is_found_in_any_region(there, dataset):
    assert there.exists(Relation((dataset, "people")))
    assert there.exists(Relation(("other", dataset, "people")))
    assert not there.exists(Relation((dataset, "nothing")))


def test_a_dataset_that_is_nowhere_has_no_tables(there):
    assert not there.exists(Relation(("nowhere", "people"))) and there.tables(Relation(("nowhere", "people"))) == []


@pytest.mark.parametrize("dataset", ["home", "clinic", "nowhere"])
def test_a_dataset_is_made_where_none_is(there, dataset):
    there.make_schema(Relation((dataset, "released")))
    assert any(sql.startswith("CREATE SCHEMA") for sql in there.connection.sent) is (dataset == "nowhere")
