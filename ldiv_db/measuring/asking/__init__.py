"""Questions to a published table: what a SELECT on its source would count, with bounds that surely hold it.

`database/questions.py` reads the SELECT, `columns` holds it against the table and its policy, `cells` cuts what labels
cover by its conditions and groups, `inquiry` has what templates take, and `answer` sums up. Nothing but the published
table is looked at: whoever has it could work it out.
"""
