{# Generic tests of a published table. Each returns a row for every class that violates: what is required, the rows of
   the class, what it reached, and the margin, which is negative; no label and no value. A class is the rows with equal
   quasi-identifiers, NULL being a value like any other. What is not given is read from the policy of the model. #}

{% test k_anonymous(model, k, quasi_identifiers=none, class_column=none) %}
    {{ ldiv.test_requirements("k_anonymous", model, [{"k": k}], quasi_identifiers, none, class_column, none) }}
{% endtest %}


{% test l_diverse(model, l, kind="distinct", c=none, sensitive=none, quasi_identifiers=none, class_column=none) %}
    {% set names = {
        "distinct": "distinct", "entropy": "entropy", "recursive": "recursive", "frequency": "frequency",
        "unique": "unique_distinct"
    } %}
    {% if execute and kind not in names %}
        {% do ldiv.refuse("l_diverse", "there is no kind " ~ kind ~ "; known: " ~ names.keys() | join(", ")) %}
    {% endif %}
    {% set parameters = {"l": l} if c is none else {"l": l, "c": c} %}
    {{ ldiv.test_requirements(
        "l_diverse", model, [{names.get(kind): parameters}], quasi_identifiers, sensitive, class_column, none
    ) }}
{% endtest %}


{% test t_close(model, t, distance="auto", sensitive=none, quasi_identifiers=none, class_column=none) %}
    {% set required = [{"t_closeness": {"t": t, "distance": distance}}] %}
    {{ ldiv.test_requirements("t_close", model, required, quasi_identifiers, sensitive, class_column, none) }}
{% endtest %}


{% test meets_policy(
    model, policy=none, require=none, quasi_identifiers=none, sensitive=none, class_column=none, individual=none,
    position=none, lacking=none
) %}
    {% set people = {"person": individual, "position": position, "lacking": lacking} if individual is not none else none %}
    {{ ldiv.test_requirements(
        "meets_policy", model, require, quasi_identifiers, sensitive, class_column, policy, people
    ) }}
{% endtest %}


{# The rows of all requirements on all sensitive columns; nothing can be told while dbt only reads the project. #}
{% macro test_requirements(
    test, model, required, quasi_identifiers, sensitive, class_column, policy, people=none
) %}
    {% if not execute %}
        {{ return("select 1 as requirement") }}
    {% endif %}
    {% set asked = ldiv.question(test, model, required, quasi_identifiers, sensitive, class_column, policy, people) %}
    {% set selects = [] %}
    {% for requirement in asked.required %}
        {% for name in ldiv.judged_on(test, requirement, asked.sensitive) %}
            {% set classes = asked.class_columns %}
            {% if requirement.get("others_known") %}
                {% set classes = classes + (asked.sensitive.keys() | reject("equalto", name) | list) %}
            {% endif %}
            {% do selects.append(ldiv.violations(test, asked, requirement, name, classes)) %}
        {% endfor %}
    {% endfor %}
    {{ return(selects | join("\nunion all\n")) }}
{% endmacro %}


{# The sensitive columns that a requirement is judged on; rows alone, once, are judged on none. #}
{% macro judged_on(test, requirement, sensitive) %}
    {% if "k" in requirement or "risk" in requirement %}
        {% do return([none]) %}
    {% endif %}
    {% set asked = requirement.get("sensitive", []) %}
    {% set asked = [asked] if asked is string else asked %}
    {% set lowered = sensitive.keys() | map("lower") | list %}
    {% for name in asked if name | lower not in lowered %}
        {% do ldiv.refuse(test, name ~ " is not sensitive") %}
    {% endfor %}
    {% set wanted = asked | map("lower") | list %}
    {% set found = [] %}
    {% for name in sensitive if not wanted or name | lower in wanted %}
        {% do found.append(name) %}
    {% endfor %}
    {% if not found %}
        {% do ldiv.refuse(test, "sensitive is missing: only k and risk are about rows alone") %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{% macro refuse(test, what) %}
    {% do exceptions.raise_compiler_error(test ~ ": " ~ what) %}
{% endmacro %}
