{# t-closeness: the earth mover's distance of class and table is at most t (Li et al. 2007). With the equal distance that
   is the sum of what the values of the class are in excess; with the ordered one the mean difference of the running
   sums, for which every class is held beside every value. `auto` is ordered for numbers and times. #}
{% macro measure_t_closeness(test, asked, given, sensitive) %}
    {% set t = ldiv.fraction_between(test, "t", given.t, 0, 1) %}
    {% set taxonomy = (asked.sensitive[sensitive] or {}).get("taxonomy") %}
    {% set distance = given.get("distance") or "auto" %}
    {% if distance == "hierarchical" or (distance == "auto" and taxonomy) %}
        {% do ldiv.refuse(test, "cannot judge t_closeness with the hierarchical distance; `ldiv check` can") %}
    {% elif distance == "auto" %}
        {% set is_ordered = ldiv.is_ordered(asked.columns[sensitive | lower]) %}
        {% set distance = "ordered" if is_ordered else "equal" %}
    {% elif distance not in ["equal", "ordered"] %}
        {% do ldiv.refuse(test, "distance is one of auto, equal, ordered and hierarchical, not " ~ distance) %}
    {% endif %}
    {% set steps = "steps" if distance == "ordered" else "1" %}
    {% set whole = ldiv.whole("total_rows") ~ " * " ~ ldiv.whole("class_rows") ~ " * " ~ steps %}
    {% set room = t.over ~ " * " ~ whole ~ " - " ~ t.under ~ " * " ~ ldiv.whole("moved") %}
    {% do return({
        "label": "t_closeness t=" ~ t.text ~ ", distance=" ~ distance, "is_ordered": distance == "ordered",
        "beside": {"total_rows": "max(total_rows)"} if distance == "ordered" else {
            "total_rows": "max(total_rows)", "moved": "sum(" ~ ldiv.excess() ~ ")"
        },
        "reached": ldiv.real("moved") ~ " / " ~ ldiv.real(whole),
        "margin": ldiv.real(room) ~ " / (" ~ ldiv.real(whole) ~ " * " ~ t.under ~ ")", "good": room ~ " >= 0"
    }) %}
{% endmacro %}


{# What a value of a class is in excess of its share of the table, times the rows of both. #}
{% macro excess() %}
    {% set class = ldiv.whole("n") ~ " * " ~ ldiv.whole("total_rows") %}
    {% set table = ldiv.whole("value_rows") ~ " * " ~ ldiv.whole("class_rows") %}
    {% do return("case when " ~ class ~ " > " ~ table ~ " then " ~ class ~ " - " ~ table ~ " else 0 end") %}
{% endmacro %}


{# Whether numbers or times order the column. #}
{% macro is_ordered(column) %}
    {% set kind = column.dtype | lower %}
    {% set numbers = "(u?(tiny|small|big|huge)?int(eger)?[0-9]*|float[0-9]*|real|double( precision)?|decimal|numeric|bignumeric|number)" %}
    {% do return(modules.re.match("(" ~ numbers ~ "([(].*)?$)|date|timestamp", kind) is not none) %}
{% endmacro %}


{# The summary of classes with `moved` and `steps` beside. #}
{% macro ordered_summary(summary) %}
    {{ return(adapter.dispatch("ordered_summary", "ldiv")(summary)) }}
{% endmacro %}


{% macro default__ordered_summary(summary) %}
places as (
    select
        place,
        max(value_rows) as value_rows,
        sum(max(value_rows)) over (order by place rows unbounded preceding) as upto
    from histogram
    group by place
),

steps as (
    select case when count(*) > 1 then count(*) - 1 else 1 end as steps
    from places
),

sums as (
    select
        s.class_no,
        s.class_rows,
        s.total_rows,
        p.place,
        p.upto,
        sum(coalesce(h.n, 0)) over (partition by s.class_no order by p.place rows unbounded preceding) as class_upto
    from {{ summary }} as s
    cross join places as p
    left join histogram as h on h.class_no = s.class_no and h.place = p.place
),

distances as (
    select
        class_no,
        sum(abs({{ ldiv.whole("class_upto") }} * {{ ldiv.whole("total_rows") }}
            - {{ ldiv.whole("upto") }} * {{ ldiv.whole("class_rows") }})) as moved
    from sums
    group by class_no
),

measured as (
    select s.*, d.moved, t.steps
    from {{ summary }} as s
    join distances as d on d.class_no = s.class_no
    cross join steps as t
)
{% endmacro %}
