"""`python -m ottla`: the same as the command `ottla`."""

from ottla.cli.main import main

main()
