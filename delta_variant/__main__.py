"""Run the command line as `python -m delta_variant`."""

from .cli import main

if __name__ == "__main__":
    main()
