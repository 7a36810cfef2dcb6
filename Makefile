# What contributors run; `make` lists it. CONTRIBUTING.md says when.
DIST ?= dist
VERSION = $(shell sed -n 's/^version: //p' sql/dbt/dbt_project.yml)
.PHONY: help test whole mutants lint types site bench package
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

test: ## the tests of every change (README's command, without installing)
	python3 -m pytest -n auto --dist worksteal

whole: ## every case and every slow test, for hours: each night, and for changes of algorithms
	.ci/run whole

mutants: ## which one-line mistakes the tests catch, each night
	python3 -m tests.mutants

lint: ## rules of style, and the format
	ruff check .
	ruff format --check .

types: ## the types
	mypy

site: ## the pages of docs/ as a site, in site/
	zensical build --clean --strict

bench: ## what a run of BSGI costs; the others are beside it, in tests/benchmarks/
	python3 -m tests.benchmarks.bsgi

package: ## the dbt package as an archive with its own folder at the top, in dist/
	mkdir -p $(DIST)
	tar -czf $(DIST)/ldiv-$(VERSION).tar.gz --sort=name --owner=0 --group=0 --numeric-owner \
	    --transform 's,^\.,ldiv-$(VERSION),' -C sql/dbt . -C $(CURDIR) ./LICENSE
