"""The entry of the command line, `ldiv` and `python -m ldiv_db`: it listens for Ctrl-C before it imports the rest."""

from __future__ import annotations

from ldiv_db.database import interrupts


def main() -> None:
    """Run the command line; never returns."""
    interrupts.listen_for_interrupts()
    try:
        from ldiv_db.commands.cli import main as run  # noqa: PLC0415 - it takes long, so Ctrl-C is listened for first

        run()
    except KeyboardInterrupt:
        interrupts.leave()


if __name__ == "__main__":
    main()
