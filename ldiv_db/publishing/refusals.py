"""Refusals of targets: for what they are, for what is there already, and for what would be read and replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.database import catalog, lineage, postgres
from ldiv_db.database.catalog import Column, columns_of, without_members
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, nearest, refuse, refused
from ldiv_db.database.files import CAN_SWAP
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.document import Policy
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.expanded import refuse_view
from ldiv_db.publishing.in_database import MADE_ANEW, InDatabase, InOtherDatabase, InTables, compare_columns
from ldiv_db.publishing.in_file import DatabaseFile, DataFile, Folder, InFile

#: Integers that Parquet has no type for; they would silently become floating-point numbers.
_TOO_WIDE = ("HUGEINT", "UHUGEINT")


@dataclass(frozen=True)
class TargetCheck:
    """A run, and the destination that it may not go to for what it is, or for what is there already.

    `sources` are all that it reads, that of the table of this `name` first, whose policy it is. `folder` is where
    relative files lie, `types` are those of the table's columns, None if they are not known.
    """

    destination: Destination
    policy: Policy
    folder: Path
    sources: Sequence[Table]
    types: Mapping[str, str] | None
    name: str = ONLY

    @property
    def engine(self) -> Engine:
        return self.destination.engine

    @property
    def if_exists(self) -> str:
        return self.policy.target.if_exists

    def refuse(self) -> None:
        """Raise PolicyError if the release may not or cannot go there.

        Nor may it read what it replaces or appends to, by whatever way.
        """
        engine, destination = self.engine, self.destination
        refuse_lost_digits(engine, self.policy, self.sources[0])
        written = [destination.tables[self.name]] if isinstance(destination, InTables) else []
        refuse_hidden_rows(engine, [*self.sources, *written])
        if isinstance(destination, InTables):
            destination.refuse_lists(self.policy.output.lists)
        if isinstance(destination, InDatabase):
            self._check_table(destination.tables[self.name])
            if self.policy.expand:
                refuse_view(engine, self.policy.expand.view, destination.tables[self.name], self.sources)
        if isinstance(destination, InOtherDatabase):
            self._check_other(destination.tables[self.name], destination.home)
        if isinstance(destination, InFile):
            check_file(destination, [source.path for source in self.sources if isinstance(source, FileRelation)])
            if destination.is_there and self.if_exists == "fail":
                hint = f"set if_exists: replace, or name another {destination.kind}"
                raise refused("target", f"{destination.name} exists", hint)
        if isinstance(destination, DatabaseFile):
            _check_database_file(destination)
        if isinstance(destination, DataFile | Folder):
            self._check_data_file(destination)
        if isinstance(destination, Folder) and destination.path.exists():
            if not CAN_SWAP:
                raise refused("target.file", "folders change places in one step on Linux alone", "name a new folder")
            destination.require_ours()
        if not isinstance(destination, InDatabase):
            for source in self.sources:
                refuse_read_target(engine, self.policy, self.folder, source)

    def _check_table(self, table: Relation) -> None:
        engine = self.engine
        if any(isinstance(one, Relation) and catalog.same_table(engine, table, one) for one in self.sources):
            raise refused("target", "is the source itself", "name another table")
        refuse_catalog_schema(engine, table, "target")
        if [part.lower() for part in table.parts[:-1]] in ([], ["main"]):  # TEMP tables lie in a schema of that name
            taken = catalog.looked_up(engine, Relation(table.parts[-1:]))
            if taken is not None and len(taken.parts) > 1:  # the audit would read that one
                raise refused("target", f"this connection has a TEMP table or view called {table.name}", "drop it")
        appends = "" if self.name else " or append"  # nobody adds to one of several
        home = catalog.catalog_of(engine, table).lower()
        if home not in ("temp", (engine.catalog or home).lower()):
            what = "a table cannot be published in one transaction with a catalog in another database"
            raise refused("target.table", what, "give `file:` as well, or leave the catalog in the database")
        if home not in ("temp", engine.snapshot.current.lower()):
            what = f"{table} is in another database, one transaction writes one"
            raise refused("target.table", what, "give `file:` as well, or name one of the database that is opened")
        if not self._is_there(table, f"set if_exists: replace{appends}"):
            return
        if self.if_exists == "append":
            if self.types is not None:
                hint = "what is appended to has labels as text: make it by if_exists: append"
                compare_columns(engine, self.types, table, hint)
            self._refuse_keys(table)
        self._refuse_read(table)
        if self.if_exists == "replace" and self.types is not None:
            shown = (*self.policy.sensitive, *self.policy.keep)
            own = {} if self.name else postgres.shown_types(engine, self.sources[0], shown)  # several are read as views
            self._foresee_loss(table, own)

    def _refuse_read(self, table: Relation) -> None:
        for source in self.sources:
            refuse_read_tables(self.engine, source, [table])

    def _foresee_loss(self, table: Relation, own: Mapping[str, str]) -> None:
        """Have a plan say what a table of PostgreSQL's loses that the release replaces; raise as a run does.

        Where types are kept that depend on the classes the run alone knows whether the table is made anew.
        """
        engine, policy, types = self.engine, self.policy, self.types or {}
        columns = [Column(name, kind) for name, kind in types.items()]
        if postgres.is_in_postgres(engine, table) and catalog.table_exists(engine, table):
            if policy.output.types == "keep" and {c.name for c in columns_of(engine, table)} == set(types):
                return
            self._foresee(postgres.foreseen_loss(engine, table, columns, own, policy.target.lose))

    def _foresee(self, note: str) -> None:
        if note and note not in self.destination.foreseen:
            self.destination.foreseen.append(note)

    def _refuse_keys(self, table: Relation) -> None:
        """Raise PolicyError for keys of a table that the release is known to break, as it has the same values twice."""
        policy = self.policy
        labels = {name.lower() for name in policy.quasi_identifiers}
        hint = "drop the constraint, or append to a table without it"
        for limit in () if policy.suppression else catalog.constraints_of(self.engine, table):
            if limit.is_key and (set(limit.columns) <= labels or self._repeats(limit.columns)):
                raise refused("target", f"{table} has {limit.text}, and the release has the same values twice", hint)

    def _repeats(self, columns: Sequence[str]) -> bool:
        """Whether two rows of the source have the same values in columns that are published as they are."""
        if not set(columns) <= {name.lower() for name in (*self.policy.sensitive, *self.policy.keep)}:
            return False
        with self.engine.scope():
            known = [Where(name, None, "<>") for name in columns]
            groups = self.engine.count_groups("keys", self.sources[0], *columns, where=known)
            return bool(self.engine.count(groups, Where("rows", 1, ">")))

    def _check_other(self, table: Relation, home: str) -> None:
        """Raise PolicyError unless the table may be one of the database `home`."""
        target, known = self.policy.target, self.policy.databases
        if target.database is not None and target.database not in known:
            raise refused("target.database", f"no database {target.database!r}", nearest(target.database, known))
        if target.database is not None and len(catalog.named_table(target.begins, "target.table").parts) > 2:
            raise refused("target.table", f"{target.table} names a database, `database:` does", "leave it out")
        if catalog.catalog_of(self.engine, table) != home:
            what = f"{table} is in another database than {home}, and one transaction writes one"
            raise refused("target.table", what, "name one database for all tables")
        if self.engine.is_joined:
            raise refused("target.database", "another database joins no open transaction", "commit first")
        refuse_catalog_schema(self.engine, table, "target")
        if self._is_there(table, "set if_exists: replace"):
            self._refuse_read(table)
            if postgres.is_in_postgres(self.engine, table):
                self._foresee(postgres.told_of_loss(self.engine, table, MADE_ANEW, target.lose))

    def _is_there(self, table: Relation, hint: str) -> bool:
        """True if a table is there; raises PolicyError for one that stays, a view, or types that it cannot have."""
        if self.types is not None and postgres.is_in_postgres(self.engine, table):
            refuse(
                Problem(
                    "target", f"{name} is {without_members(kind)}, which is not written there", "make it text in a view"
                )
                for name, kind in self.types.items()
                if postgres.type_of(kind) is None
            )
        if not catalog.table_exists(self.engine, table):
            return False
        if self.if_exists == "fail":
            raise refused("target", f"{table} exists", f"{hint}, or name another table")
        if postgres.is_view(self.engine, table):
            raise refused("target", f"{table} is a view", "name another table")
        return True

    def _check_data_file(self, destination: DataFile | Folder) -> None:
        types, sensitive = self.types or {}, self.policy.sensitive
        if set("*?[") & set(str(destination.path)):
            raise refused("target.file", "has one of * ? [ in its path, which would be read back as a pattern")
        wide = [name for name, kind in types.items() if kind in _TOO_WIDE]
        form = self.policy.target.format
        if wide and form == "parquet":
            raise refused("target.file", f"Parquet has no integers as wide as {', '.join(wide)}", "write CSV or DuckDB")
        lists = [name for name, kind in types.items() if kind.endswith("]") and name in sensitive]
        if form == "csv" and any(sensitive[name].set for name in lists):
            what = f"a CSV file has no lists, and the members of {', '.join(lists)} are counted"
            raise refused("target.file", what, "name a .parquet file, or join the members to a text in a view")


# -- tables --------------------------------------------------------------------------------------------


def refuse_lost_digits(engine: Engine, policy: Policy, source: Table) -> None:
    """Raise PolicyError for published columns of PostgreSQL's whose numbers have more digits than would be read."""
    if not postgres.is_in_postgres(engine, source) or not isinstance(source, Relation):
        return
    known = postgres.own_types(engine, source)
    shown = [name for name in (*policy.sensitive, *policy.keep) if name.lower() in known]
    refuse(
        Problem(
            name,
            f"is numeric without a precision, and {count_phrase(count, 'value has', 'values have')} more digits than"
            " the floating-point numbers that are read",
            "give it a precision of up to 38 digits in a view: numeric(38, 10)",
        )
        for name, count in postgres.values_beyond_floats(engine, source, shown).items()
        if count
    )


def refuse_hidden_rows(engine: Engine, tables: Iterable[Table]) -> None:
    """Raise PolicyError for tables of PostgreSQL's of which row level security hides rows from the user."""
    for table in tables:
        if (
            isinstance(table, Relation)
            and postgres.is_in_postgres(engine, table)
            and postgres.hides_rows(engine, table)
        ):
            what = f"row level security of {table} hides rows from this user"
            hint = "have its owner run this (without FORCE), or a role that sees all rows (ALTER ROLE … BYPASSRLS)"
            raise refused("database", what, hint)


def refuse_catalog_schema(engine: Engine, table: Relation, key: str) -> None:
    """Raise PolicyError for a table, or prefix, in the schema of the catalog, or under a name that is the catalog's.

    Also for one in a schema where there are none, and in a database in which nothing is written.
    """
    database, schema, _ = catalog.located(engine, table)
    kind = engine.snapshot.traits(database)
    if not kind.takes_back:
        raise refused(
            key, f"{kind.name} is read only, as it commits every table by itself", "give a target with `file:`"
        )
    if not kind.has_schemas and schema.lower() != kind.schema:
        raise refused(key, f"{kind.name} has no schemas, and {table} names one", f"name it {table.name}")
    if not kind.has_schemas and table.name.lower().startswith("sqlite_"):
        raise refused(key, f"{kind.name} keeps names like {table.name} to itself", "name another table")
    if catalog.is_ours(engine, table):
        raise refused(key, f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema, or table")


# -- files ---------------------------------------------------------------------------------------------


def check_file(destination: InFile, sources: Sequence[str] = ()) -> None:
    """Raise PolicyError if a file there cannot be written beside and moved into place."""
    engine, path, name = destination.engine, destination.path, destination.name
    if engine.is_joined:
        raise refused("target.file", "a file joins no open transaction", "commit first, or publish to a table")
    if not path.parent.is_dir():
        raise refused("target.file", f"no folder for {name}")
    if any(lineage.same_file(path, other) for other in [*engine.snapshot.open_files, *sources]):
        raise refused("target.file", f"{name} is the source, or is open here", "name another file")
    if path.exists() and not (path.is_dir() if isinstance(destination, Folder) else path.is_file()):
        raise refused("target.file", f"{name} is not a {destination.kind}")


def refuse_log(destination: DatabaseFile) -> None:
    """Raise PolicyError if a database file has a log beside it: who moves the file would leave changes behind."""
    if Path(f"{destination.path}.wal").exists():
        raise refused("target.file", f"{destination.name} has a write-ahead log beside it", "open and close it once")


def refuse_database_name(table: Relation, key: str) -> None:
    """Raise PolicyError for the table of a file, or prefix, that names a database."""
    if len(table.parts) > 2:
        raise refused(key, f"{table} names a database, the file is one", "leave it out")


def _check_database_file(destination: DatabaseFile) -> None:
    for table in destination.tables.values():
        refuse_database_name(table, "target.table")
    refuse_log(destination)
    if not destination.path.exists():
        return
    with destination.reading(destination.path) as tables:
        own = [[part.lower() for part in table.parts[1:]] for table in tables.values()]
        inside = catalog.relations_in(destination.engine, next(iter(tables.values())).parts[0])
    if any([part.lower() for part in other.parts] not in own for other in inside):
        what = f"{destination.name} holds other tables, which replace would drop"
        raise refused("target.file", what, "name a new file")


# -- what is read --------------------------------------------------------------------------------------


def refuse_read_target(engine: Engine, policy: Policy, folder: Path, source: Table) -> None:
    """Raise PolicyError if the policy's target is there and is read: by its source, as a taxonomy, as the policy.

    Whatever leads to it: views, macros, patterns, links, attached databases, other spellings. `folder` is where
    relative files lie.
    """
    target = policy.target
    if target.file is not None:
        _refuse_read_file(engine, policy, folder, source)
    elif target.table is not None and target.database is None:
        refuse_read_tables(engine, source, [catalog.named_table(target.table, "target.table")])


def refuse_read_tables(engine: Engine, source: Table, tables: Iterable[Table]) -> None:
    """Raise PolicyError if one of the tables is there and is read by the source."""
    named = [table for table in tables if isinstance(table, Relation)]
    there = [table for table in named if catalog.table_exists(engine, table)]
    if isinstance(source, FileRelation) or not there:
        return
    for table in there:
        if lineage.reads_table(engine, source, table):
            raise refused("target", f"{table} is read by the source", "name another table")


def _refuse_read_file(engine: Engine, policy: Policy, folder: Path, source: Table) -> None:
    name = policy.target.file or ""
    path = folder / name
    if isinstance(source, FileRelation) and lineage.lies_among(source.among, path):
        raise refused("target.file", f"{name} would lie among the files of the source", "name another folder")
    if not path.exists():
        return
    for what, other in _read_beside(policy, folder):
        if lineage.same_file(path, other):
            raise refused("target.file", f"{name} is {what}", "name another file")
    reads = lineage.reads_file(engine, source, path) if isinstance(source, Relation) else False
    if reads is None:
        what = f"{name} is there, and whether it is one of the files that the source reads cannot be determined"
        raise refused("target.file", what, "name a new file")
    if reads:
        raise refused("target.file", f"{name} is read by the source", "name another file")


def _read_beside(policy: Policy, folder: Path) -> Iterator[tuple[str, Path]]:
    if policy.path is not None:
        yield "the policy itself", policy.path
    taxonomies = {name: part.taxonomy for name, part in policy.quasi_identifiers.items()}
    taxonomies |= {name: part.taxonomy for name, part in policy.sensitive.items()}
    for column, taxonomy in taxonomies.items():
        if taxonomy is not None and taxonomy.file is not None:
            yield f"the taxonomy of {column}", folder / taxonomy.file
