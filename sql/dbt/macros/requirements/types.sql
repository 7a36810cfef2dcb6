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
