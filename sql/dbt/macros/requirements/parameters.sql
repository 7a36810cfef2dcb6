{# The requirement's name, and its parameters by name; what is none, or cannot be judged here, is an error. #}
{% macro named_requirement(test, requirement) %}
    {% set known = {
        "k": ["k"], "distinct": ["l"], "unique_distinct": ["l"], "entropy": ["l"], "frequency": ["l"],
        "recursive": ["c", "l"], "alpha_k": ["alpha", "k"], "p_sensitive": ["p", "k"], "t_closeness": ["t"],
        "threshold": ["default"], "range": ["k", "e"], "risk": ["max"]
    } %}
    {% set names = [] %}
    {% if requirement is mapping %}
        {% set names = requirement.keys() | reject("in", ["sensitive", "others_known", "each"]) | list %}
    {% endif %}
    {% if names | length != 1 %}
        {% do ldiv.refuse(test, "a requirement is written `name: value`, as `distinct: 3`") %}
    {% endif %}
    {% set name = names[0] %}
    {% if name not in known %}
        {% do ldiv.refuse(
            test, "cannot judge the requirement " ~ name ~ "; these are known: " ~ known.keys() | join(", ")
        ) %}
    {% endif %}
    {% set needed, given = known[name], requirement[name] %}
    {% set parameters = given if given is mapping else {needed[0]: given} %}
    {% set optional = {"t_closeness": ["distance"], "risk": ["k"]}.get(name, []) %}
    {% for key in parameters if key not in needed + optional %}
        {% do ldiv.refuse(test, "cannot judge " ~ name ~ " with " ~ key ~ "; `ldiv check` can what policies may say") %}
    {% endfor %}
    {% for key in needed if parameters.get(key) is none %}
        {% do ldiv.refuse(test, name ~ " lacks " ~ key) %}
    {% endfor %}
    {% do return({"name": name, "parameters": parameters}) %}
{% endmacro %}


{# A whole number from 1. #}
{% macro whole_parameter(test, name, value) %}
    {% set text = value | string %}
    {% if value is boolean or not modules.re.fullmatch("0*[1-9][0-9]{0,8}", text) %}
        {% do ldiv.refuse(test, name ~ " takes a whole number from 1, not " ~ text) %}
    {% endif %}
    {% do return(text | int) %}
{% endmacro %}


{# How far apart values are asked to be, as the text of a decimal: a number, or of times a stretch in seconds. #}
{% macro distance(test, value, is_time) %}
    {% set units = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1} %}
    {% set found = modules.re.fullmatch(
        "\\s*([0-9]{1,18}([.][0-9]{1,18})?)(e([-+]?[0-9]{1,2}))?(\\s*([a-z]+?)s?)?\\s*", value | string
    ) %}
    {% if not found or value is boolean or (found.group(6) is not none) != is_time or (is_time and found.group(6) not in units) %}
        {% set what = "a stretch of time in " ~ units.keys() | join("s, ") ~ "s" if is_time else "a number" %}
        {% do ldiv.refuse(test, "e takes " ~ what ~ ", not " ~ value) %}
    {% endif %}
    {% set amount = found.group(1) %}
    {% if found.group(4) is not none or is_time %}
        {% set amount = "%.15f" | format((amount ~ "e" ~ (found.group(4) or "0")) | float * units.get(found.group(6), 1)) %}
    {% endif %}
    {% if amount | float <= 0 %}
        {% do ldiv.refuse(test, "e takes what is above 0, not " ~ value) %}
    {% endif %}
    {% do return(amount) %}
{% endmacro %}


{# A number that is written with up to 9 digits after the point, as two whole numbers without a common divisor. #}
{% macro fraction(test, name, value) %}
    {% set text = value | string %}
    {% if value is boolean or not modules.re.fullmatch("[0-9]{1,9}([.][0-9]{1,9})?", text) %}
        {% do ldiv.refuse(test, name ~ " takes a number with up to 9 digits after the point, not " ~ text) %}
    {% endif %}
    {% set digits = (text.split(".") + [""])[1] %}
    {% set number = {"over": text.replace(".", "") | int, "under": 10 ** (digits | length)} %}
    {% set rest = namespace(one=number.over, other=number.under) %}
    {% for _ in range(60) if rest.other != 0 %}
        {% set one = rest.one %}
        {% set rest.one = rest.other %}
        {% set rest.other = one % rest.other %}
    {% endfor %}
    {% do return({"over": number.over // rest.one, "under": number.under // rest.one, "text": text}) %}
{% endmacro %}


{# As `fraction`, and within bounds. #}
{% macro fraction_between(test, name, value, least, most, without_least=false) %}
    {% set found = ldiv.fraction(test, name, value) %}
    {% set below = found.over < least * found.under or (without_least and found.over == least * found.under) %}
    {% if below or (most is not none and found.over > most * found.under) %}
        {% set upto = "" if most is none else " up to " ~ most %}
        {% do ldiv.refuse(test, name ~ " takes a number " ~ ("above " if without_least else "from ") ~ least ~ upto) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
