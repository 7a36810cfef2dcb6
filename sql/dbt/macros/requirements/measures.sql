{# How a requirement measures a class: `label`; `beside`, what is summed over the values of a class, by name; `reached`,
   `margin` and `good`, in terms of these and of class_rows, values_n (how many values) and largest (the rows of the most
   frequent one); `counts_once` if it is judged of sets as well, of which a member has the weight one over their number.
   Whole numbers decide what is good; only logarithms have a tolerance. The definitions are those of the program's own
   templates, which say where they come from. #}
{% macro measure(test, asked, requirement, sensitive) %}
    {% set found = ldiv.named_requirement(test, requirement) %}
    {% set measures = {
        "k": ldiv.measure_k, "risk": ldiv.measure_risk, "distinct": ldiv.measure_distinct,
        "unique_distinct": ldiv.measure_unique_distinct, "entropy": ldiv.measure_entropy,
        "frequency": ldiv.measure_frequency, "recursive": ldiv.measure_recursive, "alpha_k": ldiv.measure_alpha_k, "p_sensitive": ldiv.measure_p_sensitive, "threshold": ldiv.measure_threshold
    } %}
    {% if found.name == "t_closeness" %}
        {% do return(ldiv.measure_t_closeness(test, asked, found.parameters, sensitive)) %}
    {% elif found.name == "range" %}
        {% do return(ldiv.measure_range(test, found.parameters, asked.columns[sensitive | lower])) %}
    {% endif %}
    {% do return(measures[found.name](test, found.parameters)) %}
{% endmacro %}


{# k-anonymity, |G| >= k (Samarati & Sweeney 1998). #}
{% macro measure_k(test, given) %}
    {% set k = ldiv.whole_parameter(test, "k", given.k) %}
    {% do return({
        "label": "k k=" ~ k, "beside": {}, "reached": "class_rows", "margin": "class_rows - " ~ k,
        "good": "class_rows >= " ~ k
    }) %}
{% endmacro %}


{# Re-identification risk, 1 / |G| <= max (El Emam and Dankar 2008). #}
{% macro measure_risk(test, given) %}
    {% set bound = ldiv.fraction_between(test, "max", given.max, 0, 1, true) %}
    {% set room = bound.over ~ " * " ~ ldiv.whole("class_rows") ~ " - " ~ bound.under %}
    {% do return({
        "label": "risk max=" ~ bound.text, "beside": {}, "reached": "1 / " ~ ldiv.real("class_rows"),
        "margin": ldiv.real(room) ~ " / " ~ bound.under, "good": room ~ " >= 0"
    }) %}
{% endmacro %}


{# Distinct l-diversity: at least l different values (Machanavajjhala et al. 2006). Of each value at least l - 1 rows have
   none, which follows where every row has one. #}
{% macro measure_distinct(test, given) %}
    {% set l = ldiv.whole_parameter(test, "l", given.l) %}
    {% do return({
        "label": "distinct l=" ~ l, "beside": {}, "reached": "values_n", "counts_once": true,
        "margin": ldiv.lesser("values_n - " ~ l, "class_rows - largest - " ~ (l - 1)),
        "good": "values_n >= " ~ l ~ " and class_rows - largest >= " ~ (l - 1)
    }) %}
{% endmacro %}


{# Unique distinct l-diversity: l rows at least, all of different values (BSGI). #}
{% macro measure_unique_distinct(test, given) %}
    {% set l = ldiv.whole_parameter(test, "l", given.l) %}
    {% do return({
        "label": "unique_distinct l=" ~ l, "beside": {},
        "reached": "case when largest = 1 then class_rows else 0 end",
        "margin": "case when largest = 1 then class_rows - " ~ l ~ " else 1 - largest end",
        "good": "largest = 1 and class_rows >= " ~ l
    }) %}
{% endmacro %}


{# p-sensitive k-anonymity: k rows and p different values (Truta & Vinay 2006). #}
{% macro measure_p_sensitive(test, given) %}
    {% set p, k = ldiv.whole_parameter(test, "p", given.p), ldiv.whole_parameter(test, "k", given.k) %}
    {% do return({
        "label": "p_sensitive p=" ~ p ~ ", k=" ~ k, "beside": {}, "reached": "values_n", "counts_once": true,
        "margin": ldiv.lesser(
            "class_rows - " ~ k, ldiv.lesser("values_n - " ~ p, "class_rows - largest - " ~ (p - 1))
        ),
        "good": "class_rows >= " ~ k ~ " and values_n >= " ~ p ~ " and class_rows - largest >= " ~ (p - 1)
    }) %}
{% endmacro %}


{# Frequency l-diversity: no value in more than |G| / l rows (l-eligibility). #}
{% macro measure_frequency(test, given) %}
    {% set l = ldiv.fraction_between(test, "l", given.l, 1, none) %}
    {% set room = l.under ~ " * " ~ ldiv.whole("class_rows") ~ " - " ~ l.over ~ " * " ~ ldiv.whole("largest") %}
    {% do return({
        "label": "frequency l=" ~ l.text, "beside": {}, "counts_once": true,
        "reached": ldiv.real("class_rows") ~ " / " ~ ldiv.real("largest"),
        "margin": ldiv.real(room) ~ " / " ~ l.under, "good": room ~ " >= 0"
    }) %}
{% endmacro %}


{# (alpha,k)-anonymity: k rows, and no value in more than alpha |G| of them (Wong et al. 2006). #}
{% macro measure_alpha_k(test, given) %}
    {% set k = ldiv.whole_parameter(test, "k", given.k) %}
    {% set alpha = ldiv.fraction_between(test, "alpha", given.alpha, 0, 1, true) %}
    {% set room = ldiv.room(alpha) %}
    {% do return({
        "label": "alpha_k alpha=" ~ alpha.text ~ ", k=" ~ k, "beside": {}, "counts_once": true,
        "reached": ldiv.real("largest") ~ " / " ~ ldiv.real("class_rows"),
        "margin": ldiv.lesser(ldiv.real("class_rows - " ~ k), ldiv.real(room) ~ " / " ~ alpha.under),
        "good": room ~ " >= 0 and class_rows >= " ~ k
    }) %}
{% endmacro %}


{# (k,e)-anonymity: k different values, the largest e or more above the smallest (Zhang et al. 2007). #}
{% macro measure_range(test, given, column) %}
    {% set k = ldiv.whole_parameter(test, "k", given.k) %}
    {% set is_time = modules.re.match("date|timestamp", column.dtype | lower) is not none %}
    {% if not is_time and not ldiv.is_ordered(column) %}
        {% do ldiv.refuse(test, "range needs a sensitive column of numbers or times, " ~ column.name ~ " is " ~ column.dtype) %}
    {% endif %}
    {% set e = ldiv.distance(test, given.e, is_time) %}
    {% set place = ldiv.seconds("v") if is_time else ldiv.exact("v") %}
    {% set over = "reach - " ~ ldiv.exact("'" ~ e ~ "'") %}
    {% do return({
        "label": "range k=" ~ k ~ ", e=" ~ given.e, "reached": "reach",
        "beside": {"reach": "coalesce(max(" ~ place ~ ") - min(" ~ place ~ "), 0)"},
        "margin": ldiv.lesser(ldiv.real("values_n - " ~ k), ldiv.real(over)),
        "good": "values_n >= " ~ k ~ " and " ~ over ~ " >= 0"
    }) %}
{% endmacro %}


{# One threshold for all values: none in more than that share of |G|. #}
{% macro measure_threshold(test, given) %}
    {% set theta = ldiv.fraction_between(test, "threshold", given.default, 0, 1, true) %}
    {% set share = ldiv.real("largest") ~ " * " ~ theta.under ~ " / (" ~ ldiv.real("class_rows") ~ " * " ~ theta.over ~ ")" %}
    {% do return({
        "label": "threshold default=" ~ theta.text, "beside": {}, "reached": share, "counts_once": true,
        "margin": ldiv.real(ldiv.room(theta)) ~ " / " ~ theta.under, "good": ldiv.room(theta) ~ " >= 0"
    }) %}
{% endmacro %}


{# The rows that the most frequent value lacks to the share, times what the share is divided by. #}
{% macro room(share) %}
    {% do return(share.over ~ " * " ~ ldiv.whole("class_rows") ~ " - " ~ share.under ~ " * " ~ ldiv.whole("largest")) %}
{% endmacro %}


{# Entropy l-diversity: -sum p ln p >= ln l, within a tolerance, as ln |G| - sum n ln n / |G| (Machanavajjhala et al.). #}
{% macro measure_entropy(test, given) %}
    {% set l = ldiv.fraction_between(test, "l", given.l, 1, none) %}
    {% set rows = ldiv.real("class_rows") %}
    {% set entropy = "(" ~ ldiv.logarithm(rows) ~ " - logs / " ~ rows ~ ")" %}
    {% set margin = entropy ~ " - " ~ ldiv.logarithm(ldiv.real(l.text)) %}
    {% do return({
        "label": "entropy l=" ~ l.text, "counts_once": true,
        "beside": {"logs": "sum(" ~ ldiv.real("weight") ~ " * " ~ ldiv.logarithm(ldiv.real("weight")) ~ ")"},
        "reached": "exp(" ~ entropy ~ ")", "margin": margin, "good": margin ~ " >= -0.000000001"
    }) %}
{% endmacro %}


{# Recursive (c,l)-diversity: r_1 < c (r_l + ... + r_m), counts in falling order (Machanavajjhala et al. 2006). #}
{% macro measure_recursive(test, given) %}
    {% set l = ldiv.whole_parameter(test, "l", given.l) %}
    {% set c = ldiv.fraction_between(test, "c", given.c, 0, none, true) %}
    {% set lack = c.over ~ " * " ~ ldiv.whole("tail") ~ " - " ~ c.under ~ " * " ~ ldiv.whole("largest") %}
    {% do return({
        "label": "recursive c=" ~ c.text ~ ", l=" ~ l,
        "beside": {"tail": "sum(case when falling >= " ~ l ~ " then n else 0 end)"},
        "reached": ldiv.real("largest") ~ " / nullif(" ~ ldiv.real("tail") ~ ", 0)",
        "margin": "(" ~ ldiv.real(lack) ~ " - 0.000000001 * " ~ c.under ~ ") / " ~ c.under, "good": lack ~ " > 0"
    }) %}
{% endmacro %}
