-- Table macros for DuckDB: is a published table l-diverse, how large are its classes, what did it lose?
-- `.read ldiv.sql` in DuckDB's shell, or `ldiv_db.register(con)` in Python, makes them for the session alone.
-- Written by `python -m tests.sql.table_macros` from the dbt package: do not change it here.

CREATE OR REPLACE TEMP MACRO ldiv_whole(value, name) AS
    CASE WHEN value >= 1 AND value = floor(value) AND value < 1000000000 THEN CAST(value AS BIGINT)
        ELSE error(name || ' takes a whole number from 1, not ' || coalesce(CAST(value AS VARCHAR), 'NULL')) END;

CREATE OR REPLACE TEMP MACRO ldiv_billionths(value, name, least, most, without_least) AS
    CASE WHEN value >= least AND (value > least OR NOT without_least) AND value <= most
            AND value = CAST(value AS DECIMAL(28, 9))
        THEN CAST(CAST(value AS DECIMAL(28, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS HUGEINT)
        ELSE error(name || ' takes a number ' || CASE WHEN without_least THEN 'above ' ELSE 'from ' END || least
            || ' to ' || most || ', with up to 9 digits after the point, not '
            || coalesce(CAST(value AS VARCHAR), 'NULL')) END;

-- A text alone would stand for all columns whose names have it.
CREATE OR REPLACE TEMP MACRO ldiv_listed(columns) AS
    CASE WHEN typeof(columns) <> 'VARCHAR[]' THEN error('columns are a list of names')
        WHEN contains(lower(CAST(columns AS VARCHAR)), 'ldiv_value') THEN error('rename the column ldiv_value')
        ELSE true END;

-- A value as bytes, so that no collation makes two values one; 0.0 and -0.0 are one.
CREATE OR REPLACE TEMP MACRO ldiv_written(value) AS
    encode(CASE
        WHEN regexp_matches(typeof(value), '\]$|^(STRUCT|MAP|UNION|INTERVAL|VARIANT)')
            THEN error('a column holds ' || typeof(value) || ': give a number or a text in a view')
        WHEN typeof(value) IN ('FLOAT', 'DOUBLE') AND CAST(value AS VARCHAR) IN ('-0.0', '-nan')
            THEN substr(CAST(value AS VARCHAR), 2)
        ELSE CAST(value AS VARCHAR) END);

-- A value that tells classes apart: whoever reads the table tells -0.0 from 0.0, which GROUP BY does not.
CREATE OR REPLACE TEMP MACRO ldiv_apart(value) AS
    CASE WHEN typeof(value) IN ('FLOAT', 'DOUBLE') AND CAST(value AS VARCHAR) IN ('-0.0', '-nan')
        THEN error('a column of classes holds ' || CAST(value AS VARCHAR) || ': write it without its sign in a view')
        ELSE ldiv_written(value) END;

-- The rows of each class, as they are published: the columns, and `rows`.
CREATE OR REPLACE TEMP MACRO ldiv_classes(published, columns) AS TABLE
    SELECT first(COLUMNS(columns)) AS '\0', count(*) AS rows
    FROM (
        SELECT list_value(*COLUMNS('^ldiv_value ')) AS ldiv_value, COLUMNS(columns)
        FROM (
            SELECT ldiv_apart(COLUMNS(columns)) AS 'ldiv_value \0', COLUMNS(columns)
            FROM query_table(published)
            WHERE ldiv_listed(columns)
        )
    )
    GROUP BY ldiv_value;

-- The verdict of `ldiv check`, in a row: `holds`, and how far the worst class is from what is required.
CREATE OR REPLACE TEMP MACRO ldiv_check(published, columns, sensitive, requirement, parameter, k := NULL, c := NULL) AS TABLE
    SELECT
        requirement AS requirement,
        count(*) AS classes,
        count(*) FILTER (WHERE good IS NOT TRUE) AS violating_classes,
        coalesce(CAST(sum(class_rows) FILTER (WHERE good IS NOT TRUE) AS BIGINT), 0) AS violating_rows,
        arg_min(reached, margin) AS worst,
        min(margin) AS margin,
        count(*) FILTER (WHERE good IS NOT TRUE) = 0 AS holds
    FROM (
        SELECT class_rows,
        CASE requirement
            WHEN 'k' THEN cast(class_rows as double precision)
            WHEN 'risk' THEN cast(1 / cast(class_rows as double precision) as double precision)
            WHEN 'threshold' THEN cast(cast(largest as double precision) * 1000000000 / (cast(class_rows as double precision) * ldiv_billionths(parameter, 'threshold', 0, 1, true)) as double precision)
            WHEN 'distinct' THEN cast(values_n as double precision)
            WHEN 'unique_distinct' THEN cast(case when largest = 1 then class_rows else 0 end as double precision)
            WHEN 'frequency' THEN cast(cast(class_rows as double precision) / cast(largest as double precision) as double precision)
            WHEN 'entropy' THEN cast(exp((ln(cast(class_rows as double precision)) - logs / cast(class_rows as double precision))) as double precision)
            WHEN 'recursive' THEN cast(cast(largest as double precision) / nullif(cast(tail as double precision), 0) as double precision)
            WHEN 'p_sensitive' THEN cast(values_n as double precision)
            WHEN 'alpha_k' THEN cast(cast(largest as double precision) / cast(class_rows as double precision) as double precision)
            WHEN 't_closeness' THEN cast(cast(moved as double precision) / cast(cast(total_rows as hugeint) * cast(class_rows as hugeint) * 1 as double precision) as double precision)
            ELSE error('no requirement ' || requirement || '; known: k, risk, threshold, distinct, unique_distinct, frequency, entropy, recursive, p_sensitive, alpha_k, t_closeness') END AS reached,
        CASE requirement
            WHEN 'k' THEN cast(class_rows - ldiv_whole(parameter, 'k') as double precision)
            WHEN 'risk' THEN cast(cast(ldiv_billionths(parameter, 'max', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 as double precision) / 1000000000 as double precision)
            WHEN 'threshold' THEN cast(cast(ldiv_billionths(parameter, 'threshold', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 * cast(largest as hugeint) as double precision) / 1000000000 as double precision)
            WHEN 'distinct' THEN cast(case when values_n - ldiv_whole(parameter, 'l') < class_rows - largest - (ldiv_whole(parameter, 'l') - 1) then values_n - ldiv_whole(parameter, 'l') else class_rows - largest - (ldiv_whole(parameter, 'l') - 1) end as double precision)
            WHEN 'unique_distinct' THEN cast(case when largest = 1 then class_rows - ldiv_whole(parameter, 'l') else 1 - largest end as double precision)
            WHEN 'frequency' THEN cast(cast(1000000000 * cast(class_rows as hugeint) - ldiv_billionths(parameter, 'l', 1, 1000000000, false) * cast(largest as hugeint) as double precision) / 1000000000 as double precision)
            WHEN 'entropy' THEN cast((ln(cast(class_rows as double precision)) - logs / cast(class_rows as double precision)) - ln(cast((ldiv_billionths(parameter, 'l', 1, 1000000000, false) / 1000000000) as double precision)) as double precision)
            WHEN 'recursive' THEN cast((cast(ldiv_billionths(c, 'c', 0, 1000000000, true) * cast(tail as hugeint) - 1000000000 * cast(largest as hugeint) as double precision) - 0.000000001 * 1000000000) / 1000000000 as double precision)
            WHEN 'p_sensitive' THEN cast(case when class_rows - ldiv_whole(k, 'k') < case when values_n - ldiv_whole(parameter, 'p') < class_rows - largest - (ldiv_whole(parameter, 'p') - 1) then values_n - ldiv_whole(parameter, 'p') else class_rows - largest - (ldiv_whole(parameter, 'p') - 1) end then class_rows - ldiv_whole(k, 'k') else case when values_n - ldiv_whole(parameter, 'p') < class_rows - largest - (ldiv_whole(parameter, 'p') - 1) then values_n - ldiv_whole(parameter, 'p') else class_rows - largest - (ldiv_whole(parameter, 'p') - 1) end end as double precision)
            WHEN 'alpha_k' THEN cast(case when cast(class_rows - ldiv_whole(k, 'k') as double precision) < cast(ldiv_billionths(parameter, 'alpha', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 * cast(largest as hugeint) as double precision) / 1000000000 then cast(class_rows - ldiv_whole(k, 'k') as double precision) else cast(ldiv_billionths(parameter, 'alpha', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 * cast(largest as hugeint) as double precision) / 1000000000 end as double precision)
            WHEN 't_closeness' THEN cast(cast(ldiv_billionths(parameter, 't', 0, 1, false) * cast(total_rows as hugeint) * cast(class_rows as hugeint) * 1 - 1000000000 * cast(moved as hugeint) as double precision) / (cast(cast(total_rows as hugeint) * cast(class_rows as hugeint) * 1 as double precision) * 1000000000) as double precision)
            ELSE error('no requirement ' || requirement || '; known: k, risk, threshold, distinct, unique_distinct, frequency, entropy, recursive, p_sensitive, alpha_k, t_closeness') END AS margin,
        CASE requirement
            WHEN 'k' THEN class_rows >= ldiv_whole(parameter, 'k')
            WHEN 'risk' THEN ldiv_billionths(parameter, 'max', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 >= 0
            WHEN 'threshold' THEN ldiv_billionths(parameter, 'threshold', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 * cast(largest as hugeint) >= 0
            WHEN 'distinct' THEN values_n >= ldiv_whole(parameter, 'l') and class_rows - largest >= (ldiv_whole(parameter, 'l') - 1)
            WHEN 'unique_distinct' THEN largest = 1 and class_rows >= ldiv_whole(parameter, 'l')
            WHEN 'frequency' THEN 1000000000 * cast(class_rows as hugeint) - ldiv_billionths(parameter, 'l', 1, 1000000000, false) * cast(largest as hugeint) >= 0
            WHEN 'entropy' THEN (ln(cast(class_rows as double precision)) - logs / cast(class_rows as double precision)) - ln(cast((ldiv_billionths(parameter, 'l', 1, 1000000000, false) / 1000000000) as double precision)) >= -0.000000001
            WHEN 'recursive' THEN ldiv_billionths(c, 'c', 0, 1000000000, true) * cast(tail as hugeint) - 1000000000 * cast(largest as hugeint) > 0
            WHEN 'p_sensitive' THEN class_rows >= ldiv_whole(k, 'k') and values_n >= ldiv_whole(parameter, 'p') and class_rows - largest >= (ldiv_whole(parameter, 'p') - 1)
            WHEN 'alpha_k' THEN ldiv_billionths(parameter, 'alpha', 0, 1, true) * cast(class_rows as hugeint) - 1000000000 * cast(largest as hugeint) >= 0 and class_rows >= ldiv_whole(k, 'k')
            WHEN 't_closeness' THEN ldiv_billionths(parameter, 't', 0, 1, false) * cast(total_rows as hugeint) * cast(class_rows as hugeint) * 1 - 1000000000 * cast(moved as hugeint) >= 0
            ELSE error('no requirement ' || requirement || '; known: k, risk, threshold, distinct, unique_distinct, frequency, entropy, recursive, p_sensitive, alpha_k, t_closeness') END AS good
        FROM (    with counts as (
        select
            c1,
            v,
            count(*) as n
        from (
            select
                class as c1,
                v as v
            from (
    SELECT list_value(*COLUMNS(* EXCLUDE (ldiv_value))) AS class, ldiv_value AS v
    FROM (
        SELECT
            ldiv_apart(COLUMNS(columns)),
            ldiv_written(COLUMNS(CASE WHEN sensitive IS NULL THEN columns[:1] ELSE [sensitive] END)) AS ldiv_value
        FROM query_table(published)
        WHERE ldiv_listed(columns)
    )
)
        ) as named
        group by c1, v
    ),
    histogram as (
        select
            v,
            n,
            class_no,
            dense_rank() over (order by case when v is null then 1 else 0 end, v) as place,
            row_number() over (partition by class_no order by n desc) as falling,
            sum(n) over (partition by class_no) as class_rows,
            n as weight,
            sum(n) over (partition by v) as value_rows,
            sum(n) over () as total_rows
        from (select *, dense_rank() over (order by c1) as class_no from counts) as numbered
    ),
    summary as (
        select
            class_no,
            max(class_rows) as class_rows,
            count(*) as values_n,
            sum(cast(weight as double precision) * ln(cast(weight as double precision))) as logs,
            CASE WHEN requirement = 'recursive' THEN sum(case when falling >= ldiv_whole(parameter, 'l') then n else 0 end) END as tail,
            max(total_rows) as total_rows,
            sum(case when cast(n as hugeint) * cast(total_rows as hugeint) > cast(value_rows as hugeint) * cast(class_rows as hugeint) then cast(n as hugeint) * cast(total_rows as hugeint) - cast(value_rows as hugeint) * cast(class_rows as hugeint) else 0 end) as moved,
            max(n) as largest
        from histogram
        group by class_no
    )
    select *
    from summary) AS summary
    ) AS measured;


-- How likely somebody who knows the columns finds the row of a person: at most, on average, and surely.
CREATE OR REPLACE TEMP MACRO ldiv_risk(published, columns) AS TABLE
    SELECT
        CAST(sum(class_rows) AS BIGINT) AS rows,
        count(*) AS classes,
        min(class_rows) AS smallest_class,
        max(risk) AS largest_risk,
        count(*) / sum(class_rows) AS mean_risk,
        count(*) FILTER (WHERE class_rows = 1) AS unique_rows
    FROM (
SELECT class_rows, 1 / cast(class_rows as double precision) AS risk FROM (
    SELECT class, count(*) AS class_rows
    FROM (
        SELECT list_value(*COLUMNS(*)) AS class
        FROM (SELECT ldiv_apart(COLUMNS(columns)) FROM query_table(published) WHERE ldiv_listed(columns))
    )
    GROUP BY class
) AS classes
    ) AS measured;


-- What anybody sees of the loss of a table: discernibility, the size of classes, cells published as `*`.
CREATE OR REPLACE TEMP MACRO ldiv_loss(published, columns) AS TABLE
    SELECT
        CAST(sum(class_rows) AS BIGINT) AS rows,
        count(*) AS classes,
        CAST(sum(CAST(class_rows AS HUGEINT) * class_rows) AS HUGEINT) AS dm,
        sum(class_rows) / count(*) AS mean_class_size,
        CAST(sum(class_rows * stars) AS BIGINT) AS stars
    FROM (
SELECT class_rows, len(list_filter(class, lambda cell: cell = encode('*'))) AS stars
FROM (
    SELECT class, count(*) AS class_rows
    FROM (
        SELECT list_value(*COLUMNS(*)) AS class
        FROM (SELECT ldiv_apart(COLUMNS(columns)) FROM query_table(published) WHERE ldiv_listed(columns))
    )
    GROUP BY class
) AS classes
    ) AS measured;
