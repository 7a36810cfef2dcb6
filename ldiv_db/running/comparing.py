"""What a release and the one before it of the same source tell together, where the policy lets each stand alone.

It is measured as `ldiv attack --also` does, on the people of the source as it is now, before the earlier release may be
replaced, and within a budget by which it takes less time than the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ldiv_db.attacking.covering import label_axes
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import missing_columns, named_table, table_exists
from ldiv_db.database.context import side_engine
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, refuse, refused
from ldiv_db.database.names import Identifier
from ldiv_db.policy.sources import open_source
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.in_file import within
from ldiv_db.publishing.result import Earlier
from ldiv_db.recoding.recode import PUBLISHED
from ldiv_db.requirements import promised_by
from ldiv_db.running.preparation import Preparation

#: So many pairs of people and classes are made for each row.
_PAIRS_A_ROW = 20


def compared_with_earlier(ready: Preparation, classes: NewClasses) -> Earlier:
    """The earlier release, with what it and the new classes tell together if the policy's word alone parts them."""
    earlier = ready.earlier
    if not earlier.is_parted or not ready.resolved.source.sensitive:
        return earlier
    ready.task.stage("comparing with the release before")
    try:
        with side_engine(ready.task.engine) as engine:
            return _compared(engine, ready, classes)
    except PolicyError as error:
        return replace(earlier, compared=error.problems[0].what)


def _compared(engine: Engine, ready: Preparation, classes: NewClasses) -> Earlier:
    """As `compared_with_earlier`; raises PolicyError for an earlier release that cannot be held against this one."""
    earlier, resolved = ready.earlier, ready.resolved
    released, required = resolved.released, resolved.required
    if resolved.source.place or resolved.source.weight:
        raise refused("source", "only counts of the rows are here")
    if sets := resolved.source.sets:
        raise refused("sensitive", f"releases are held together by single values, and {sets[0]} has sets")
    if not earlier.target:
        raise refused("target", "its release is of a series, or another took its place")
    with _opened(engine, earlier.target, resolved.folder) as there:
        if engine.count(there) != earlier.rows:
            what = f"{earlier.target} has not the {earlier.rows:,} rows of that release"
            raise refused("target", what)
        columns = [*released.identifying, *required.attributes, *released.class_ids]
        refuse(missing_columns(engine, there, [("target", name) for name in columns], f"release {earlier.target}"))
        before = there if isinstance(there, FileRelation) else engine.copy("before", there, *columns)
    with classes.published() as params:
        now = engine.materialise("release", PUBLISHED, **params)
    subjects = [
        Subject(table, released.identifying, released.class_ids, same=resolved.source.same) for table in (now, before)
    ]
    promises = {name: promised_by(wanted) for name, wanted in ready.task.wanted.items()}
    if classes.counts_people and resolved.source.together:
        promises = {name: promise.of_rows for name, promise in promises.items()}
    people, budget = resolved.source.relation, _PAIRS_A_ROW * ready.encoded.row_count
    promised = {name: (attribute, promises[name]) for name, attribute in required.attributes.items()}
    from ldiv_db.attacking.composition import compare_releases  # noqa: PLC0415 - what attacks know, for a later release

    found = compare_releases(engine, subjects, label_axes(resolved), promised, people, budget)
    return replace(earlier, compared=found)


@contextmanager
def _opened(engine: Engine, target: str, folder: Path) -> Iterator[Table]:
    """A context in which a release can be read where the ledger says that it is; raises PolicyError if it is gone."""
    place, _, table = target.rpartition(":")
    path = folder / place
    if not place or FileRelation.of(target):
        yield open_source(engine, target, folder, "target")
    elif not path.suffix:  # of a database that the policy attaches
        yield open_source(engine, f"{Identifier(place).sql()}.{table}", folder, "target")
    elif not path.is_file():
        raise refused("target", f"no file {place}")
    else:
        with engine.attached(path, read_only=True) as database:
            found = within(database, named_table(table, "target"))
            if not table_exists(engine, found):
                raise refused("target", f"no table {table} in {place}")
            yield found
