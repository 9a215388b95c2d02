"""``python -m pgsimhash`` is the command ``pgsimhash``."""

from pgsimhash.cli import main

if __name__ == "__main__":
    main()
