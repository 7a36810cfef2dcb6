"""What a database server says where something fails, in sentences of ours.

Its own words may quote a row, or a part of a password. So none is handed on: each form that is known has a sentence.
"""

from __future__ import annotations

import re

#: What the server says, and what we say. A group stands for a name of a table or schema, which is no secret.
_FORMS = (
    (r"permission denied for (schema|table|database|view|sequence|function) (\S+)", "permission denied for {} {}"),
    (r"must be owner of (\w+) (\S+)", "the user is not the owner of {} {}"),
    (r"password authentication failed|no password supplied|role \".*\" does not exist|no pg_hba.conf entry"
     r"|Access denied for user|Peer authentication failed", "the server refuses the user or the password"),
    (r"database \".*\" does not exist|Unknown database", "the server has no database of that name"),
    (r"definition of service .* not found|service file .* not found", "the service is in no service file"),
    (r"could not translate host name|Unknown (?:MySQL )?server host", "the server's name is not known here"),
    (r"(?<!SSL )Connection refused|Is the server running|No such file or directory|Can't connect to",
     "no server answers"),
    (r"timeout expired|Connection timed out|could not receive data", "the server does not answer in time"),
    (r"(?:missing \"=\" after|invalid connection option|unterminated quoted string|invalid URI|invalid port)",
     "the address is none that the server's client can read"),
    (r"lock timeout|database (?:table )?is locked|Lock wait timeout",
     "another session holds a lock that this step needs, and did not let go in time"),
    (r"no database was provided", "its address names no database, as in mysql:host=db database=clinic"),
    (r"statement timeout|query execution was interrupted", "the server ended the statement: it took too long"),
    (r"could not serialize access|deadlock detected|could not obtain lock|tuple concurrently updated"
     r"|duplicate key value violates unique constraint \"pg_", "another session writes the same at the same time"),
    (r"No space left on device|[Dd]isk (?:quota|full)|could not extend file|database or disk is full",
     "there is no room on the disk of the server"),
    (r"terminating connection|server closed the connection|connection to server was lost|SSL connection has been"
     r"|[Cc]onnection (?:is closed|reset|not open)|no connection to the server|Lost connection|Broken pipe"
     r"|the connection has been closed", "the server ended the connection"),
    (r"database system is (?:starting up|shutting down|in recovery mode|not (?:yet )?accepting)",
     "the server is starting or stopping"),
    (r"too many (?:clients|connections)|remaining connection slots", "the server takes no more connections"),
    (r"in a read-only transaction|attempt to write a readonly database|readonly database|read-only",
     "the database is open read-only, this step writes"),
    (r"other objects depend on it", "other objects of the database depend on the table: drop these first"),
    (r"(?:relation|table|schema) \"[^\"]*\" already exists", "a table or schema of that name was made meanwhile"),
    (r"(?:relation|schema) \"[^\"]*\" does not exist", "a table or schema that was there is gone"),
    (r"file is not a database|file is encrypted|database disk image is malformed",
     "the file is not a database of that kind"),
    (r"unable to open database", "the file cannot be opened"),
    (r"Mismatch Type Error", "a column holds a value of another type than it declares, give its type in a view"),
)  # fmt: skip
#: The sentence of these is that of a conflict: to try again may help.
CONFLICT = "another session writes the same at the same time"
#: An option that a pool of connections in front of a server does not know.
_NO_OPTIONS = re.compile(r"unsupported startup parameter")


def sentence_of(text: str) -> str | None:
    """What an error of a server or of a foreign file means, None for a form that is not known."""
    for form, sentence in _FORMS:
        match = re.search(form, text)
        if match:
            return sentence.format(*(word.strip("\"';,.") for word in match.groups()))
    return None


def refuses_options(text: str) -> bool:
    """Whether the connection was refused for the options that we send along."""
    return bool(_NO_OPTIONS.search(text))
