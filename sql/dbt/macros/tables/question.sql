{# What is asked of a table: `table`, as it stands in FROM; `class_columns`, `sensitive` (name to what the policy says of
   it) and `required`; `columns`, those of the table by their names in small letters; `people`, the columns of the person
   whose a row is and of its position among theirs, if people are counted. #}
{% macro question(test, model, required, quasi_identifiers, sensitive, class_column, policy, people=none) %}
    {% set node = ldiv.node_of(model) %}
    {% set given = ldiv.policy_document(test, policy, node, required, quasi_identifiers, sensitive) %}
    {% set columns = ldiv.columns_of(model, node) %}
    {% set qi = quasi_identifiers if quasi_identifiers is not none else given.get("quasi_identifiers") %}
    {% set attributes = ldiv.as_mapping(sensitive if sensitive is not none else given.get("sensitive")) %}
    {% set required = required if required is not none else given.get("require") %}
    {% if not qi %}
        {% do ldiv.refuse(test, "quasi_identifiers is missing: a class is the rows with equal quasi-identifiers") %}
    {% elif not required %}
        {% do ldiv.refuse(test, "require is missing: neither the test nor a policy says what must hold") %}
    {% endif %}
    {% if given.get("suppressed", "judge") != "judge" %}
        {% do ldiv.refuse(test, "cannot judge suppressed: " ~ given["suppressed"] ~ "; `ldiv check` can") %}
    {% endif %}
    {% if ldiv.counts_people(given) %}
        {% do ldiv.refuse(
            test, "cannot judge individual: the policy counts people, and rows are counted here; `ldiv check` can"
        ) %}
    {% endif %}
    {% set own = class_column is none and "class_id" in columns and given and not ldiv.keeps_class_id(given) %}
    {% set ids = ["class_id"] if own else ([class_column] if class_column is not none else []) %}
    {% set class_columns = ldiv.published_columns(test, ldiv.as_mapping(qi).keys() | list, columns) + ids %}
    {% for name in class_columns + (attributes.keys() | list) %}
        {% do ldiv.column(test, columns, name) %}
    {% endfor %}
    {% do ldiv.refuse_unread(test, attributes) %}
    {% set owned = {} %}
    {% for key, name in (people or {}).items() if name is not none %}
        {% do owned.update({key: ldiv.apart(ldiv.column(test, columns, name), columns[name | lower])}) %}
    {% endfor %}
    {% do return({
        "table": model, "columns": columns, "class_columns": class_columns, "sensitive": attributes, "required": required,
        "people": owned
    }) %}
{% endmacro %}


{# Whether the policy's requirements are on people, of whom a class may have several rows: bsgi keeps them apart. #}
{% macro counts_people(policy) %}
    {% set individual, algorithm = policy.get("individual"), policy.get("algorithm") %}
    {% set name = algorithm.get("name") if algorithm is mapping else algorithm %}
    {% set together = individual is mapping and individual.get("rows") in ("together", "aligned") %}
    {% set apart = name == "bsgi" or policy.get("key") is not none %}
    {% do return(individual is not none and (together or not apart)) %}
{% endmacro %}


{# The node that a test is of, none for one that dbt does not know by its table. #}
{% macro node_of(model) %}
    {% set table = model | string | trim %}
    {% set words = table.split() + [table] %}
    {% for node in graph.nodes.values() if node.relation_name and node.relation_name in words %}
        {% do return(node) %}
    {% endfor %}
    {% do return(none) %}
{% endmacro %}


{# The policy document: a mapping, the name of a variable that has one, YAML, or what the model's config has. Where the
   test itself says all that it needs, there need be none. #}
{% macro policy_document(test, policy, node, required, quasi_identifiers, sensitive) %}
    {% set given = policy if policy is not none else (ldiv.policy_of(node) if node else none) %}
    {% if given is string %}
        {% set written = var(given, none) %}
        {% set given = written if written is not none else fromyaml(given) %}
    {% endif %}
    {% set is_of_several = given is none and node and node.config.materialized == "anonymized_table" %}
    {% if is_of_several and required is none %}
        {% do ldiv.refuse(
            test, "cannot judge one table of several, whose policy counts people by all of them: `ldiv check` can, and the "
            ~ "materialization has before it published them"
        ) %}
    {% elif given is mapping %}
        {% do return(given) %}
    {% elif given is none or (required is not none and quasi_identifiers is not none) %}
        {% do return({}) %}
    {% endif %}
    {% do ldiv.refuse(
        test,
        "the policy of the model is in a file, which no test can read: write it under meta: policy, or give the test "
        ~ "require, quasi_identifiers and sensitive"
    ) %}
{% endmacro %}


{# Names alone, or one name, as a mapping to empty settings. #}
{% macro as_mapping(names) %}
    {% if names is mapping %}
        {% do return(names) %}
    {% endif %}
    {% set found = {} %}
    {% for name in ([names] if names is string else (names or [])) %}
        {% do found.update({name: {}}) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# The columns of the table by their names in small letters. #}
{% macro columns_of(model, node) %}
    {% set relation = model %}
    {% if model is string and node %}
        {% set relation = adapter.get_relation(node.database, node.schema, node.alias) %}
    {% endif %}
    {% set found = {} %}
    {% for column in adapter.get_columns_in_relation(relation) %}
        {% do found.update({column.name | lower: column}) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# The column of that name, quoted. #}
{% macro column(test, columns, name) %}
    {% if name | lower not in columns %}
        {% do ldiv.refuse(test, "the table has no column " ~ name) %}
    {% endif %}
    {% do return(adapter.quote(columns[name | lower].name)) %}
{% endmacro %}


{# The column of that name as it is judged: texts of a sensitive one after the steps by which they are one. #}
{% macro value_of(test, asked, name) %}
    {% set column, settings = ldiv.column(test, asked.columns, name), asked.sensitive.get(name) %}
    {% set same = settings.get("same") if settings is mapping else none %}
    {% set value = ldiv.folded(column, [same] if same is string else same) if same else column %}
    {% if not value %}
        {% do ldiv.refuse(test, "cannot judge sensitive." ~ name ~ ".same in this database; `ldiv check` can") %}
    {% endif %}
    {% do return(ldiv.apart(value, asked.columns[name | lower], of_class=name not in asked.sensitive)) %}
{% endmacro %}


{# Of a sensitive column of sets the list of a row's members, of a text of them true, since blanks beside them are none,
   and the steps by which members are one, of which some may fold what stands between them. #}
{% macro members_of(test, asked, name) %}
    {% set settings = asked.sensitive.get(name) if name is not none else none %}
    {% set separator = settings.get("set") if settings is mapping else none %}
    {% if not separator %}
        {% do return(none) %}
    {% endif %}
    {% set same, listed = settings.get("same") or [], ldiv.listed(ldiv.column(test, asked.columns, name), separator) %}
    {% if not listed %}
        {% do ldiv.refuse(test, "cannot judge sensitive." ~ name ~ ".set in this database; `ldiv check` can") %}
    {% endif %}
    {% do return({"listed": listed, "is_text": separator is string, "same": [same] if same is string else same}) %}
{% endmacro %}


{# The columns that quasi-identifiers are published in: their own, or two bounds. #}
{% macro published_columns(test, names, columns) %}
    {% set found = [] %}
    {% for name in names %}
        {% set bounds = [name ~ "_min", name ~ "_max"] %}
        {% set is_bounded = bounds[0] | lower in columns and bounds[1] | lower in columns %}
        {% do found.extend(bounds if is_bounded and name | lower not in columns else [name]) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# Whether a column class_id is the source's own. #}
{% macro keeps_class_id(policy) %}
    {% set keep = policy.get("keep") or [] %}
    {% set listed = [keep] if keep is string else keep %}
    {% set listed = listed + (ldiv.as_mapping(policy.get("sensitive")).keys() | list) %}
    {% do return("class_id" in (listed | map("lower") | list)) %}
{% endmacro %}


{# What a policy says of sensitive columns and the tests cannot read is an error: it would change what is good. #}
{% macro refuse_unread(test, attributes) %}
    {% for name, settings in attributes.items() if settings is mapping %}
        {% if settings.get("harmless") %}
            {% do ldiv.refuse(test, "cannot judge sensitive." ~ name ~ ".harmless; `ldiv check` can") %}
        {% endif %}
    {% endfor %}
{% endmacro %}
