"""What `ldiv doctor` says of this machine: what is there, and of the rest how to get it."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import ldiv_db
from ldiv_db.database.addresses import KINDS
from ldiv_db.running.machine import look_around

PACKAGE = Path(ldiv_db.__file__).parent


def by_name(machine):
    return {item.name: item for item in machine.items}


def test_every_extension_that_is_loaded_is_listed_and_every_extra_is_one():
    found = by_name(look_around())
    loaded = {kind.extension for kind in KINDS.values() if kind.extension}
    for module in (PACKAGE / "database").glob("*.py"):
        loaded |= set(re.findall(r'load_extension\([\w.]+, "(\w+)"', module.read_text(encoding="utf-8")))
    assert {name for name, item in found.items() if item.kind == "extension"} == loaded
    extras = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for item in found.values():
        asked = re.fullmatch(r"pip install 'ldiv-db\[(\w+)\]'", item.get)
        assert asked is None or any(wanted.startswith(item.name) for wanted in extras[asked[1]])


def test_what_is_here_is_told_from_what_is_not(call, tmp_path, monkeypatch):
    """A package that Python finds; a program, and an extension's wheel, that are put there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not by_name(look_around())["java"].here
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setattr("ldiv_db.database.connections.wheel_of", lambda name: tmp_path if name == "delta" else None)
    ends = call("doctor", "--json")
    here = {item["name"]: bool(item["here"]) for item in ends.json["items"]}
    assert (ends.code, here["java"], here["delta"]) == (0, True, True)
    modules = {"pandas": "pandas", "networkx": "networkx", "pyspark": "pyspark", "mcp": "mcp"}
    assert {name: here[name] for name in modules} == {name: find_spec(own) is not None for name, own in modules.items()}
    lacking = [line for line in call("doctor").out.splitlines() if line.startswith("not here: ")]
    assert len(lacking) == sum(not there for there in here.values())
