"""The least that any local recoding loses, bounded from below and proved, by Lagrangian relaxation over labels.

A local recoding gives every row a label: a node of each quasi-identifier around its values. A row costs the losses of
its label, and each label in use has a class that meets the requirements. Give every cell a price. For each label find
the class of rows below it that gains most, a row's gain being its price less the label's cost. Then the sum of all
rows' prices, less what all labels gain that gain anything, is at most what any local recoding costs: in one, each label
gains no more than that, and the rows' prices are the costs of their labels with these gains. A row that is left out
loses all, as one that is fully generalised.
"""
