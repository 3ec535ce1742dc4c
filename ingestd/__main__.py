"""Run the command line by `python -m ingestd`."""

from ingestd.cli.main import main

main()
