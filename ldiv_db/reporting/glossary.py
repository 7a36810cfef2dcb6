"""The words of a report, for who signs it."""

from __future__ import annotations

#: Each word with what it means, in the order of the alphabet.
GLOSSARY = (
    (
        "Audit",
        "The check of the published table itself: its classes are counted anew from what is published, and judged.",
    ),
    ("Class", "The rows of the release with equal quasi-identifiers (equivalence class)."),
    (
        "Control",
        "People like those in the release who are not in it. What succeeds on them too is no risk of the release.",
    ),
    ("Identifiability", "How likely somebody is recognised, given what is released, to whom, and what they know."),
    ("Inference", "Deducing a sensitive value of a person from the release (WP216)."),
    ("Journalist risk", "The risk that a row is recognised by who does not know whether a person is in the release."),
    ("Linkability", "Linking two records of the same person (WP216)."),
    ("LM", "Loss metric (Iyengar 2002): the share of a column's values that a published label covers, 0 to 1."),
    ("Margin", "By how much the worst class exceeds what a requirement asks for; negative where it is violated."),
    ("Marketer risk", "The share of rows that are recognised by who matches all of them at once."),
    ("Posterior", "How likely a sensitive value of a person is after the release was seen."),
    (
        "Prosecutor risk",
        "The risk that a row is recognised by who knows that a person is in the release: 1 / class size.",
    ),
    (
        "Quasi-identifier",
        "A column that others may know of a person, and that tells people apart together with others.",
    ),
    ("Sensitive attribute", "A column whose values nobody may learn of a person."),
    ("Singling out", "Isolating a record that belongs to one person (WP216)."),
    ("Suppressed", "Left out of the release, or published without values."),
)
