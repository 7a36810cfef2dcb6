"""The risk-utility map: variants of a policy, each rehearsed, and which of them no other is better than."""
