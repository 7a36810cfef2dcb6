"""What tells databases apart, a row a dialect: its drivers, how it lists and replaces tables, what it takes back.

The same rows say on what our statements were executed, and what ends the history of a table: runs and pages repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ldiv_db.database.errors import DatabaseError, refused

#: What keeps readers of a table from rows: a policy has to say that a release may be without it.
GUARDS = ("row policies",)


@dataclass(frozen=True)
class TraitsThere:
    """The words of a dialect; those of most are the defaults.

    `{here}` is a schema's name as a value, `{within}` the name before a point.
    """

    #: What it is called.
    name: str
    #: What our statements were executed on; nothing where that never was the service itself, but `tried` alone.
    executed: str = ""
    tried: str = "parsed and resolved, "
    #: The SELECT of its version; nothing where it tells none.
    version: str = "SELECT version()"
    #: What ends the history of a `{table}`, where whoever reads it finds the release that was replaced.
    history: str = ""
    #: The modules that its connections come from, and what drivers of ADBC call its vendor.
    modules: tuple[str, ...] = ()
    vendor: str = ""
    #: Whether a table that was made can be taken back, so that a release is one transaction.
    takes_back: bool = False
    #: Whether a table is replaced by the rows of a SELECT in one statement.
    replaces: bool = False
    #: What gives a `{table}` the `{rows}` of a SELECT, which has its `{columns}`, in place of its own; the table stays,
    #: with all that it has. One statement, or those of a transaction; nothing where others would see half of it.
    overwrite: tuple[str, ...] = ()
    #: The SELECT of what else a `{table}` has, which is lost where it is made anew; `{name}` is its name in `{here}`.
    beside: str = "SELECT 'any grants, comments and partitions'"
    #: The SELECTs of what has to go before a `{table}` can, and of the statements that withdraw what the privileges of
    #: new tables would give to who had no such right on it; nothing where neither is known.
    dependent: str = ""
    withdrawn: str = ""
    #: How a driver that does not say marks a value that is bound by its place.
    mark: str = "?"
    #: How long a statement may be that has rows as literals; 0 where values are bound.
    written_down: int = 0
    #: What begins a transaction where a driver does not; what is set for it alone.
    begin: str = "BEGIN"
    settings: tuple[str, ...] = ()
    #: The SELECT of what is set besides, as the session lacks it; `{run}` says which run it is.
    lacking: str = ""
    #: What keeps other writers off a table; whether one of two transactions that publish to it waits or fails.
    lock: str = ""
    holds_off: bool = False
    #: What is set for a transaction once the table is locked, by a SELECT, which begins the moment that it reads.
    locked: str = ""
    #: The SELECTs of the names of tables in a schema, of the schema that names are looked up in, and of all schemas.
    tables: str = "SELECT table_name FROM {catalog}information_schema.tables WHERE table_schema = {here}"
    here: str = "CURRENT_SCHEMA()"
    schemata: str = "SELECT schema_name FROM information_schema.schemata"
    #: What an error says of a schema that is not there, where its tables are listed within it, and schemas nowhere.
    no_schema: str = ""
    #: What makes a schema; nothing where there are none. What drops one that is empty. What goes back to one, where
    #: names are looked up in the last.
    schema: str = "CREATE SCHEMA IF NOT EXISTS {}"
    no_more_schema: str = "DROP SCHEMA IF EXISTS {}"
    go_back: str = ""
    #: What stands between a new table's name, or its columns, and AS.
    storage: str = ""
    #: What changes rows.
    update: str = "UPDATE {table} SET {values} WHERE {where}"
    #: What has a table counted, to plan with it.
    analyze: str = ""
    #: How a row is repeated as a count says: by a function that gives `rows`, or a `list`, of rows in order.
    repeats: str = ""
    #: A number that rows make by their values in the columns `{0}`, whatever their order; nothing where none is known.
    hashed: str = ""
    #: What a table is beside its rows, and when it is asked; nothing where a change of rows would not be found by both.
    stamp: str = ""
    #: The SELECT that says of a table whose stamp is `{asked}` whether it has the same rows, which were `{rows}`.
    unchanged: str = ""
    #: The SELECT of the columns of a table in which equal values are written alike.
    exact: str = ""
    #: The types whose values a driver is handed as text, beside times.
    texts: tuple[str, ...] = ()
    #: Its type for whole numbers beyond 64 bits, and for others of ours that it has by another name.
    huge: str = "DECIMAL(38, 0)"
    types: Mapping[str, str] = field(default_factory=dict)
    #: Whether it joins two tables by IS NOT DISTINCT FROM pair by pair, or not at all, where lists or texts hash.
    hashes: bool = False
    #: The text that ends a whole statement.
    ending: str = ""
    #: The collation that compares text by bytes; nothing where statements compare it as its column says.
    by_bytes: str = ""

    @property
    def caution(self) -> str:
        """What a run says where we never executed its statements on the service itself."""
        return "" if self.executed else f"{self.name}: {self.tried}never executed by us"


def told_of_history(table: str, ends: str) -> str:
    """A note on the release that a new one replaces in a table whose history a statement `ends`; '' where it is ''."""
    said = f"the history of {table} shows whoever may read it the replaced release beside the new one"
    return f"{said}; this ends it: {ends}" if ends else ""


def told_of_loss(
    lost: Sequence[str], table: str, why: str, dependent: Sequence[str] = (), lose: Sequence[str] = GUARDS
) -> str:
    """A note on what a table loses beside its rows where it is made anew; '' if that is nothing.

    Raises DatabaseError if others depend on it, PolicyError if it guards rows and the policy does not `lose` that.
    """
    if dependent:
        what = "other objects of the database depend on the table: drop these first"
        raise DatabaseError(f"{table} cannot be made anew, as {why}: {what}: {', '.join(dependent)}")
    for guard in GUARDS:
        if f"the {guard}" in lost and guard not in lose:
            what = f"the {guard} of {table} would be lost, as {why}: readers would see every row that they may select"
            hint = f"name another table; or drop them, or have `lose: [{guard}]` in the target, and make them again"
            raise refused("target", what, hint)
    named = " and ".join(filter(None, [", ".join(lost[:-1]), *lost[-1:]]))
    return f"{named} of {table} are not kept, as {why}" if lost else ""


#: Truth, whole numbers, texts, days, times and UUIDs; enums, and decimals with a scale. A collation may ignore case.
_EXACT = (
    "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation WHERE a.attrelid = {table}::regclass"
    " AND COALESCE(c.collisdeterministic, true) AND (t.typtype = 'e' OR (a.atttypid = 1700 AND a.atttypmod > 0)"
    " OR a.atttypid IN (16, 20, 21, 23, 25, 1042, 1043, 1082, 1083, 1114, 1184, 2950))"
)
#: The same; the types of no query or view tell a collation, and so those of no table where some has one.
_EXACT_IN_DUCKDB = (
    "SELECT name FROM pragma_table_info({table}) WHERE current_setting('default_collation') = '' AND NOT EXISTS"
    " (SELECT 1 FROM duckdb_tables() WHERE contains(upper(sql), ' COLLATE ')) AND regexp_full_match(type,"
    " 'BOOLEAN|VARCHAR|DATE|UUID|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|(DECIMAL|ENUM|TIMESTAMP).*')"
)
#: A table by its number, columns and defaults, where it has rows of its own alone, each with the transaction that wrote
#: it; and the oldest transaction that may not have ended. Rows that are as many, of older ones alone, are the same.
_STAMP = (
    "SELECT c.oid || (SELECT string_agg(CAST(a AS text), ' ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a"
    " WHERE a.attrelid = c.oid) || COALESCE((SELECT string_agg(CAST(d AS text), ' ' ORDER BY d.adnum)"
    " FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid), ''),"
    " CAST(txid_snapshot_xmin(txid_current_snapshot()) % 4294967296 AS text)"
    " FROM pg_catalog.pg_class c WHERE c.oid = {table}::regclass AND c.relam = 2 AND NOT c.relhassubclass"
)
#: What is lost with a table of PostgreSQL's. A row policy that lets nobody see a row is one that is not there.
_BESIDE = (
    "SELECT x.what FROM pg_catalog.pg_class c, LATERAL (VALUES"
    " ('the grants', c.relacl IS NOT NULL OR EXISTS (SELECT FROM pg_catalog.pg_attribute a"
    " WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL)),"
    " ('the comments', EXISTS (SELECT FROM pg_catalog.pg_description d"
    " WHERE d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::regclass)),"
    " ('the row policies', c.relrowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid)),"
    " ('the indexes', EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid)),"
    " ('the constraints', EXISTS (SELECT FROM pg_catalog.pg_constraint o WHERE o.conrelid = c.oid)"
    " OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attnotnull)),"
    " ('the defaults', EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0"
    " AND NOT a.attisdropped AND (a.atthasdef OR a.attidentity <> ''))),"
    " ('the triggers', EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)),"
    " ('the rules', EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)),"
    " ('the publications', EXISTS (SELECT FROM pg_catalog.pg_publication_rel p WHERE p.prrelid = c.oid)),"
    " ('the replica identity', c.relreplident <> 'd'),"
    " ('the extended statistics', EXISTS (SELECT FROM pg_catalog.pg_statistic_ext e WHERE e.stxrelid = c.oid)),"
    " ('the storage parameters', c.reloptions IS NOT NULL OR c.relpersistence <> 'p' OR EXISTS (SELECT FROM"
    " pg_catalog.pg_class o WHERE o.oid = c.reltoastrelid AND o.reloptions IS NOT NULL) OR EXISTS (SELECT FROM"
    " pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid"
    " AND a.attnum > 0 AND (a.attoptions IS NOT NULL OR a.attstattarget >= 0 OR a.attstorage <> t.typstorage))),"
    " ('the tablespace', c.reltablespace <> 0),"
    " ('the security labels', EXISTS (SELECT FROM pg_catalog.pg_seclabel l"
    " WHERE l.objoid = c.oid AND l.classoid = 'pg_catalog.pg_class'::regclass)),"
    " ('the parents', EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid)),"
    " ('the owner', pg_catalog.pg_get_userbyid(c.relowner) <> current_user)"
    ") AS x (what, is_there) WHERE c.oid = {table}::regclass AND x.is_there"
)
#: What reads a table of PostgreSQL's, inherits from it or refers to it, but for what goes with it.
_DEPENDENT = (
    "SELECT DISTINCT CASE WHEN v.relkind IN ('v', 'm') THEN"
    " pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, v.oid, 0)"
    " ELSE pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) END AS what FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_depend d ON d.deptype = 'n' AND (d.refclassid = 'pg_catalog.pg_class'::regclass"
    " AND d.refobjid = c.oid OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (SELECT t.oid"
    " FROM pg_catalog.pg_type t WHERE t.typrelid = c.oid UNION SELECT t.typarray FROM pg_catalog.pg_type t"
    " WHERE t.typrelid = c.oid)) LEFT JOIN pg_catalog.pg_rewrite w ON d.classid = 'pg_catalog.pg_rewrite'::regclass"
    " AND w.oid = d.objid LEFT JOIN pg_catalog.pg_class v ON v.oid = w.ev_class WHERE c.oid = {table}::regclass"
    " AND COALESCE(v.oid <> c.oid, true) AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend o WHERE o.classid = d.classid"
    " AND o.objid = d.objid AND o.deptype IN ('a', 'i') AND o.refclassid = 'pg_catalog.pg_class'::regclass"
    " AND o.refobjid = c.oid) ORDER BY what"
)
#: A reader who lost a right on one table has it again on the next of that name, if all new tables give it.
_WITHDRAWN = (
    "SELECT format('REVOKE %s ON %s FROM %s', p.privilege_type, {table}, CASE p.grantee WHEN 0 THEN 'PUBLIC'"
    " ELSE quote_ident(pg_catalog.pg_get_userbyid(p.grantee)) END) AS sql FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_default_acl a ON a.defaclobjtype = 'r' AND a.defaclnamespace IN (0, c.relnamespace),"
    " LATERAL pg_catalog.aclexplode(a.defaclacl) p WHERE c.oid = {table}::regclass AND p.grantee <> a.defaclrole"
    " AND pg_catalog.pg_get_userbyid(a.defaclrole) = current_user AND NOT EXISTS (SELECT"
    " FROM pg_catalog.aclexplode(c.relacl) o WHERE o.grantee = p.grantee AND o.privilege_type = p.privilege_type)"
)
_UNCHANGED = "SELECT COUNT(*) = {rows} AND COALESCE(MIN(age(xmin)) > age('{asked}'::xid), true) FROM {name}"
_EMPTIED = ("DELETE FROM {table}", "INSERT INTO {table} {rows}")
_OVERWRITTEN = ("INSERT INTO {table} REPLACE WHERE TRUE {rows}",)
_DELTA = "VACUUM {table} RETAIN 0 HOURS"
_SYSTEM = "(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = {here})"
TRAITS = {
    "bigquery": TraitsThere(
        name="BigQuery",
        tried="executed on an emulator alone (bqemulator 1.4), ",
        version="",
        history="ALTER SCHEMA … SET OPTIONS (max_time_travel_hours = 48), two days before",
        modules=("google", "bqemulator"),
        vendor="bigquery",
        huge="BIGNUMERIC",
        replaces=True,
        overwrite=(
            "MERGE {table} USING ({rows}) ON FALSE WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({columns})"
            " WHEN NOT MATCHED BY SOURCE THEN DELETE",
        ),
        beside="SELECT 'any grants, descriptions, labels, policy tags, row policies, partitions and clusters'",
        tables="SELECT table_name FROM {within}INFORMATION_SCHEMA.TABLES",
        here="NULL",
        no_schema="Not found: Dataset",
    ),
    # It has no transactions. Its driver writes 15 digits of a floating number. Its plain times begin in 1970, and have
    # no fractions. Without the setting an outer join fills what is missing with 0 and ''.
    "clickhouse": TraitsThere(
        name="ClickHouse",
        executed="chDB 4.4",
        modules=("chdb", "clickhouse_connect", "clickhouse_driver"),
        types={
            "DATE": "Nullable(Date32)",
            "TIMESTAMP": "Nullable(DateTime64(6, 'UTC'))",
            "TIMESTAMPTZ": "Nullable(DateTime64(6, 'UTC'))",
            "INT128": "Nullable(Int128)",
        },
        ending="SETTINGS join_use_nulls = 1",
        replaces=True,
        beside="SELECT 'the settings of the engine' FROM system.tables WHERE database = {here}"
        " AND name = {name} AND engine_full <> 'MergeTree ORDER BY tuple() SETTINGS index_granularity = 8192'"
        " UNION ALL SELECT 'the comments' FROM (SELECT comment FROM system.tables WHERE database = {here}"
        " AND name = {name} UNION ALL SELECT comment FROM system.columns WHERE database = {here} AND table = {name})"
        " HAVING max(comment) <> ''",
        mark="%s",
        here="currentDatabase()",
        schema="CREATE DATABASE IF NOT EXISTS {}",
        no_more_schema="DROP DATABASE IF EXISTS {}",
        storage=" ENGINE = MergeTree ORDER BY tuple()",
        update="ALTER TABLE {table} UPDATE {values} WHERE {where} SETTINGS mutations_sync = 1",
        hashed="sum(cityHash64(toString(tuple({0}))))",
        texts=("FLOAT", "DOUBLE"),
    ),
    # It binds at most 255 values a statement. REPLACE keeps the grants, filters and masks of a table; INSERT OVERWRITE
    # would leave old rows in partitions that get no new ones, where a cluster is set to.
    "databricks": TraitsThere(
        name="Databricks",
        history=_DELTA,
        modules=("databricks",),
        replaces=True,
        beside="SELECT 'any comments, tags, table properties, partitions and clusters'",
        written_down=1_000_000,
    ),
    "duckdb": TraitsThere(
        by_bytes="C",
        name="DuckDB",
        executed="DuckDB 2.0",
        vendor="duckdb",
        huge="HUGEINT",
        takes_back=True,
        overwrite=_EMPTIED,
        beside="SELECT 'any comments and indexes'",
        holds_off=True,
        repeats="list",
        hashed="SUM(HASH({0}))",
        exact=_EXACT_IN_DUCKDB,
    ),
    # Its information schema lists what the user has rights on alone. It judges a join by many columns by the best of
    # them, so that it would sort all rows as texts; it would compile statements that run once; and counts of many
    # combinations would not fit into the 4 MB that it has by default. Rows that a policy on a table hides from the user
    # would be left out of a release, or stay beside the next one: with `row_security` off the server refuses instead.
    "postgres": TraitsThere(
        by_bytes="C",
        name="PostgreSQL",
        executed="PostgreSQL 15",
        modules=("pg8000", "psycopg", "psycopg2"),
        vendor="postgresql",
        huge="NUMERIC",
        hashes=True,
        takes_back=True,
        overwrite=_EMPTIED,
        beside=_BESIDE,
        dependent=_DEPENDENT,
        withdrawn=_WITHDRAWN,
        holds_off=True,
        mark="%s",
        settings=(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SET LOCAL row_security = off",
            "SET LOCAL enable_mergejoin = off",
            "SET LOCAL jit = off",
        ),
        lacking="SELECT 'SET LOCAL lock_timeout = ''10min''' WHERE current_setting('lock_timeout') = '0' UNION ALL"
        " SELECT 'SET LOCAL application_name = ''{run}''' WHERE current_setting('application_name') = ''",
        lock="LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE",
        locked="SELECT set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')), 2^27)::bigint / 1024"
        " || 'kB', true)",
        tables="SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f')"
        f" AND relnamespace = {_SYSTEM}",
        here="current_schema()",
        schemata="SELECT nspname FROM pg_catalog.pg_namespace",
        analyze="ANALYZE {}",
        repeats="rows",
        hashed="SUM(CAST(HASHTEXTEXTENDED(CAST(ROW({0}) AS TEXT), 0) AS NUMERIC))",
        stamp=_STAMP,
        unchanged=_UNCHANGED,
        exact=_EXACT,
    ),
    # Readers of a table that is locked wait as well.
    "redshift": TraitsThere(
        name="Redshift",
        modules=("redshift_connector",),
        hashes=True,
        takes_back=True,
        overwrite=_EMPTIED,
        beside="SELECT 'any grants, comments, policies and keys'",
        mark="%s",
        lock="LOCK TABLE {}",
    ),
    "snowflake": TraitsThere(
        name="Snowflake",
        tried="executed on an emulator alone (fakesnow 0.12), ",
        version="SELECT CURRENT_VERSION()",
        history="ALTER SCHEMA … SET DATA_RETENTION_TIME_IN_DAYS = 0, before the run",
        modules=("fakesnow", "snowflake"),
        vendor="snowflake",
        replaces=True,
        overwrite=("INSERT OVERWRITE INTO {table} ({columns}) {rows}",),
        beside="SELECT 'any grants, comments, tags, masks, row policies and clusters'",
        mark="%s",
        go_back="USE SCHEMA {}",
        hashed="SUM(HASH({0}))",
    ),
    # A hash of columns passes over NULLs, and the text of a row does not tell where one ends.
    "spark": TraitsThere(
        name="Spark",
        executed="Spark 4.3",
        repeats="list",
        hashed="SUM(CAST(XXHASH64({0}, CAST(STRUCT({0}) AS STRING)) AS DECIMAL(38, 0)))",
    ),
    # It has no wider whole numbers than 64 bits; it refuses a sum that overflows.
    "sqlite": TraitsThere(
        by_bytes="BINARY",
        name="SQLite",
        executed="SQLite 3.40",
        version="SELECT sqlite_version()",
        modules=("sqlite3",),
        vendor="sqlite",
        huge="NUMERIC",
        takes_back=True,
        overwrite=_EMPTIED,
        beside="SELECT DISTINCT CASE type WHEN 'index' THEN 'the indexes' ELSE 'the triggers' END FROM sqlite_master"
        " WHERE type IN ('index', 'trigger') AND lower(tbl_name) = lower({name}) AND sql IS NOT NULL",
        holds_off=True,
        begin="BEGIN IMMEDIATE",
        stamp="SELECT data_version || ' ' || schema_version || ' ' || total_changes()"
        " FROM pragma_data_version, pragma_schema_version",
        tables="SELECT name FROM sqlite_master",
        schema="",
        analyze="ANALYZE {}",
    ),
    # By default a statement has at most a million characters.
    "trino": TraitsThere(name="Trino", modules=("trino",), written_down=900_000),
}
#: The formats of tables in Spark that have a commit of their own, and with it a history.
FORMATS = {
    "delta": TraitsThere(
        name="Delta",
        tried="",
        history=_DELTA,
        overwrite=_OVERWRITTEN,
        beside="SELECT 'any comments, partitions, clusters and table properties'",
    ),
    "iceberg": TraitsThere(
        name="Iceberg",
        executed="Iceberg 1.10",
        overwrite=_OVERWRITTEN,
        beside="SELECT 'any partitions and comments on columns'",
        history="CALL CATALOG.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '…')",
    ),
}
#: All of them compare text as it is, so that `a` is not `A`.
DIALECTS = tuple(TRAITS)
