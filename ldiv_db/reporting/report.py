"""Reports as callers ask for them: worked out on their connection, written to files, and read again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.attacking.matching import NO_CLASS
from ldiv_db.database.attach import takes_database
from ldiv_db.database.context import working_engine
from ldiv_db.database.documents import NESTED_BYTES, read_text
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.requests import asks
from ldiv_db.display import Part, Printed
from ldiv_db.policy.reading import counted_there
from ldiv_db.reporting.evidence import Document, document_of
from ldiv_db.reporting.page import page_of, write_pdf
from ldiv_db.reporting.request import ReportRequest
from ldiv_db.reporting.subject import opened
from ldiv_db.reporting.table_text import notes_text

#: The endings of the files that a report may go to.
ENDINGS = (".html", ".json", ".pdf")


@dataclass(frozen=True)
class Report(Printed):
    """The evidence on a release: `document` holds all numbers and words of the page."""

    document: Document

    @property
    def holds(self) -> bool:
        """True if the release meets its requirements, and no attack gained more than they promise."""
        said = self.document["statement"]
        return bool(said["holds"]) and said["promises_hold"] is not False

    def as_dict(self) -> Document:
        return self.document

    def text(self, files: Sequence[Path] = (), **how: Any) -> Iterator[Part]:
        said: dict[str, Any] = self.document["statement"]
        meets = {True: "meets its requirements", False: "does not meet its requirements", None: "is not judged"}
        yield f"{said['table']}: {meets[said['holds']]}"
        source = self.document["source"] or {}
        yield from notes_text([*self.document["audit"]["attributes"][0]["warnings"], *source.get("kept", ())])
        if said["promises_hold"] is False:
            yield "attacks gain more than is promised: see section 9"
        yield from (f"warning: {line}" for line in self.document["not_tried"] if NO_CLASS in line)
        risk, threshold = said["largest_risk"], self.document["identifiability"]["threshold"]
        if risk is not None:
            bound = self.document["identifiability"]["risks"][0]["bound"]
            promised = "" if bound is None else f", the requirements promise at most {bound:.4g}"
            uncounted = f" (people cannot be counted{promised})" if said["at_least"] else ""
            figure = f"{'at least ' if uncounted else ''}{risk:.4g}{uncounted}"
            figure += " (of people)" if said["counts"] == "people" else ""
            side = {True: "within", False: "above", None: "undecided against"}[said["within_threshold"]]
            yield f"largest risk of re-identification {figure}, {side} the threshold of {threshold:g}"
        for file in files:
            yield f"written to {file}: {file.stat().st_size:,} bytes"

    def html(self) -> str:
        """The page: one file that asks for nothing else, the same for the same document."""
        return page_of(self.document)

    def save(self, path: str | Path) -> None:
        """Write the report, in the form that the ending says (.html, .json, .pdf), in place of a file that is there.

        Raises PolicyError for another ending, and for a PDF where no converter is installed; OSError if the file cannot
        be written.
        """
        path = Path(path)
        refuse_ending(path)
        if path.suffix.lower() == ".pdf":
            write_pdf(self.html(), path)
        else:
            _write(path, self.html() if path.suffix.lower() == ".html" else self.json())

    def json(self) -> str:
        """The document as JSON text, for `verify`."""
        return json.dumps(self.document, indent=2, ensure_ascii=False) + "\n"


def refuse_ending(path: Path) -> None:
    """Raise PolicyError for a file of no known form, or in no folder."""
    if path.suffix.lower() not in ENDINGS:
        raise PolicyError([Problem("out", f"{path} has none of the endings {', '.join(ENDINGS)}")])
    if not path.parent.is_dir():
        raise PolicyError([Problem("out", f"there is no folder {path.parent}", "make it, or name another")])


@takes_database(read_only=True, of_warehouse=counted_there)
@asks(ReportRequest)
def report(con: Any, request: ReportRequest) -> Report:
    """Report on a release (a table, or the id of a run) for the person who signs it: numbers, words and charts.

    Columns and requirements are those of `policy`, or `qi`, `sensitive`, `require` and `class_column`. If the policy's
    source can be read, the report has what was lost, and attacks with people of the source, or of `known` and
    `population`. `threshold` is a risk (0..1). The context is the policy's, overridden by `context` (a mapping or a
    file), and that by keywords with the names of its keys, such as `recipient`. A `final` report is refused while a key
    is blank.

    The Report has `holds`, `document`, `html()` and `save(path)`; nothing is raised if the audit fails.
    """
    asked = request.question()
    listener = request.heard
    working = working_engine(con, listener, request.catalog)
    with working as engine, opened(engine, listener, request.table, asked) as subject:
        return Report(document_of(subject))


def read_report(path: Path) -> Document:
    """The document in a file, as `save` wrote it or a command printed it; raises PolicyError if it is none."""
    try:
        found = json.loads(read_text(path, NESTED_BYTES))
    except OSError as error:
        raise PolicyError([Problem("verify", f"cannot read {path}: {error.strerror}")]) from error
    except ValueError as error:
        what = "is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
        raise PolicyError([Problem("verify", f"{path} {what}", "give what `ldiv report --json` printed")]) from error
    return {key: value for key, value in found.items() if key != "schema_version"} if isinstance(found, dict) else {}


def _write(path: Path, text: str) -> None:
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mask = os.umask(0)  # which can be read only by setting it
        os.umask(mask)
        Path(part).chmod(0o666 & ~mask)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
