"""Mistakes that tests are measured by: each can still be made, and breaks a promise that is written down."""

import ast

import jinja2
import pytest

from tests.mutants.mistakes import ROOT, Mistake, read_mistakes

MISTAKES = read_mistakes()


def test_each_mistake_can_still_be_made_and_is_no_error_of_syntax():
    for mistake in MISTAKES:
        wrong = mistake.applied((ROOT / mistake.file).read_text(encoding="utf-8"))
        if mistake.file.endswith(".py"):
            ast.parse(wrong)
        elif mistake.file.endswith(".j2"):
            jinja2.Environment(extensions=["jinja2.ext.do"]).parse(wrong)


def test_each_mistake_names_its_promise_and_rooms_of_tests_that_are_there():
    for mistake in MISTAKES:
        assert mistake.promise.endswith("."), mistake.name
        assert mistake.tests, mistake.name
        for name in mistake.tests:  # a file of tests may be called otherwise by now: then the whole pass is run
            assert (ROOT / name).parent.is_dir(), f"{mistake.name}: {name}"


def test_a_line_that_is_there_twice_or_not_at_all_is_refused():
    mistake = Mistake("n", "f.py", "a = 1", "a = 2", "", ())
    assert mistake.applied("if x:\n    a = 1\n") == "if x:\n    a = 2\n"
    for text in ("a = 1\na = 1\n", "a = 3\n"):
        with pytest.raises(ValueError, match=r"n: f\.py has [02] lines"):
            mistake.applied(text)
