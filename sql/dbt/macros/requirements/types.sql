{# What is written otherwise from database to database. #}

{# The expression as a whole number of up to 38 digits. #}
{% macro whole(expression) %}
    {{ return(adapter.dispatch("whole", "ldiv")(expression)) }}
{% endmacro %}

{% macro default__whole(expression) %}
    {% do return("cast(" ~ expression ~ " as decimal(38, 0))") %}
{% endmacro %}

{% macro duckdb__whole(expression) %}
    {% do return("cast(" ~ expression ~ " as hugeint)") %}
{% endmacro %}

{% macro bigquery__whole(expression) %}
    {% do return("cast(" ~ expression ~ " as bignumeric)") %}
{% endmacro %}

{% macro sqlite__whole(expression) %}
    {% do return("cast(" ~ expression ~ " as integer)") %}
{% endmacro %}


{# The expression as a floating-point number. #}
{% macro real(expression) %}
    {{ return(adapter.dispatch("real", "ldiv")(expression)) }}
{% endmacro %}

{% macro default__real(expression) %}
    {% do return("cast(" ~ expression ~ " as double precision)") %}
{% endmacro %}

{% macro spark__real(expression) %}
    {% do return("cast(" ~ expression ~ " as double)") %}
{% endmacro %}

{% macro bigquery__real(expression) %}
    {% do return("cast(" ~ expression ~ " as float64)") %}
{% endmacro %}

{% macro sqlite__real(expression) %}
    {% do return("cast(" ~ expression ~ " as real)") %}
{% endmacro %}


{# The expression, a number or a text of one, as the decimal that is written for it, 18 digits after the point. #}
{% macro exact(expression) %}
    {{ return(adapter.dispatch("exact", "ldiv")(expression)) }}
{% endmacro %}

{% macro default__exact(expression) %}
    {% do return("cast(cast(" ~ expression ~ " as " ~ dbt.type_string() ~ ") as decimal(38, 18))") %}
{% endmacro %}

{% macro bigquery__exact(expression) %}
    {% do return("cast(cast(" ~ expression ~ " as string) as bignumeric)") %}
{% endmacro %}

{% macro sqlite__exact(expression) %}
    {% do return(ldiv.real(expression)) %}
{% endmacro %}


{# The expression, of a column, as it tells values apart: texts by their bytes, whatever their collation. Those of a class
   are apart if they are written otherwise, as zeros of either sign are. Elsewhere the database's own equality decides. #}
{% macro apart(expression, column, of_class=false) %}
    {{ return(adapter.dispatch("apart", "ldiv")(expression, column, of_class)) }}
{% endmacro %}

{% macro default__apart(expression, column, of_class) %}
    {% do return(expression) %}
{% endmacro %}

{% macro duckdb__apart(expression, column, of_class) %}
    {% set kind = column.dtype | lower %}
    {% set is_loose = of_class and modules.re.match("float|double|real", kind) is not none %}
    {% set text = "cast(" ~ expression ~ " as " ~ dbt.type_string() ~ ")" if is_loose else expression %}
    {% set is_text = modules.re.match("text|(var|bp)?char|character", kind) is not none and "[" not in kind %}
    {% do return(text ~ ' collate "C"' if is_loose or is_text else text) %}
{% endmacro %}

{% macro postgres__apart(expression, column, of_class) %}
    {% do return(ldiv.duckdb__apart(expression, column, of_class)) %}
{% endmacro %}

{% macro redshift__apart(expression, column, of_class) %}
    {% do return(expression) %}
{% endmacro %}


{# The text after `trim`, without what is not seen, with one blank for blanks of any kind in a row, none at its ends,
   and one dash for all; and `casefold`, in small letters, composed; nothing where that cannot be said exactly. #}
{% macro folded(expression, steps) %}
    {{ return(adapter.dispatch("folded", "ldiv")(expression, steps)) }}
{% endmacro %}

{% macro default__folded(expression, steps) %}
    {% do return("") %}
{% endmacro %}

{% macro duckdb__folded(expression, steps) %}
    {% set text = expression %}
    {% if "trim" in steps %}
        {% set text = "regexp_replace(" ~ text ~ ", '\\p{Cf}+', '', 'g')" %}
        {% set text = "regexp_replace(" ~ text ~ ", '[\\p{Pd}\\x{2212}]', '-', 'g')" %}
        {% set text = "trim(regexp_replace(" ~ text ~ ", '[\\s\\v\\x{85}\\pZ]+', ' ', 'g'))" %}
    {% endif %}
    {% do return("nfc_normalize(lower(" ~ text ~ "))" if "casefold" in steps else text) %}
{% endmacro %}


{# The list of a set's members, of a text of them with `separator` between; nothing where that cannot be said. #}
{% macro listed(expression, separator) %}
    {{ return(adapter.dispatch("listed", "ldiv")(expression, separator)) }}
{% endmacro %}

{% macro default__listed(expression, separator) %}
    {% do return("") %}
{% endmacro %}

{% macro duckdb__listed(expression, separator) %}
    {% if separator is boolean %}
        {% do return(expression) %}
    {% endif %}
    {% set between = dbt.string_literal(dbt.escape_single_quotes(separator | trim or separator)) %}
    {% do return("string_to_array(" ~ expression ~ ", " ~ between ~ ")") %}
{% endmacro %}


{# The seconds from 1970 to the expression, a date or a timestamp, to the microsecond. #}
{% macro seconds(expression) %}
    {{ return(adapter.dispatch("seconds", "ldiv")(expression)) }}
{% endmacro %}

{% macro default__seconds(expression) %}
    {% do return("cast(extract(epoch from " ~ expression ~ ") as decimal(38, 6))") %}
{% endmacro %}

{% macro duckdb__seconds(expression) %}
    {% do return("cast(epoch_us(cast(" ~ expression ~ " as timestamp)) as decimal(38, 6)) * 0.000001") %}
{% endmacro %}

{% macro bigquery__seconds(expression) %}
    {% do return("cast(unix_micros(cast(" ~ expression ~ " as timestamp)) as bignumeric) / 1000000") %}
{% endmacro %}

{% macro spark__seconds(expression) %}
    {% do return("cast(unix_micros(cast(" ~ expression ~ " as timestamp)) as decimal(32, 0)) * 0.000001") %}
{% endmacro %}


{# The natural logarithm of the expression. #}
{% macro logarithm(expression) %}
    {{ return(adapter.dispatch("logarithm", "ldiv")(expression)) }}
{% endmacro %}

{% macro default__logarithm(expression) %}
    {% do return("ln(" ~ expression ~ ")") %}
{% endmacro %}

{% macro sqlserver__logarithm(expression) %}
    {% do return("log(" ~ expression ~ ")") %}
{% endmacro %}


{# The lesser of two expressions that are not NULL. #}
{% macro lesser(one, other) %}
    {% do return("case when " ~ one ~ " < " ~ other ~ " then " ~ one ~ " else " ~ other ~ " end") %}
{% endmacro %}
