{# The model's SQL is the source, and is never written; {{ this }} is its audited release. All of it is one transaction
   of dbt's: an error anywhere rolls it back, with the row in the ledger, and the table that was there stays. #}
{% materialization anonymized, adapter="duckdb", supported_languages=["sql"] %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set policy = ldiv.required_policy(model) -%}
    {%- set source = api.Relation.create(database="temp", schema="main", identifier=model.unique_id) -%}
    {%- set settings = ldiv.settings_of(model, ldiv.parts_of(source), ldiv.parts_of(this), policy) -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {#- The ledger's tables are made before, in a transaction of their own. Models of several threads follow one another
        from here to the end, so that each sees what the others published. -#}
    {% call statement("ldiv_prepare", auto_begin=False, language="python") -%}
        {{ ldiv.call_python("prepare", settings) }}
    {%- endcall %}
    {% set target = this.incorporate(type="table") %}

    {#- BEGIN happens here. -#}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("ldiv_source") -%}
        create or replace temp view {{ source }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% if existing is not none and existing.type != target.type %}
        {% do adapter.drop_relation(existing) %}
    {% endif %}
    {% call statement("main", language="python") -%}
        {{ ldiv.call_python("publish", settings) }}
    {%- endcall %}
    {% set outcome = ldiv.take_outcome() %}
    {% do run_query("drop view " ~ source) %}
    {{ ldiv.finish(target, existing, outcome) }}
    {% call statement("ldiv_end", auto_begin=False, language="python") -%}
        {{ ldiv.call_python("end", settings) }}
    {%- endcall %}
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
    {%- elif adapter.publish_anonymized is not defined -%}
        {% do exceptions.raise_compiler_error("anonymized: ldiv_db is not installed where dbt runs: pip install ldiv-db") %}
    {%- elif existing is not none and existing.type != "table" -%}
        {% do exceptions.raise_compiler_error("anonymized: " ~ this ~ " is a " ~ existing.type ~ ", which stays: drop it") %}
    {%- endif -%}
    {%- set source = adapter.dispatch("source_there", "ldiv")("ldiv_source_" ~ local_md5(model.unique_id)) -%}
    {% set target = this.incorporate(type="table") %}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement("main") -%}
        create or replace {{ source.kind }} {{ source.name }} as (
            {{ compiled_code }}
        )
    {%- endcall %}
    {% set settings = ldiv.settings_of(model, source.parts, source.target, policy) %}
    {#- dbt-bigquery has other names of types; there the contract is held against the release once it is in its place. -#}
    {% set is_held = config.get("contract").enforced and adapter.type() != "bigquery" %}
    {% set contract = get_empty_schema_sql(model.columns) if is_held else none %}
    {% set outcome = adapter.publish_anonymized(settings, "drop view if exists " ~ source.name, contract) %}
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


{# The Python that dbt-duckdb runs on its connection: `call`, a function of ours, on what it is told of the model. #}
{% macro call_python(call, settings) -%}
SETTINGS = {{ tojson(settings) }}  # not in the call, as a traceback shows its line


class dbtObj:
    def __init__(self, load):
        pass


def model(dbt, session):
    try:
        from ldiv_db.running.dbt_model import {{ call }}
    except ModuleNotFoundError as error:
        raise RuntimeError(f"anonymized: ldiv_db is not installed where dbt runs ({error})") from None
    {{ call }}(session, SETTINGS)


def materialize(df, con):
    pass
{%- endmacro %}


{# What Python is told of the model, as JSON; source and target are the parts of their names. #}
{% macro settings_of(model, source, target, policy) %}
    {% set project = invocation_args_dict.get("project_dir") or "." %}
    {% set beside = model.original_file_path.replace("\\", "/").split("/")[:-1] | join("/") %}
    {% do return(tojson({
        "name": model.unique_id,
        "source": source,
        "target": target,
        "policy": policy,
        "folders": [project ~ "/" ~ beside, project],
        "full_refresh": should_full_refresh()
    })) %}
{% endmacro %}


{% macro parts_of(relation) %}
    {% do return([relation.database, relation.schema, relation.identifier] | select | list) %}
{% endmacro %}


{# What Python left of what it did. #}
{% macro take_outcome() %}
    {% set found = run_query("select getvariable('ldiv_outcome') as outcome") %}
    {% do run_query("reset variable ldiv_outcome") %}
    {% do return(fromjson(found.rows[0][0])) %}
{% endmacro %}


{% macro outcome_in_words(outcome) %}
    {% if outcome.release %}
        {% do return("release " ~ outcome.release ~ ": " ~ outcome.rows ~ " rows, " ~ outcome.first ~ " for the first time") %}
    {% endif %}
    {% set unchanged = "unchanged: " if outcome.unchanged else "" %}
    {% do return(unchanged ~ outcome.rows ~ " rows in " ~ outcome.classes ~ " classes, " ~ outcome.suppressed ~ " suppressed") %}
{% endmacro %}
