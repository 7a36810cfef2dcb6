"""Whose the rows of well-known schemas are, as profiles find it: with the keys that these declare, and without."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from strategies import some

from ldiv_db.database.engine import Engine
from ldiv_db.database.sources import resolve_source
from ldiv_db.measuring.kinds_of_tables import OF_OTHERS, PUBLIC, place_tables
from ldiv_db.measuring.links import DECLARED, ProfiledTable, find_links
from ldiv_db.measuring.people_of_tables import leads_alike, tree_of
from ldiv_db.measuring.profile import profile_table

#: A shop of food: each order has a customer and one of nine employees, and one table's name has a blank.
NORTHWIND = """
CREATE TABLE categories (CategoryID INT PRIMARY KEY, CategoryName TEXT);
INSERT INTO categories SELECT i, 'category ' || i FROM range(1, 9) AS r(i);
CREATE TABLE region (RegionID INT PRIMARY KEY, RegionDescription TEXT);
INSERT INTO region SELECT i, 'region ' || i FROM range(1, 5) AS r(i);
CREATE TABLE territories (TerritoryID TEXT PRIMARY KEY, RegionID INT REFERENCES region (RegionID));
INSERT INTO territories SELECT CAST(10000 + i * 1543 AS TEXT), 1 + i % 4 FROM range(1, 54) AS r(i);
CREATE TABLE customers (CustomerID TEXT PRIMARY KEY, CompanyName TEXT, City TEXT);
INSERT INTO customers SELECT upper(substr(md5('c' || i), 1, 5)), 'company ' || i, 'city ' || i % 30
    FROM range(91) AS r(i);
CREATE TABLE employees (EmployeeID INT PRIMARY KEY, LastName TEXT, BirthDate DATE,
    ReportsTo INT);
INSERT INTO employees SELECT i, 'last ' || i, day('1950-01-01', i * 500), CASE WHEN i <> 2 THEN 2 END
    FROM range(1, 10) AS r(i);
CREATE TABLE employee_territories (EmployeeID INT REFERENCES employees (EmployeeID),
    TerritoryID TEXT REFERENCES territories (TerritoryID), PRIMARY KEY (EmployeeID, TerritoryID));
INSERT INTO employee_territories SELECT 1 + row_number() OVER (ORDER BY TerritoryID) % 9, TerritoryID
    FROM territories LIMIT 49;
CREATE TABLE shippers (ShipperID INT PRIMARY KEY, CompanyName TEXT);
INSERT INTO shippers SELECT i, 'ships ' || i FROM range(1, 4) AS r(i);
CREATE TABLE suppliers (SupplierID INT PRIMARY KEY, CompanyName TEXT);
INSERT INTO suppliers SELECT i, 'supplier ' || i FROM range(1, 30) AS r(i);
CREATE TABLE products (ProductID INT PRIMARY KEY, ProductName TEXT, SupplierID INT REFERENCES suppliers (SupplierID),
    CategoryID INT REFERENCES categories (CategoryID));
INSERT INTO products SELECT i, 'product ' || i, 1 + i % 29, 1 + i % 8 FROM range(1, 78) AS r(i);
CREATE TABLE orders (OrderID INT PRIMARY KEY, CustomerID TEXT REFERENCES customers (CustomerID),
    EmployeeID INT REFERENCES employees (EmployeeID), OrderDate DATE, ShipVia INT REFERENCES shippers (ShipperID));
INSERT INTO orders SELECT 10248 + i, upper(substr(md5('c' || i * 5 % 91), 1, 5)), 1 + i * 5 % 9,
    day('1996-07-04', i // 2), 1 + i % 3 FROM range(830) AS r(i);
CREATE TABLE "order details" (OrderID INT REFERENCES orders (OrderID), ProductID INT REFERENCES products (ProductID),
    Quantity INT, PRIMARY KEY (OrderID, ProductID));
INSERT INTO "order details" SELECT 10248 + i % 830, 1 + i * 31 % 77, 1 + i % 40 FROM range(2155) AS r(i);
"""
#: Who works where for how much: every employee of this sample is in one department, and some lead one.
EMPLOYEES = """
CREATE TABLE employees (emp_no INT PRIMARY KEY, birth_date DATE, gender TEXT, hire_date DATE);
INSERT INTO employees SELECT 10000 + i, day('1952-01-01', i * 20), 'MF'[1 + i % 2], day('1985-01-01', i * 7)
    FROM range(1, 151) AS r(i);
CREATE TABLE departments (dept_no TEXT PRIMARY KEY, dept_name TEXT);
INSERT INTO departments SELECT 'd00' || i, 'name ' || i FROM range(1, 10) AS r(i);
CREATE TABLE dept_emp (emp_no INT REFERENCES employees (emp_no), dept_no TEXT REFERENCES departments (dept_no),
    from_date DATE, PRIMARY KEY (emp_no, dept_no));
INSERT INTO dept_emp SELECT 10000 + i, 'd00' || 1 + i % 9, day('1986-01-01', i) FROM range(1, 151) AS r(i);
CREATE TABLE dept_manager (emp_no INT REFERENCES employees (emp_no), dept_no TEXT REFERENCES departments (dept_no),
    from_date DATE, PRIMARY KEY (emp_no, dept_no));
INSERT INTO dept_manager SELECT 10000 + i * 7, 'd00' || i, day('1990-01-01', i) FROM range(1, 10) AS r(i);
CREATE TABLE titles (emp_no INT REFERENCES employees (emp_no), title TEXT, from_date DATE);
INSERT INTO titles SELECT 10000 + i, 'title ' || i % 5, day('1986-01-01', i) FROM range(1, 151) AS r(i);
CREATE TABLE salaries (emp_no INT REFERENCES employees (emp_no), salary INT, from_date DATE,
    PRIMARY KEY (emp_no, from_date));
INSERT INTO salaries SELECT 10000 + i, 40000 + i * 17 % 900, day('1986-01-01', i + 365 * y)
    FROM range(1, 151) AS r(i), range(3) AS s(y);
"""
#: What happened to patients, whose visits not all events name, and a list of what can.
OMOP = """
CREATE TABLE concept (concept_id INT PRIMARY KEY, concept_name TEXT, domain_id TEXT);
INSERT INTO concept SELECT 4000000 + i * 37, 'concept ' || i, 'domain ' || i % 6 FROM range(200) AS r(i);
CREATE TABLE location (location_id INT PRIMARY KEY, state TEXT);
INSERT INTO location SELECT i, 'state ' || i % 20 FROM range(1, 41) AS r(i);
CREATE TABLE provider (provider_id INT PRIMARY KEY, specialty_concept_id INT REFERENCES concept (concept_id));
INSERT INTO provider SELECT i, 4000000 + i % 9 * 37 FROM range(1, 61) AS r(i);
CREATE TABLE person (person_id INT PRIMARY KEY, gender_concept_id INT REFERENCES concept (concept_id),
    year_of_birth INT, location_id INT REFERENCES location (location_id),
    provider_id INT REFERENCES provider (provider_id));
INSERT INTO person SELECT i, 4000000 + i % 2 * 37, 1930 + i * 7 % 80, 1 + i % 40, 1 + i % 60 FROM range(1, 201) r(i);
CREATE TABLE observation_period (observation_period_id INT PRIMARY KEY, person_id INT REFERENCES person (person_id),
    observation_period_start_date DATE);
INSERT INTO observation_period SELECT i, i, day('2010-01-01', i) FROM range(1, 201) AS r(i);
CREATE TABLE death (person_id INT PRIMARY KEY REFERENCES person (person_id), death_date DATE,
    cause_concept_id INT REFERENCES concept (concept_id));
INSERT INTO death SELECT i * 9, day('2020-01-01', i), 4000000 + i % 30 * 37 FROM range(1, 21) AS r(i);
CREATE TABLE visit_occurrence (visit_occurrence_id INT PRIMARY KEY, person_id INT REFERENCES person (person_id),
    visit_start_date DATE, provider_id INT REFERENCES provider (provider_id),
    preceding_visit_occurrence_id INT);
INSERT INTO visit_occurrence SELECT i, 1 + i % 200, day('2012-01-01', i), 1 + i * 11 % 60,
    CASE WHEN i > 200 THEN i - 200 END FROM range(1, 501) AS r(i);
CREATE TABLE condition_occurrence (condition_occurrence_id INT PRIMARY KEY,
    person_id INT REFERENCES person (person_id), condition_concept_id INT REFERENCES concept (concept_id),
    visit_occurrence_id INT REFERENCES visit_occurrence (visit_occurrence_id));
INSERT INTO condition_occurrence SELECT i, 1 + (1 + i % 500) % 200, 4000000 + i * 7 % 200 * 37, 1 + i % 500
    FROM range(1, 801) AS r(i);
CREATE TABLE drug_exposure (drug_exposure_id INT PRIMARY KEY, person_id INT REFERENCES person (person_id),
    drug_concept_id INT REFERENCES concept (concept_id),
    visit_occurrence_id INT REFERENCES visit_occurrence (visit_occurrence_id));
INSERT INTO drug_exposure SELECT i, 1 + (1 + i % 500) % 200, 4000000 + i * 11 % 200 * 37,
    CASE WHEN i % 3 > 0 THEN 1 + i % 500 END FROM range(1, 701) AS r(i);
"""
#: Players of baseball, their seasons and awards: each has three numbers, and teams are told by year and name.
LAHMAN = """
CREATE TABLE people (playerID TEXT PRIMARY KEY, birthYear INT, birthCountry TEXT, weight INT, retroID TEXT,
    bbrefID TEXT);
INSERT INTO people SELECT 'abcde' || i || '01', 1950 + i % 40, 'country ' || i % 8, 150 + i % 60, 'retro' || i * 3,
    'abcde' || i || '01' FROM range(1, 121) AS r(i);
CREATE TABLE teams (yearID INT, lgID TEXT, teamID TEXT, name TEXT, PRIMARY KEY (yearID, teamID));
INSERT INTO teams SELECT 1990 + y, 'AN'[1 + t % 2] || 'L', 'TM' || t, 'name ' || t
    FROM range(5) AS r(y), range(12) AS s(t);
CREATE TABLE batting (playerID TEXT REFERENCES people (playerID), yearID INT, stint INT, teamID TEXT, HR INT);
INSERT INTO batting SELECT 'abcde' || 1 + i % 120 || '01', 1990 + i % 5, 1, 'TM' || i % 12, i % 30
    FROM range(600) AS r(i);
CREATE TABLE salaries (yearID INT, teamID TEXT, playerID TEXT REFERENCES people (playerID), salary INT);
INSERT INTO salaries SELECT 1990 + i % 5, 'TM' || i % 12, 'abcde' || 1 + i % 120 || '01', 100000 + i * 7919 % 900000
    FROM range(300) AS r(i);
CREATE TABLE halloffame (playerID TEXT REFERENCES people (playerID), yearID INT, votes INT, inducted TEXT);
INSERT INTO halloffame SELECT 'abcde' || i * 5 || '01', 1989 + i, i * 31 % 200, 'YN'[1 + i % 2] FROM range(1, 7) r(i);
CREATE TABLE awardsplayers (playerID TEXT REFERENCES people (playerID), awardID TEXT, yearID INT);
INSERT INTO awardsplayers SELECT 'abcde' || 1 + i * 7 % 120 || '01', 'award ' || i % 9, 1990 + i % 5
    FROM range(90) AS r(i);
"""
DAY = "CREATE MACRO day(first, days) AS CAST(first AS DATE) + CAST(days AS INT);"
SCHEMAS = {
    "northwind": (
        NORTHWIND,
        "customers.CustomerID",
        {"orders": "CustomerID → customers.CustomerID", "order details": "OrderID → orders.OrderID"},
    ),
    "employees": (
        EMPLOYEES,
        "employees.emp_no",
        dict.fromkeys(("dept_emp", "dept_manager", "titles", "salaries"), "emp_no → employees.emp_no"),
    ),
    "omop": (
        OMOP,
        "person.person_id",
        {
            "observation_period": "person_id → person.person_id",
            "death": "person_id → person.person_id",
            "visit_occurrence": "person_id → person.person_id",
            "condition_occurrence": "visit_occurrence_id → visit_occurrence.visit_occurrence_id",
            "drug_exposure": "person_id → person.person_id",  # not every one is of a visit
        },
    ),
    "lahman": (
        LAHMAN,
        "people.playerID",
        dict.fromkeys(("batting", "salaries", "halloffame", "awardsplayers"), "playerID → people.playerID"),
    ),
}  # fmt: skip


#: The other tables: lists, which may be published as they are, and what tells of other people.
BESIDE = {
    "northwind": (
        {"categories", "region", "territories", "shippers", "suppliers", "products"},
        {"employees", "employee_territories"},
    ),
    "employees": ({"departments"}, set()),
    "omop": ({"concept", "location"}, {"provider"}),
    "lahman": (set(), set()),
}  # fmt: skip


#: What is asked in each pass.
FIRST = [(True, "northwind"), (False, "employees")]


def profiled(con: Any, sources: dict[str, str]) -> list[ProfiledTable]:
    engine, tables = Engine(con), list[ProfiledTable]()
    for name, source in sources.items():
        relation = resolve_source(engine, source, Path(), "table")
        tables.append(ProfiledTable.of(engine, name, source, relation, profile_table(engine, relation)))
    return tables


def found_in(con: Any, tables: list[ProfiledTable]) -> tuple[str, dict[str, str], set[str]]:
    """The key of people, of each table that leads there by which column to what, and the reasons."""
    engine = Engine(con)
    tree = tree_of(tables, find_links(engine, tables), lambda way, direct: leads_alike(engine, tables, way, direct))
    assert tree is not None
    links = {name: f"{link.child[1]} → {'.'.join(link.parent)}" for name, link in tree.links.items()}
    return ".".join(tree.people), links, {link.why for link in tree.links.values()}


def kinds_in(con: Any, tables: list[ProfiledTable]) -> tuple[set[str], set[str]]:
    links = find_links(Engine(con), tables)
    tree = tree_of(tables, links)
    assert tree is not None
    placed = place_tables(tables, links, tree)
    return tuple({name for name, of in placed.items() if of.kind == kind} for kind in (PUBLIC, OF_OTHERS))


def names_of(con: Any) -> list[str]:
    return [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_oid").fetchall()]


def undeclared(statements: str) -> str:
    without = re.sub(r"(?:,\s*)?PRIMARY KEY \([^)]*\)| PRIMARY KEY| REFERENCES \w+ \(\w+\)", "", statements)
    assert "REFERENCES" not in without and "PRIMARY" not in without
    return without


@pytest.mark.parametrize(
    ("declares", "name"), some([*FIRST, *sorted({*product((True, False), SCHEMAS)} - {*FIRST})], 2)
)
def test_rows_lead_to_whose_they_are(con: Any, name: str, declares: bool) -> None:
    statements, people, links = SCHEMAS[name]
    con.execute(DAY + (statements if declares else undeclared(statements)))
    tables = profiled(con, {table: f'"{table}"' for table in names_of(con)})
    for order in (tables, tables[::-1]):
        found = found_in(con, order)
        assert found[:2] == (people, links)
        assert found[2] == {DECLARED} or not declares
        lists, others = BESIDE[name]
        # No column is called after concepts alone.
        assert kinds_in(con, order) == (lists if declares else lists - {"concept"}, others)


@pytest.mark.parametrize("kind", some(["csv", "parquet"]))
@pytest.mark.parametrize("name", some(sorted(SCHEMAS, key=["employees"].count, reverse=True)))
def test_files_lead_to_whose_they_are(con: Any, name: str, kind: str, tmp_path: Path) -> None:
    """Nothing is declared of files, and columns of unlike types are held against one another."""
    statements, people, links = SCHEMAS[name]
    con.execute(DAY + statements)
    files = {table: str(tmp_path / f"{table}.{kind}") for table in names_of(con)}
    for table, file in files.items():
        con.execute(f"COPY \"{table}\" TO '{file}'")
    assert found_in(con, profiled(con, files))[:2] == (people, links)
