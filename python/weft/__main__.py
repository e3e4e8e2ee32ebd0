"""`python -m weft` is `weft`."""

from weft.cli.app import main

if __name__ == "__main__":
    main()
