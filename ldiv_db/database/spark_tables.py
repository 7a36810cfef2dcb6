"""What Spark's catalog says of a table beside its rows, and the folder where it has a table's files by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import FORMATS

#: What a catalog has on a table of files that has more than rows, with what a note calls it.
_BESIDE = {
    "# Partition Information": "the partitions",
    "# Clustering Information": "the clusters",
    "Num Buckets": "the buckets",
    "Comment": "the comments",
    "Table Properties": "the table properties",
}


def entries(rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Of the rows of DESCRIBE TABLE EXTENDED those that tell of the table, and the headings of what it may have."""
    names = [row[0] for row in rows]
    start = next((i for i, name in enumerate(names) if name.startswith("# Detailed")), len(rows))
    return {row[0]: row[1] for i, row in enumerate(rows) if i >= start or row[0].startswith("# ")}


def provider_of(told: Mapping[str, str]) -> str:
    """The format of a table by the catalog's entries on it, empty if it has none."""
    return told.get("Provider", "").lower()


def exchanges(told: Mapping[str, str], fields: Iterable[Any]) -> bool:
    """True if a table with such entries and fields can have other rows of its types, and whatever else it has.

    Not where Spark would write beside files of a place of its own, nor text that it pads.
    """
    padded = any("__CHAR_VARCHAR_TYPE_STRING" in field.metadata for field in fields)
    is_of_files = told.get("Type") == "MANAGED" and provider_of(told) not in ("", "hive")
    return not padded and (is_of_files or provider_of(told) in FORMATS)


def beside_rows(told: Mapping[str, str], fields: Iterable[Any]) -> list[str]:
    """What a table of files with such entries and fields loses if it is made anew, as a note says it."""
    named = {**told, "Comment": ""} if any("comment" in field.metadata for field in fields) else told
    place = [f"the ties to the files in {told['Location']}"] if told.get("Type") == "EXTERNAL" else []
    return [*(what for entry, what in _BESIDE.items() if entry in named), *place]


def made_as(shown: str) -> str:
    """What SHOW CREATE TABLE shows after the name; text has no collation, which Spark would not read back from ORC."""
    columns, using, beside = shown[shown.index(" (\n") :].partition("\nUSING ")
    return f"{columns.replace(' COLLATE UTF8_BINARY', '')}{using}{beside}"


def folder_of(session: Any, table: Relation, schema: str) -> str:
    """The folder of a table of files in a `schema`, by its name in SQL; empty for one of a catalog that is named."""
    catalog = session.catalog
    if (table.parts[0] if len(table.parts) > 2 else catalog.currentCatalog()) != "spark_catalog":
        return ""
    schema = schema or catalog.currentDatabase()
    if catalog.databaseExists(schema):
        root = catalog.getDatabase(schema).locationUri
    else:
        root = f"{session.conf.get('spark.sql.warehouse.dir')}/{table.parts[-2].lower()}.db"
    return f"{root}/{table.name.lower()}"


def is_there(session: Any, folder: str) -> bool:
    """True if there is a folder of that name."""
    try:
        return bool(session.read.option("recursiveFileLookup", True).text(folder).schema)
    except Exception as error:
        if "PATH_NOT_FOUND" in str(error):
            return False
        raise
