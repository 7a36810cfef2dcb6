"""Drivers of Spark's in processes of their own: those that may die, and those whose session is of another kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

#: A driver of the Java machine that the tests have, with a session of its own: as on a cluster that outlives drivers.
ATTACHED = """
import os, signal, sys
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
gateway = launch_gateway()
java = gateway.jvm.org.apache.spark
context = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
conf = SparkConf(_jconf=context.getConf())
spark = SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf)).newSession()
"""
#: The driver dies at the n-th call of a function, before or after it.
DYING = """
import importlib, json
import ldiv_db
module, path, when, calls = sys.argv[1], sys.argv[2].split("."), sys.argv[3], int(sys.argv[4])
place = importlib.import_module(module)
for name in path[:-1]:
    place = getattr(place, name)
own = getattr(place, path[-1])
def die(*given, **more):
    global calls
    calls -= 1
    if calls == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    found = own(*given, **more)
    if calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(place, path[-1], die)
ldiv_db.run(spark, json.loads(sys.argv[5]), sys.argv[6])
"""


def attached(session: Any) -> dict[str, str]:
    """The environment of a driver of the same Java machine."""
    found = session.sparkContext._gateway.gateway_parameters
    return {**os.environ, "PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}


def kill_driver(session: Any, function: str, when: str, policy: str, folder: Path) -> None:
    """A run whose driver is killed `when` (before or after, or "after 3": the third call of) a function is called."""
    module, _, path = function.partition(":")
    moment, _, calls = when.partition(" ")
    given = [sys.executable, "-c", ATTACHED + DYING, module, path, moment, calls or "1", policy, str(folder)]
    ended = subprocess.run(given, capture_output=True, check=False, env=attached(session))
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
