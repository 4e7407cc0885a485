"""`python -m covaria` is the command `covaria`."""

from covaria.cli.app import main

if __name__ == "__main__":
    main()
