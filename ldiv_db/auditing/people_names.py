"""Names of columns that say whose a row is, in the languages of the world's larger tables.

A name is taken apart into words (`clientIp`, `license_plate`), and a word from what numbers it (`kunden-nummer`,
`user-name`). Every word must be known (`people_names.yml`), so that `customer_type` and `product_name` are none of
these. Where scripts put no blanks between words, a known word may stand anywhere in the name.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text


def _plain(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold()).replace("ı", "i")
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


_WORDS: dict[str, str] = parse_document(read_text(Path(__file__).with_suffix(".yml"), POLICY_BYTES))
_PEOPLE, _NAMES, _AROUND, _DIALLED, _WITH_MANY = (
    frozenset(_plain(_WORDS[key]).split()) for key in ("people", "names", "beside", "phones", "things")
)
_PARTS = frozenset(unicodedata.normalize("NFC", _WORDS["anywhere"]).split())
_STARTS, _ENDS = _WORDS["starts"].split(), _WORDS["ends"].split()


def tells_one(name: str) -> bool:
    """True if a column of that name says whose a row is: rows of one value are one person's."""
    return _is_of(name, _PEOPLE) or any(part in unicodedata.normalize("NFC", name) for part in _PARTS)


def tells_somebody(name: str) -> bool:
    """True if it says who somebody is, by a name or an address that several people may share as well."""
    return tells_one(name) or _is_of(name, _NAMES)


def is_dialled(name: str) -> bool:
    """True if it says whose a row is by a number to be dialled alone, which has more than a few digits."""
    return tells_one(name) and _is_of(name, _DIALLED) and not _is_of(name, _PEOPLE - _DIALLED)


def tells_thing(name: str) -> bool:
    """True if a word of it is for what several people have: rows of one value are then of them all."""
    return not tells_somebody(name) and not _WITH_MANY.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_\d]+", _plain(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)))


def _is_of(name: str, known: frozenset[str]) -> bool:
    """True if all words of a name are known, and one is of `known`."""
    words = _words(name)
    core = "".join(word for word in words if word not in _AROUND)
    return (
        "".join(words) in known
        or (len(words) > 1 and core in known)
        or (
            any(_stem(word, known) for word in words)
            and all(word in _AROUND or _stem(word, _PEOPLE | _NAMES) for word in words)
        )
    )


def _stem(word: str, known: frozenset[str]) -> bool:
    """True if a word is known, as it is or without what numbers it."""
    while word not in known:
        start = next((start for start in _STARTS if word.startswith(start) and word[len(start) :] in known), None)
        if start is not None:
            return True
        end = next((end for end in _ENDS if len(word) > len(end) and word.endswith(end)), None)
        if end is None:
            return False
        word = word.removesuffix(end)
    return True


def may_say_whose(name: str) -> bool:
    """True if a column that is not published may say whose a row is, for all that its name says."""
    return not tells_somebody(name) and not tells_thing(name)
