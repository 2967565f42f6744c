"""``python -m vertikal``: the same as the command ``vertikal``."""

from vertikal.cli import main

if __name__ == "__main__":
    main(prog_name="vertikal")
