{# A table of a release of several: the model `anonymized` that it refers to has published it, with all others of the
   release, and this one gives it what is a model's own: docs, grants, hooks, tests and lineage. It writes no row. #}
{% materialization anonymized_table, default %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set release = ldiv.release_before(model) -%}
    {%- if modules.re.sub("(?m)^ *--.*$", "", compiled_code) | trim != "select * from " ~ this -%}
        {% do exceptions.raise_compiler_error(
            "anonymized_table: the model's SQL is {{ ldiv.table_of(ref('" ~ release.name ~ "')) }} alone: what selects from it is a"
            ~ " model that follows"
        ) %}
    {%- endif -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% if existing is none or not (flags.EMPTY or ldiv.is_published(this)) %}
        {% do exceptions.raise_compiler_error(
            "anonymized_table: " ~ this ~ " is not published; " ~ release.name ~ " publishes all tables of its release at once: "
            ~ "`dbt build --select " ~ release.name ~ "+`"
        ) %}
    {% endif %}
    {#- BEGIN happens here. -#}
    {% call statement("ldiv_count", fetch_result=True) -%}
        select count(*) as n from {{ this }}
    {%- endcall %}
    {% set rows = load_result("ldiv_count").table.columns[0][0] %}
    {% set told = {"rows": rows, "release_model": release.name, "empty": "what is there stays" if flags.EMPTY} %}
    {{ ldiv.finish([{"node": model, "relation": existing, "existing": existing}], told) }}
    {{ return({"relations": [existing]}) }}
{% endmaterialization %}


{# The SQL of the model that publishes several tables: what each is made of, by its name in the policy. It has a row a
   table. #}
{% macro release_of() %}
    {% set selects = [] %}
    {% for table, rows in kwargs.items() %}
        {% if rows.is_cte %}
            {% do exceptions.raise_compiler_error("release_of: " ~ rows.identifier ~ " is ephemeral; materialize it as a view") %}
        {% endif %}
        {% set name = ldiv.name_of(rows).replace("'", "''") %}
        {% do selects.append("select '" ~ table ~ "' as table_name, '" ~ name ~ "' as rows_of") %}
    {% endfor %}
    {{ return(selects | join("\nunion all\n")) }}
{% endmacro %}


{# The SQL of a model that is a table of the release which `release` publishes: by its name, or that under `meta: table`. #}
{% macro table_of(release) %}
    {{ return("select * from " ~ this) }}
{% endmacro %}


{# Where a model's release goes: its own table, whose name in a policy is none, or those of the models `anonymized_table`
   that refer to it. Each with its node, and what is there. #}
{% macro targets_of(model) %}
    {% set found = {} %}
    {% for node in graph.nodes.values() if ldiv.is_table_of(node, model) %}
        {% set table = (node.config.meta or {}).get("table", node.name) %}
        {% if table in found %}
            {% do exceptions.raise_compiler_error("anonymized: " ~ node.name ~ " and " ~ found[table].node.name ~ " are both " ~ table) %}
        {% endif %}
        {% set parts = {"database": node.database, "schema": node.schema, "identifier": node.alias} %}
        {% set relation = this.incorporate(path=parts, type="table") %}
        {% do adapter.create_schema(relation) %}
        {% set existing = adapter.get_relation(**parts) %}
        {% do found.update({table: {"table": table, "node": node, "relation": relation, "existing": existing}}) %}
    {% endfor %}
    {% set own = {"table": "", "node": model, "relation": this.incorporate(type="table"), "existing": load_cached_relation(this)} %}
    {% do return(found.values() | list or [own]) %}
{% endmacro %}

{% macro is_table_of(node, release) %}
    {% do return(node.config.materialized == "anonymized_table" and release.unique_id in node.depends_on.nodes) %}
{% endmacro %}


{# The model that publishes a table: the one `anonymized` that the table's model refers to. #}
{% macro release_before(model) %}
    {% set found = [] %}
    {% for name in model.depends_on.nodes if name in graph.nodes and graph.nodes[name].config.materialized == "anonymized" %}
        {% do found.append(graph.nodes[name]) %}
    {% endfor %}
    {% if found | length != 1 %}
        {% do exceptions.raise_compiler_error(
            "anonymized_table: the model refers to " ~ found | length ~ " models that are materialized: anonymized, and takes one:"
            ~ " {{ ldiv.table_of(ref('RELEASE')) }}"
        ) %}
    {% endif %}
    {% do return(found[0]) %}
{% endmacro %}


{# What the SQL of a model says that its tables are made of, by their names in the policy; nothing of a model of one. #}
{% macro rows_of_tables(targets, source) %}
    {% set found = {} %}
    {% if targets[0].table %}
        {% for row in run_query("select * from " ~ source).rows %}
            {% do found.update({row[0]: row[1]}) %}
        {% endfor %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# Whether the ledger has a release of several tables that this one is of. #}
{% macro is_published(relation) %}
    {% set ledger = adapter.get_relation(database=relation.database, schema="ldiv", identifier="run") %}
    {% if ledger is none %}
        {% do return(false) %}
    {% endif %}
    {% set name = ldiv.name_of(relation).replace("'", "''") %}
    {% set sql %}
        select 1 as one from {{ ledger }}
        where status = 'published' and position(', {{ name }},' in ', ' || target || ',') > 0
        limit 1
    {% endset %}
    {% do return(run_query(sql).rows | length == 1) %}
{% endmacro %}


{# Raises dbt's own error unless a release has the columns that its model's contract promises. #}
{% macro hold_to_contract(target) %}
    {% set promised = get_column_schema_from_query(get_empty_schema_sql(target.node.columns)) %}
    {% set made = get_column_schema_from_query(get_empty_subquery_sql("select * from " ~ target.relation)) %}
    {% set told = [] %}
    {% for columns in (promised, made) %}
        {% do told.append(format_columns(columns) | map(attribute="formatted") | sort) %}
    {% endfor %}
    {% if told[0] != told[1] %}
        {% do exceptions.raise_contract_error(format_columns(promised), format_columns(made)) %}
    {% endif %}
{% endmacro %}
