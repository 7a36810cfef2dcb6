{# The model's SQL is the source, and is never written; {{ this }} is its audited release. All of it is one transaction
   of dbt's: an error anywhere rolls it back, with the row in the ledger, and the table that was there stays. #}
{% materialization anonymized, adapter="duckdb", supported_languages=["sql"] %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set policy = ldiv.required_policy(model) -%}
    {%- set source = api.Relation.create(database="temp", schema="main", identifier=model.unique_id) -%}
    {%- set told = [ldiv.parts_of(source), ldiv.parts_of(this), policy] -%}
    {%- do ldiv.require_program() -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {#- The ledger's tables are made before, in a transaction of their own. Models of several threads follow one another
        from here to the end, so that each sees what the others published. -#}
    {% if not flags.EMPTY %}
        {% do adapter.anonymized_here("prepare", ldiv.settings_of(model, *told)) %}
    {% endif %}
    {% set target = this.incorporate(type="table") %}

    {#- BEGIN happens here. -#}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("ldiv_source") -%}
        create or replace temp view {{ source }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% set settings = ldiv.settings_of(model, *told, vacant=ldiv.is_vacant(existing)) %}
    {% if flags.EMPTY %}
        {% set outcome = ldiv.make_empty(target, existing, adapter.anonymized_here("no_rows", settings)) %}
    {% else %}
        {% if existing is not none and existing.type != target.type %}
            {% do adapter.drop_relation(existing) %}
        {% endif %}
        {% set outcome = adapter.anonymized_here("publish", settings) %}
    {% endif %}
    {% do run_query("drop view " ~ source) %}
    {{ ldiv.finish(target, existing, outcome) }}
    {% if not flags.EMPTY %}
        {% do adapter.anonymized_here("end", settings) %}
    {% endif %}
    {{ return({"relations": [target]}) }}
{% endmaterialization %}


{# On other adapters rows stay in the warehouse: it counts them, and the release is planned where dbt runs, and written
   and audited there, before it takes the place of {{ this }}. What dbt began before is committed first. #}
{% materialization anonymized, default %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set policy = ldiv.required_policy(model) -%}
    {%- if adapter.type() not in ["bigquery", "postgres", "snowflake", "spark"] -%}
        {% do exceptions.raise_compiler_error(
            "anonymized: not on dbt-" ~ adapter.type() ~ ", but on dbt-duckdb, dbt-postgres, dbt-snowflake, dbt-bigquery and"
            ~ " dbt-spark: outside of dbt `ldiv run` publishes, and the tests of this package run anywhere"
        ) %}
    {%- elif adapter.type() == "spark" and adapter.config.credentials.method != "session" -%}
        {% do exceptions.raise_compiler_error("anonymized: on dbt-spark by `method: session` alone; elsewhere `ldiv run spark`") %}
    {%- elif existing is not none and existing.type != "table" -%}
        {% do exceptions.raise_compiler_error("anonymized: " ~ this ~ " is a " ~ existing.type ~ ", which stays: drop it") %}
    {%- endif -%}
    {%- do ldiv.require_program() -%}
    {%- set source = adapter.dispatch("source_there", "ldiv")("ldiv_source_" ~ local_md5(model.unique_id)) -%}
    {% set target = this.incorporate(type="table") %}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("main") -%}
        create or replace {{ source.kind }} {{ source.name }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% set settings = ldiv.settings_of(model, source.parts, source.target, policy, vacant=ldiv.is_vacant(existing)) %}
    {% set drop = "drop view if exists " ~ source.name %}
    {#- dbt-bigquery has other names of types; there the contract is held against the release once it is in its place. -#}
    {% set is_held = config.get("contract").enforced and adapter.type() != "bigquery" %}
    {% set contract = get_empty_schema_sql(model.columns) if is_held else none %}
    {% if flags.EMPTY %}
        {% set outcome = ldiv.make_empty(target, existing, adapter.no_rows_anonymized(settings, drop)) %}
        {% do run_query(drop) %}
    {% else %}
        {% set outcome = adapter.publish_anonymized(settings, drop, contract) %}
    {% endif %}
    {% if adapter.type() == "spark" %}{#- Another session published: dbt's may hold the files of the release before. -#}
        {% do run_query("refresh table " ~ target) %}
    {% endif %}
    {{ ldiv.finish(target, existing, outcome) }}
    {{ return({"relations": [target]}) }}
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
{% macro make_empty(target, existing, no_rows) %}
    {% if existing is none %}
        {% call statement("ldiv_empty") -%}
            {{ create_table_as(False, target, no_rows) }}
        {%- endcall %}
    {% endif %}
    {% do return({"empty": "a table without rows" if existing is none else "the release stays", "rows": 0}) %}
{% endmacro %}


{# Whether a table is there and has no rows, as `--empty` makes it. #}
{% macro is_vacant(existing) %}
    {% set is_table = existing is not none and existing.type == "table" %}
    {% do return(is_table and run_query("select 1 as one from " ~ existing ~ " limit 1").rows | length == 0) %}
{% endmacro %}


{# What follows a release, up to the end of dbt's transaction and after it. #}
{% macro finish(target, existing, outcome) %}
    {% for warning in outcome.warnings or [] %}
        {% do exceptions.warn(model.name ~ ": " ~ warning) %}
    {% endfor %}
    {% if config.get("contract").enforced %}
        {% do get_assert_columns_equivalent("select * from " ~ target) %}
    {% endif %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {% do apply_grants(target, config.get("grants"), should_revoke=should_revoke(existing, full_refresh_mode=True)) %}
    {% do persist_docs(target, model) %}

    {{ adapter.commit() }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {% do store_raw_result(
        name="main", message=ldiv.outcome_in_words(outcome), code="ANONYMIZED", rows_affected=outcome.rows, agate_table=none
    ) %}
{% endmacro %}


{# Where the view of a model's rows is for the time of a run: in a session of its own, or beside the ledger, where who
   reads releases has no rights. `parts` are those of its name, and `target` those of the release's, as a policy has them. #}
{% macro default__source_there(name) %}
    {% set relation = api.Relation.create(database=this.database, schema="ldiv", identifier=name) %}
    {% do adapter.create_schema(relation) %}
    {% do return({"kind": "view", "name": relation, "parts": ldiv.parts_of(relation), "target": ldiv.parts_of(this)}) %}
{% endmacro %}

{% macro postgres__source_there(name) %}
    {% do return({"kind": "temp view", "name": name, "parts": ["pg_temp", name], "target": [this.schema, this.identifier]}) %}
{% endmacro %}


{# What Python is told of the model, as JSON; source and target are the parts of their names. #}
{% macro settings_of(model, source, target, policy, vacant=false) %}
    {% set project = invocation_args_dict.get("project_dir") or "." %}
    {% set beside = model.original_file_path.replace("\\", "/").split("/")[:-1] | join("/") %}
    {% do return(tojson({
        "name": model.unique_id,
        "source": source,
        "target": target,
        "policy": policy,
        "folders": [project ~ "/" ~ beside, project],
        "full_refresh": should_full_refresh(),
        "vacant": vacant
    })) %}
{% endmacro %}


{# The parts of a relation's name as a policy writes them: a plain one in small letters stands for what the database
   makes of it without quotes. #}
{% macro parts_of(relation) %}
    {% set found = [] %}
    {% for kind in ["database", "schema", "identifier"] if relation[kind] %}
        {% set part, is_quoted = relation[kind], relation.quote_policy[kind] %}
        {% if is_quoted and adapter.type() == "snowflake" and modules.re.fullmatch("[a-z_][a-z0-9_]*", part) %}
            {% do exceptions.raise_compiler_error(
                "anonymized: " ~ relation ~ " quotes " ~ part ~ ", which a policy cannot name in Snowflake: leave `quoting` out"
            ) %}
        {% endif %}
        {% do found.append(part if is_quoted or adapter.type() not in ["postgres", "snowflake"] else part | lower) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{% macro outcome_in_words(outcome) %}
    {% if outcome.empty %}
        {% do return("nothing published (--empty): " ~ outcome.empty) %}
    {% elif outcome.release %}
        {% do return("release " ~ outcome.release ~ ": " ~ outcome.rows ~ " rows, " ~ outcome.first ~ " for the first time") %}
    {% endif %}
    {% set unchanged = "unchanged: " if outcome.unchanged else "" %}
    {% do return(unchanged ~ outcome.rows ~ " rows in " ~ outcome.classes ~ " classes, " ~ outcome.suppressed ~ " suppressed") %}
{% endmacro %}
