"""The entry of the command line, `ldiv` and `python -m ldiv_db`: it hears Ctrl-C before anything else is imported."""

from __future__ import annotations

from ldiv_db.database import interrupts as startup


def main() -> None:
    """Run the command line; never returns."""
    startup.hear()
    try:
        from ldiv_db.commands.cli import main as run  # noqa: PLC0415 - what takes long comes after what hears of Ctrl-C

        run()
    except KeyboardInterrupt:
        startup.leave()


if __name__ == "__main__":
    main()
