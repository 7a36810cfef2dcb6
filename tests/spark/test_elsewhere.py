"""Sessions of other kinds than those of the other tests: Spark Connect, and executors in processes of their own."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

CONNECT = ("grpc", "grpc_status", "google.rpc", "zstandard")


def missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except ModuleNotFoundError:  # a package around it
        return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["connect", "local-cluster"])
def test_runs_there_are_those_of_an_embedded_database(kind, tmp_path):
    lacks = [name for name in CONNECT if missing(name)]
    if kind == "connect" and lacks:
        pytest.skip(f"Spark Connect is not tested: {', '.join(lacks)} is not installed")
    program = [sys.executable, str(Path(__file__).with_name("elsewhere.py")), kind, "1", "3"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr[-3000:]
