{# The policy of a model's config: under `meta: policy`, or `policy` alone; none if it has none. #}
{% macro policy_of(node) %}
    {% set config = node.config %}
    {% set meta = config.get("meta") or {} %}
    {% do return(meta.get("policy") or config.get("policy")) %}
{% endmacro %}
