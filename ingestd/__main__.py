"""`python -m ingestd` is the command line."""

from ingestd.cli.main import main

main()
