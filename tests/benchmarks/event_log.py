"""What Spark's event log says of each stage of a run: what it read, shuffled, spilled, wrote and sent to the driver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: What is added up over the tasks of a stage, by its way through a task's metrics in the log.
_SUMS = {
    "input_bytes": (("Input Metrics", "Bytes Read"),),
    "input_rows": (("Input Metrics", "Records Read"),),
    "output_bytes": (("Output Metrics", "Bytes Written"),),
    "shuffle_read_bytes": (("Shuffle Read Metrics", "Remote Bytes Read"), ("Shuffle Read Metrics", "Local Bytes Read")),
    "shuffle_write_bytes": (("Shuffle Write Metrics", "Shuffle Bytes Written"),),
    "shuffle_write_rows": (("Shuffle Write Metrics", "Shuffle Records Written"),),
    "spilled_memory_bytes": (("Memory Bytes Spilled",),),
    "spilled_disk_bytes": (("Disk Bytes Spilled",),),
    "result_bytes": (("Result Size",),),
    "task_ms": (("Executor Run Time",),),
    "collector_ms": (("JVM GC Time",),),
}
#: Settings under which the log is one file of plain lines.
SETTINGS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def stages_of(log: Path) -> list[dict[str, Any]]:
    """The stages in the order in which they ended: stage, attempt, name, tasks, failed_tasks, seconds and the sums.

    `name` is the description of its job where it has one, otherwise where it was called.
    """
    stages: dict[tuple[int, int], dict[str, Any]] = {}
    described: dict[tuple[int, int], str] = {}
    ended = []
    for event in _events(log):
        if event["Event"] == "SparkListenerStageSubmitted":
            words = event.get("Properties", {}).get("spark.job.description")
            described |= {_key(event["Stage Info"]): words} if words else {}
        elif event["Event"] == "SparkListenerTaskEnd":
            _add(stages.setdefault(_key(event), _nothing()), event)
        elif event["Event"] == "SparkListenerStageCompleted":
            ended.append(_ended(event["Stage Info"], stages.setdefault(_key(event["Stage Info"]), _nothing())))
    for stage in ended:
        stage["name"] = described.get((stage["stage"], stage["attempt"]), stage["name"])
    return ended


def totals_of(stages: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The sums over all stages, and how many stages, tasks and failed tasks there were."""
    found = {name: sum(stage[name] for stage in stages) for name in (*_SUMS, "tasks", "failed_tasks")}
    return found | {"stages": len(stages)}


def _events(log: Path) -> Iterator[dict[str, Any]]:
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _key(event: Mapping[str, Any]) -> tuple[int, int]:
    return event["Stage ID"], event["Stage Attempt ID"]


def _nothing() -> dict[str, Any]:
    return {"tasks": 0, "failed_tasks": 0} | dict.fromkeys(_SUMS, 0)


def _add(stage: dict[str, Any], event: Mapping[str, Any]) -> None:
    stage["tasks"] += 1
    stage["failed_tasks"] += event["Task Info"]["Failed"]
    metrics = event.get("Task Metrics")  # a task that was killed may have none
    for name, ways in _SUMS.items() if metrics else ():
        stage[name] += sum(_follow(metrics, way) for way in ways)


def _follow(metrics: Any, way: Sequence[str]) -> int:
    for step in way:
        metrics = metrics[step]
    return int(metrics)


def _ended(info: Mapping[str, Any], sums: dict[str, Any]) -> dict[str, Any]:
    seconds = (info["Completion Time"] - info["Submission Time"]) / 1000
    names = {"stage": info["Stage ID"], "attempt": info["Stage Attempt ID"], "name": info["Stage Name"]}
    return names | {"seconds": seconds} | sums
