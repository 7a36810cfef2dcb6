"""Sets of codes as bits of numbers: a union is their bitwise OR, and its size how many bits that has."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.names import NamedAfter

#: The codes that a word of a set has, as the bits of one number; sets of more words are measured as spans of codes.
WORD_BITS, MOST_WORDS = 64, 8


@dataclass(frozen=True)
class SetWord:
    """Some codes of sets, from `first` to `last`, as bits of a number: of a row one at most, of a class all it has."""

    name: str
    first: int

    bits = NamedAfter("{0.name}_bits")
    #: Those that one row of a class alone has.
    once = NamedAfter("{0.name}_once")
    #: Those that a class has without a row.
    rest = NamedAfter("{0.name}_rest")

    @property
    def last(self) -> int:
        return self.first + WORD_BITS - 1

    def bits_beyond(self, low: int, high: int) -> int:
        """The bits of the codes of this word that are not from `low` to `high`."""
        return sum(1 << n for n in range(WORD_BITS) if not low <= self.first + n <= high)


def words_of(name: str, codes: int) -> tuple[SetWord, ...]:
    """The words of a set of so many codes from 0 on, by the name of their column; none if it has more than the most."""
    words = -(-codes // WORD_BITS)
    return tuple(SetWord(f"{name}_{n}", n * WORD_BITS) for n in range(words)) if words <= MOST_WORDS else ()
