{# Makes tables by `statements`, and logs what the tests find of every case: its violating classes, or the error. #}
{% macro judge(statements, cases) %}
    {% for statement in statements %}
        {% do run_query(statement) %}
    {% endfor %}
    {% for case in cases %}
        {% set table = api.Relation.create(database=target.database, schema=target.schema, identifier=case.table) %}
        {% set sql = ldiv.test_requirements(
            "meets_policy", table, case.require, case.qi, case.sensitive, case.class_column, none
        ) %}
        {% set found = [] %}
        {% for row in run_query(sql).rows %}
            {% set figures = [] %}
            {% for cell in [row[1], row[2], row[3]] %}
                {% do figures.append(none if cell is none else cell | float) %}
            {% endfor %}
            {% do found.append([row[0]] + figures) %}
        {% endfor %}
        {% do log("JUDGED " ~ tojson(found), info=True) %}
    {% endfor %}
{% endmacro %}
