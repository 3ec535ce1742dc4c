"""Loads a configuration from a file and the environment, and reports all of its errors at once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import ValidationError

from ingestd.config.allowed_keys import shape_of
from ingestd.config.checks import check
from ingestd.config.document import Document, Tree, read_document
from ingestd.config.environment import apply_environment
from ingestd.config.model import Config
from ingestd.config.secret_resolution import resolve_references
from ingestd.config.validation_errors import refuse, validation_errors_of


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A validated configuration and its source.

    `document` holds the texts as given, with the environment applied and references unresolved;
    relative paths are resolved against `folder`.
    """

    config: Config
    document: Document
    folder: FilePath


def load_config(path: FilePath, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    """Load and check a configuration. Raises ConfigError with every error and its location.

    Values of the environment override those of the file. Only the file system is accessed.
    """
    variables = os.environ if environ is None else environ
    return load_document(read_document(path), path.absolute().parent, variables)


def load_document(
    document: Document, folder: FilePath, variables: Mapping[str, str]
) -> LoadedConfig:
    """Validate a parsed document as `load_config` does.

    Variables of the environment are applied to the document in place.
    """
    shape = shape_of(Config)
    issues = apply_environment(document, shape, variables)
    tree, unresolved = resolve_references(document, variables, folder)
    issues += unresolved
    try:
        config = Config.model_validate(_without_nulls(tree))
    except ValidationError as error:
        refuse(document.name, issues + validation_errors_of(error, document, shape))
        raise
    refuse(document.name, issues + check(config, document))
    return LoadedConfig(config, document, folder)


def _without_nulls(tree: Tree) -> Tree:
    """Return a tree without the keys that have no value."""
    if isinstance(tree, dict):
        return {name: _without_nulls(child) for name, child in tree.items() if child is not None}
    return tree
