"""What commands print goes through one function, which escapes what a terminal would obey."""

from tests.house.test_trust import calls

PRINTS = {"typer.echo", "typer.secho", "click.echo", "click.secho", "builtins.print"}


def test_commands_print_by_one_function() -> None:
    found = {(file, name) for file, name, _ in calls() if name in PRINTS and "dev/" not in file}
    assert found == {("cli/output.py", "typer.secho"), ("cli/output.py", "typer.echo")}
