"""`ingestd config`: the JSON Schema of configuration files."""

import json

from ingestd.cli.groups import group
from ingestd.cli.output import say
from ingestd.config.json_schema import config_schema

config = group(
    "config",
    "Print the JSON Schema of configuration files.",
    "ingestd config schema > ingestd.schema.json",
)


@config.callback()
def _config() -> None:
    """Keep `schema` a subcommand although it is the only one."""


@config.command("schema")
def schema() -> None:
    """Print the JSON Schema of configuration files, for editors that complete and check keys.

    A YAML language server uses the schema for files that begin with
    `# yaml-language-server: $schema=ingestd.schema.json`.

    **Examples**

    ingestd config schema > ingestd.schema.json
    """
    say(json.dumps(config_schema(), indent=2))
