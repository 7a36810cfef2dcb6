"""Every block of every page: commands are run, outputs compared, policies read by the readers of the product."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer
import yaml

import ldiv_db
from ldiv_db.commands.cli import COMMANDS, command_of
from ldiv_db.policy.context import read_context
from tests.docs.pages import CLINIC, DOCS, PAGES, ROOT, Block, Reader, blocks, differs, read, words_of
from tests.strategies import some

#: Pages whose blocks other tests run, where what they need is installed.
ELSEWHERE = {
    "docs/how-to/dbt.md": "tests/dbt_package/test_docs.py",
    "docs/explanation/guarantees.md": "tests/docs/test_guarantees.py",
    "docs/how-to/orchestrators.md": "tests/integrations/pages.py",
}
#: Which exceptions typer raises for wrong words; it may have a click of its own.
USAGE = tuple(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
#: What a fragment of a policy is added to, to be read.
BASE = {
    "source": "patients",
    "target": "published.patients",
    "quasi_identifiers": {"age": {"numeric": True}},
    "sensitive": ["disease"],
    "require": [{"unique_distinct": 3}],
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


HERE = [page for page in PAGES if name_of(page) not in ELSEWHERE]
#: The examples of commands are about files of the reader: they are read, and not run.
FOLLOWED = [page for page in HERE if name_of(page) != "docs/reference/commands.md"]
#: Pages whose commands take seconds at most.
QUICK = ("check-a-table", "taxonomies")
SOON, LATER = ([page for page in FOLLOWED if (page.stem in QUICK) is quick] for quick in (True, False))


@pytest.mark.parametrize("page", some(pytest.param(page, id=name_of(page)) for page in [*SOON, *LATER]))
def test_a_page_can_be_followed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    if CLINIC in page.read_text(encoding="utf-8"):
        reader.start_clinic()
    ran = False
    for block in read(page):
        if block.title:
            reader.write(block)
        elif block.language in ("sh", "python"):
            ran = block.needs is None
            if ran:
                reader.run(block)
        elif block.language == "text" and ran and block.needs is None:
            line = differs(block.text, reader.printed)
            assert line is None, f"line {block.line}: not printed: {line}\n{reader.printed}"


@pytest.mark.parametrize("page", HERE, ids=name_of)
def test_blocks_are_what_they_say(page: Path) -> None:
    """Each block has a language, and what it holds can be read as that."""
    for block in read(page):
        assert block.language in READERS, f"line {block.line}: a block without a language that this test knows"
        READERS[block.language](block)


def is_command(block: Block) -> None:
    for command in block.commands:
        if command.startswith("ldiv "):
            parse_command(command)
        elif "-m tests.benchmarks." in command:
            parse_benchmark(command)


def parse_command(command: str) -> None:
    """Raises a usage error where a command, an option or an argument is none of `ldiv`'s."""
    words = words_of(re.split(r"\s[|>]|&&", command)[0])[1:]
    if words[0].startswith("-"):
        return
    assert words[0] in COMMANDS, command
    parse(command_of(words[0]), words[1:])


def parse(found: Any, words: list[str]) -> None:
    """As click reads words of a command or of one of its groups; files need not be there."""
    if hasattr(found, "commands"):
        is_named = words[0] in found.commands  # of a group that lists what its first word names, it may be left out
        parse(found.commands[words[0] if is_named else "list"], words[is_named:])
    else:
        with suppress(typer.Exit):  # an option that prints something, and no more
            found.make_context("ldiv", list(words))


def parse_benchmark(command: str) -> None:
    words = words_of(command)
    place = next(number for number, word in enumerate(words) if word.startswith("tests.benchmarks."))
    parse(typer.main.get_command(import_module(words[place]).app), words[place + 1 :])


def is_policy(block: Block) -> None:
    """A policy, a part of one, a context, or another program's YAML, which need only be YAML."""
    document = yaml.safe_load(block.text)
    if block.title == "context.yml":
        read_context(document)
        return
    if not isinstance(document, dict) or not set(document) <= set(ldiv_db.Policy.model_fields) | {"sensitive"}:
        assert block.needs, "no policy: say what it needs"
        return
    whole = "tables" in document or ("source" in document and "quasi_identifiers" in document)
    ldiv_db.parse_policy(document if whole else {**BASE, **document})


def is_python(block: Block) -> None:
    ast.parse(block.text)


def is_json(block: Block) -> None:
    json.loads(block.text)


def is_anything(block: Block) -> None:
    """Output, and files of other programs: `test_a_page_can_be_followed` compares the former, and writes the latter."""
    assert block.text.strip()


READERS = {
    "sh": is_command,
    "yaml": is_policy,
    "python": is_python,
    "json": is_json,
    "text": is_anything,
    "csv": is_anything,
    "sql": is_anything,
    "toml": is_anything,
}


def test_pages_that_are_tested_elsewhere_are_there() -> None:
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).is_file() and (ROOT / test).is_file()


def test_most_blocks_are_run() -> None:
    """A `needs` is for what cannot be here, not for what is hard to get right."""
    pages = [page for page in HERE if page.parent.name == "how-to" or page.stem == "tutorial"]
    commands = [block for page in pages for block in read(page) if block.language in ("sh", "python")]
    assert len([block for block in commands if block.needs is None]) >= len(commands) * 0.75


@pytest.mark.slow
def test_a_script_that_fails_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Reader(tmp_path).start_clinic()
    (script,) = [block.text for block in read(DOCS / "how-to" / "python.md") if '"k:3"' in block.text]
    with pytest.raises(SystemExit):
        exec(compile(script.replace('"k:3"', '"k:100"'), "python.md", "exec"), {})
    with duckdb.connect("clinic.duckdb") as con, pytest.raises(duckdb.CatalogException):
        con.execute("FROM published.checked")


def test_a_line_that_is_not_printed_is_found() -> None:
    printed = "one  \ntwo 2.5\nthree\n"
    assert differs("one\n…\nthree", printed) is None and differs("two …", printed) is None
    assert differs("three\none", printed) == "one" and differs("two 2.6", printed) == "two 2.6"


def test_comments_say_how_a_block_is_tested() -> None:
    text = (
        '<!-- needs: Spark -->\n```sh\na\n```\n\n<!-- exits: 1 -->\n\n```sh\nb\n```\n\n```yaml title="p.yml"\nc\n```\n'
    )
    spark, fails, file = blocks(text)
    assert (spark.needs, spark.line) == ("Spark", 2) and fails.exits == 1 and (file.title, file.exits) == ("p.yml", 0)


def test_what_is_misspelt_is_found() -> None:
    for command in ("ldiv nothing", "ldiv run a.duckdb p.yml --jsn", "ldiv sql recode a.duckdb"):
        with pytest.raises((*USAGE, AssertionError)):
            parse_command(command)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


#: What a page has a developer call, of some folders or files; with `…` it is no command yet.
CALLS = sorted(
    {
        found
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for found in re.findall(r"((?:\w+=\d+ )?python3? -m pytest [^`\n…]*\btests/[^`\n…]*)(?=[`\n])", text)
    }
)


def test_pages_have_tests_called() -> None:
    assert any("-k" in call for call in CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_a_command_that_runs_tests_selects_some(call: str) -> None:
    words = iter(words_of(call.partition(" pytest ")[2]))
    texts, named, marked = [], "", ""
    for word in words:
        if word == "-k":
            named = next(words)
        elif word == "-m":
            marked = next(words)
        elif not word.startswith("-"):
            place = ROOT / word
            texts += [
                path.read_text(encoding="utf-8") for path in ([place] if place.is_file() else place.rglob("*.py"))
            ]
    assert re.search(rf"^def test_\w*{named}", "".join(texts), re.MULTILINE)
    assert any(f"mark.{marked}" in text for text in texts) or not marked


def test_every_page_is_in_the_navigation() -> None:
    tomllib = import_module("tomllib")
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

    def files(entry: Any) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        else:
            for part in entry.values() if isinstance(entry, dict) else entry:
                yield from files(part)

    found = sorted(files(settings["nav"]))
    assert found == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
