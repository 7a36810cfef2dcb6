{# The model's SQL is the source, and is never written; {{ this }} is its audited release. Of several tables the SQL names
   the sources, and their own models are the releases. All of it is one transaction of dbt's: an error anywhere rolls it
   back, with the row in the ledger, and the tables that were there stay. #}
{% materialization anonymized, adapter="duckdb", supported_languages=["sql"] %}
    {%- set targets = ldiv.targets_of(model) -%}
    {%- set policy = ldiv.required_policy(model) -%}
    {%- set source = api.Relation.create(database="temp", schema="main", identifier=model.unique_id) -%}
    {%- set told = [ldiv.name_of(source), ldiv.name_of(this), policy] -%}
    {%- do ldiv.require_program() -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {#- The ledger's tables are made before, in a transaction of their own. Models of several threads follow one another
        from here to the end, so that each sees what the others published. -#}
    {% if not flags.EMPTY %}
        {% do adapter.anonymized_here("prepare", ldiv.settings_of(model, *told)) %}
    {% endif %}

    {#- BEGIN happens here. -#}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("ldiv_source") -%}
        create or replace temp view {{ source }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% set settings = ldiv.settings_of(model, *told, targets=targets, rows_of_tables=ldiv.rows_of_tables(targets, source)) %}
    {% if flags.EMPTY %}
        {% set outcome = ldiv.make_empty(targets, adapter.anonymized_here("no_rows", settings)) %}
    {% else %}
        {% for target in targets if target.existing is not none and target.existing.type != "table" %}
            {% do adapter.drop_relation(target.existing) %}
        {% endfor %}
        {% set outcome = adapter.anonymized_here("publish", settings) %}
    {% endif %}
    {% do run_query("drop view " ~ source) %}
    {{ ldiv.finish(targets, outcome) }}
    {% if not flags.EMPTY %}
        {% do adapter.anonymized_here("end", settings) %}
    {% endif %}
    {{ return({"relations": targets | map(attribute="relation") | list}) }}
{% endmaterialization %}


{# On other adapters rows stay in the warehouse: it counts them, and the release is planned where dbt runs, and written
   and audited there, before it takes the place of {{ this }}. What dbt began before is committed first. #}
{% materialization anonymized, default %}
    {%- set targets = ldiv.targets_of(model) -%}
    {%- set policy = ldiv.required_policy(model) -%}
    {%- if adapter.type() not in ["bigquery", "postgres", "snowflake", "spark"] -%}
        {% do exceptions.raise_compiler_error(
            "anonymized: not on dbt-" ~ adapter.type() ~ ", but on dbt-duckdb, dbt-postgres, dbt-snowflake, dbt-bigquery and"
            ~ " dbt-spark: outside of dbt `ldiv run` publishes, and the tests of this package run anywhere"
        ) %}
    {%- elif adapter.type() == "spark" and adapter.config.credentials.method != "session" -%}
        {% do exceptions.raise_compiler_error("anonymized: on dbt-spark by `method: session` alone; elsewhere `ldiv run spark`") %}
    {%- endif -%}
    {%- for target in targets if target.existing is not none and target.existing.type != "table" -%}
        {% do exceptions.raise_compiler_error(
            "anonymized: " ~ target.existing ~ " is a " ~ target.existing.type ~ ", which stays: drop it"
        ) %}
    {%- endfor -%}
    {%- do ldiv.require_program() -%}
    {%- set source = adapter.dispatch("source_there", "ldiv")("ldiv_source_" ~ local_md5(model.unique_id)) -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("main") -%}
        create or replace {{ source.kind }} {{ source.name }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% set rows = ldiv.rows_of_tables(targets, source.name) %}
    {% set settings = ldiv.settings_of(model, source.told, ldiv.name_of(this), policy, targets=targets, rows_of_tables=rows) %}
    {% set drop = "drop view if exists " ~ source.name %}
    {#- dbt-bigquery has other names of types; there the contract is held against the release once it is in its place. -#}
    {% set is_held = config.get("contract").enforced and adapter.type() != "bigquery" %}
    {% set contract = get_empty_schema_sql(model.columns) if is_held else none %}
    {% if flags.EMPTY %}
        {% set outcome = ldiv.make_empty(targets, adapter.no_rows_anonymized(settings, drop)) %}
        {% do run_query(drop) %}
    {% else %}
        {% set outcome = adapter.publish_anonymized(settings, drop, contract) %}
    {% endif %}
    {% if adapter.type() == "spark" %}{#- Another session published: dbt's may hold the files of the release before. -#}
        {% do run_query("refresh table " ~ targets[0].relation) %}
    {% endif %}
    {{ ldiv.finish(targets, outcome) }}
    {{ return({"relations": targets | map(attribute="relation") | list}) }}
{% endmaterialization %}


{% macro required_policy(model) %}
    {% set policy = ldiv.policy_of(model) %}
    {% if policy is none %}
        {% do exceptions.raise_compiler_error("anonymized: the model has no policy; write it under config: meta: policy") %}
    {% endif %}
    {% do return(policy) %}
{% endmacro %}


{# Jinja finds the methods of adapters that the program adds, of this version. #}
{% macro require_program() %}
    {%- if adapter.no_rows_anonymized is not defined -%}
        {% do exceptions.raise_compiler_error(
            "anonymized: ldiv_db is not installed where dbt runs, or is older than this package: pip install -U ldiv-db"
        ) %}
    {%- endif -%}
{% endmacro %}


{# With `--empty` nothing is published: a release that is there stays, and else a table has its columns, and no row. #}
{% macro make_empty(targets, no_rows) %}
    {% for target in targets if target.existing is none %}
        {% call statement("ldiv_empty") -%}
            {{ create_table_as(False, target.relation, no_rows[target.table]) }}
        {%- endcall %}
    {% endfor %}
    {% set stays = targets | rejectattr("existing", "none") | list | length == targets | length %}
    {% do return({"empty": "the release stays" if stays else "a table without rows", "rows": 0}) %}
{% endmacro %}


{# Whether a table is there and has no rows, as `--empty` makes it. #}
{% macro is_vacant(existing) %}
    {% set is_table = existing is not none and existing.type == "table" %}
    {% do return(is_table and run_query("select 1 as one from " ~ existing ~ " limit 1").rows | length == 0) %}
{% endmacro %}


{# What follows a release, up to the end of dbt's transaction and after it. Grants and docs of several tables are those of
   their models, which follow. #}
{% macro finish(targets, outcome) %}
    {% for warning in outcome.warnings or [] %}
        {% do exceptions.warn(model.name ~ ": " ~ warning) %}
    {% endfor %}
    {% for target in targets if target.node.config.contract.enforced %}
        {% do ldiv.hold_to_contract(target) %}
    {% endfor %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {% for target in targets if target.node.unique_id == model.unique_id %}
        {% set revokes = should_revoke(target.existing, full_refresh_mode=True) %}
        {% do apply_grants(target.relation, config.get("grants"), should_revoke=revokes) %}
        {% do persist_docs(target.relation, model) %}
    {% endfor %}

    {{ adapter.commit() }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {% do store_raw_result(
        name="main", message=ldiv.outcome_in_words(outcome), code="ANONYMIZED", rows_affected=outcome.rows, agate_table=none
    ) %}
{% endmacro %}


{# Where the view of a model's rows is for the time of a run: in a session of its own, or beside the ledger, where who
   reads releases has no rights. `told` is the name as a policy has it. #}
{% macro default__source_there(name) %}
    {% set relation = api.Relation.create(database=this.database, schema="ldiv", identifier=name) %}
    {% do adapter.create_schema(relation) %}
    {% do return({"kind": "view", "name": relation, "told": ldiv.name_of(relation)}) %}
{% endmacro %}

{% macro postgres__source_there(name) %}
    {% do return({"kind": "temp view", "name": name, "told": "pg_temp." ~ name}) %}
{% endmacro %}


{# What Python is told of the model, as JSON; source and target are names as a policy has them. #}
{% macro settings_of(model, source, target, policy, targets=[], rows_of_tables={}) %}
    {% set project = invocation_args_dict.get("project_dir") or "." %}
    {% set beside = model.original_file_path.replace("\\", "/").split("/")[:-1] | join("/") %}
    {% set tables = {} %}
    {% for table, rows in rows_of_tables.items() %}
        {% do tables.update({table: {"source": rows}}) %}
    {% endfor %}
    {% for one in targets if one.table %}
        {% do tables.setdefault(one.table, {}).update({"target": ldiv.name_of(one.relation)}) %}
    {% endfor %}
    {% do return(tojson({
        "name": model.unique_id,
        "source": source,
        "target": target,
        "policy": policy,
        "folders": [project ~ "/" ~ beside, project],
        "full_refresh": should_full_refresh(),
        "vacant": targets | length == 1 and ldiv.is_vacant(targets[0].existing),
        "tables": tables
    })) %}
{% endmacro %}


{# A relation's name as a policy writes it: a plain one in small letters stands for what the database makes of it without
   quotes. On dbt-postgres all of them are of one database. #}
{% macro name_of(relation) %}
    {% set found = [] %}
    {% for kind in ["database", "schema", "identifier"] if relation[kind] and (kind, adapter.type()) != ("database", "postgres") %}
        {% set part, is_quoted = relation[kind], relation.quote_policy[kind] %}
        {% if is_quoted and adapter.type() == "snowflake" and modules.re.fullmatch("[a-z_][a-z0-9_]*", part) %}
            {% do exceptions.raise_compiler_error(
                "anonymized: " ~ relation ~ " quotes " ~ part ~ ", which a policy cannot name in Snowflake: leave `quoting` out"
            ) %}
        {% endif %}
        {% set part = part if is_quoted or adapter.type() not in ["postgres", "snowflake"] else part | lower %}
        {% set is_plain = modules.re.fullmatch("[a-z_][a-z0-9_]*", part) %}
        {% do found.append(part if is_plain else '"' ~ part.replace('"', '""') ~ '"') %}
    {% endfor %}
    {% do return(found | join(".")) %}
{% endmacro %}


{% macro outcome_in_words(outcome) %}
    {% if outcome.empty %}
        {% do return("nothing published (--empty): " ~ outcome.empty) %}
    {% elif outcome.release_model %}
        {% do return(outcome.rows ~ " rows, published by " ~ outcome.release_model) %}
    {% elif outcome.release %}
        {% do return("release " ~ outcome.release ~ ": " ~ outcome.rows ~ " rows, " ~ outcome.first ~ " for the first time") %}
    {% endif %}
    {% set unchanged = "unchanged: " if outcome.unchanged else "" %}
    {% set tables = " of " ~ outcome.tables ~ " tables" if outcome.tables else "" %}
    {% do return(unchanged ~ outcome.rows ~ " rows" ~ tables ~ " in " ~ outcome.classes ~ " classes, " ~ outcome.suppressed ~ " suppressed") %}
{% endmacro %}
