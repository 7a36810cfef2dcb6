{# The classes that violate a requirement on a sensitive column, or on rows alone, as one SELECT. #}
{% macro violations(test, asked, requirement, sensitive, class_columns) %}
    {% set measure = ldiv.measure(test, asked, requirement, sensitive) %}
    {% set names = [] %}
    {% for name in class_columns %}
        {% do names.append(ldiv.value_of(test, asked, name)) %}
    {% endfor %}
    {% set value = ldiv.value_of(test, asked, sensitive) if sensitive is not none else none %}
    {% set about = "" if sensitive is none else " on " ~ sensitive %}
    {% set others = ", others_known=true" if requirement.get("others_known") else "" %}
    {% set members, people = ldiv.members_of(test, asked, sensitive), asked.people %}
    {% if requirement.get("each") and not people.position %}
        {% do ldiv.refuse(test, "each takes the columns `individual` and `position`") %}
    {% endif %}
    {% set people = dict(people, each=requirement.get("each")) if people else people %}
    {% set several = members or (people and sensitive is not none and not requirement.get("each")) %}
    {% if several and not measure.counts_once %}
        {% set of = "sets" if members else "people" %}
        {% do ldiv.refuse(test, "cannot judge " ~ measure.label ~ " of " ~ of ~ "; `ldiv check` can") %}
    {% elif people and others %}
        {% do ldiv.refuse(test, "cannot judge people by what others know; `ldiv check` can") %}
    {% elif several and people and people.lacking and "logs" in measure.beside %}
        {% do ldiv.refuse(test, "cannot judge " ~ measure.label ~ " of people who lack values; `ldiv check` can") %}
    {% endif %}
    {{ return(adapter.dispatch("violations", "ldiv")(
        asked.table, names, value, measure.label ~ others ~ about, measure, members, people
    )) }}
{% endmacro %}


{# What is not surely good violates: a number that is too large for the database, which some make NULL, is no pass. #}
{% macro default__violations(table, class_columns, value, label, measure, members=none, people=none) %}
select
    {{ dbt.string_literal(dbt.escape_single_quotes(label)) }} as requirement,
    class_rows,
    {{ ldiv.real(measure.reached) }} as reached,
    {{ ldiv.real(measure.margin) }} as margin
from (
    {{ ldiv.summary_of(table, class_columns, value, measure, members, people) }}
) as judged
where case when {{ measure.good }} then 0 else 1 end = 1
{% endmacro %}


{# A row for each class with what the measure is in terms of. Values without a sensitive column are one. Columns of the
   table may be called as those here: names are changed before any is grouped by, as databases differ in which of two
   meanings they group by. #}
{% macro summary_of(table, class_columns, value, measure, members=none, people=none) -%}
    {% set classes = [] %}
    {% for _ in class_columns %}
        {% do classes.append("c" ~ loop.index) %}
    {% endfor %}
    {% set columns = classes | join(", ") %}
    {% set classes = "c_all" if people and people.position else columns %}
    {% set classes = classes ~ ", turn" if people and people.each else classes %}
    with {{ ldiv.sets_and_members(table, class_columns, members, people) if members else "" -}}
    {{- adapter.dispatch("people_and_values", "ldiv")(table, class_columns, value, members, people, columns, classes)
        if people else (ldiv.members_of_rows(classes) if members else "") -}}
    counts as (
{% if members or people %}
        select
            {{ classes }},
            v,
            {{ "sum(case when lacks then 0 else 1 end)" if people and people.lacking else "count(*)" }} as n,
            sum(case when is_first then 1 else 0 end) as rows_n,
            sum(1 / {{ ldiv.real("members_n") }}) as weight
        from members
        group by {{ classes }}, v
{% else %}
        select
            {{ classes }},
            v,
            count(*) as n
        from (
            select
{% for column in class_columns %}
                {{ column }} as c{{ loop.index }},
{% endfor %}
                {{ value or "1" }} as v
            from {{ table }}
        ) as named
        group by {{ classes }}, v
{% endif %}
    ),

    histogram as (
        select
            v,
            n,
            class_no,
            dense_rank() over (order by case when v is null then 1 else 0 end, v) as place,
            row_number() over (partition by class_no order by n desc) as falling,
            sum({{ "rows_n" if members or people else "n" }}) over (partition by class_no) as class_rows,
            {{ "weight" if members or people else "n" }} as weight,
            sum(n) over (partition by v) as value_rows,
            sum(n) over () as total_rows
        from (select *, dense_rank() over (order by {{ classes }}) as class_no from counts) as numbered
    ),

    summary as (
        select
            class_no,
            max(class_rows) as class_rows,
            count(*) as values_n,
{% for name, expression in measure.beside.items() %}
            {{ expression }} as {{ name }},
{% endfor %}
            max(n) as largest
        from histogram
{% if people and people.lacking %}
        where n > 0
{% endif %}
        group by class_no
    ){{ "," if measure.is_ordered }}

    {{ ldiv.ordered_summary("summary") if measure.is_ordered }}
    select *
    from {{ "measured" if measure.is_ordered else "summary" }}
{%- endmacro %}


{# The rows with sets of values, whose they are if people are counted, and the members of each, each once. #}
{% macro sets_and_members(table, class_columns, members, people) %}
    {% set stripped = "regexp_replace(m, '^[\\s\\pZ\\[\\]{}\"'']+|[\\s\\pZ\\[\\]{}\"'']+$', '', 'g')" if members.is_text else "m" %}
    {% set trimmed = ldiv.folded(stripped, members.same) if members.same else stripped %}
sets as (
        select
{% for column in class_columns %}
            {{ column }} as c{{ loop.index }},
{% endfor %}
{% if people %}
            {{ people.person }} as who,
            {{ people.position or "null" }} as turn,
            {{ people.lacking or "false" }} as lacks,
{% endif %}
            row_number() over () as row_no,
            {{ members.listed }} as listed
        from {{ table }}
    ),

    found as (
        select distinct row_no, {{ trimmed }} as v
        from (select row_no, unnest(listed) as m from sets) as each_member
        where m is not null{{ " and " ~ trimmed ~ " <> ''" if members.is_text }}
    ),

    {% endmacro %}


{# One for each member of a row's set: how many these are, and one of them that is the first. #}
{% macro members_of_rows(classes) %}
members as (
        select
            {{ classes }},
            v,
            count(*) over (partition by s.row_no) as members_n,
            row_number() over (partition by s.row_no order by v) = 1 as is_first
        from sets as s
        left join found as f on f.row_no = s.row_no
    ),

    {% endmacro %}


{# The people of each class, one for each value that they have there: how many they have, and one of these that is the
   first. A row without a person is of somebody of its own. Where people's rows are in an order a class is those whose rows, one
   after the other, are equal: lists of them, which not every database groups by; if `each` position is a class, it has
   their rows there. A row that says so stands for somebody who lacks values, and counts in the size of the class. #}
{% macro duckdb__people_and_values(table, class_columns, value, members, people, columns, classes) %}
{% if members %}
named as (
        select {{ columns }}, v, who, turn, lacks, case when who is null then s.row_no end as nobody
        from sets as s
        left join found as f on f.row_no = s.row_no
    ),
{% else %}
named as (
        select
{% for column in class_columns %}
            {{ column }} as c{{ loop.index }},
{% endfor %}
            {{ value or "1" }} as v,
            {{ people.person }} as who,
            {{ people.position or "null" }} as turn,
            {{ people.lacking or "false" }} as lacks,
            case when {{ people.person }} is null then row_number() over () end as nobody
        from {{ table }}
    ),
{% endif %}

{% if people.position %}
    sequences as (
        select who, list(struct_pack({{ ldiv.packed(columns) }}) order by turn, {{ columns }}) as c_all
        from {{ "sets" if members else "named" }}
        where who is not null
        group by who
    ),

    placed as (
        select s.c_all, n.v, n.who, n.nobody, n.turn
        from named as n
        join sequences as s on s.who = n.who
        union all
        select [struct_pack({{ ldiv.packed(columns) }})] as c_all, v, who, nobody, turn
        from named
        where who is null
    ),
{% else %}
    placed as (
        select {{ columns }}, v, who, nobody{{ ", lacks" if people.lacking }}
        from named
    ),
{% endif %}

    members as (
        select
            {{ classes }},
            v,
            {{ "lacks," if people.lacking }}
            count(*) over (partition by {{ classes }}, who, nobody) as members_n,
            row_number() over (partition by {{ classes }}, who, nobody order by v) = 1 as is_first
        from (
            select distinct {{ classes }}, v, who, nobody{{ ", lacks" if people.lacking }}
            from placed
        ) as each_value
    ),

    {% endmacro %}


{% macro default__people_and_values(table, class_columns, value, members, people, columns, classes) %}
    {% do ldiv.refuse("meets_policy", "cannot count people in this database; `ldiv check` can") %}
{% endmacro %}


{# The columns of a struct, each by its name. #}
{% macro packed(columns) %}
    {% set named = [] %}
    {% for column in columns.split(", ") %}
        {% do named.append(column ~ " := " ~ column) %}
    {% endfor %}
    {% do return(named | join(", ")) %}
{% endmacro %}
