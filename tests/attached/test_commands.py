"""Every command that takes a database takes one that DuckDB attaches, by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from conftest_attached import Home, PATIENTS

import ldiv_db
from ldiv_db.database.errors import PolicyError
