"""`python -m ldiv_db`: the command line."""

from ldiv_db.cli import main

if __name__ == "__main__":
    main()
