"""The options of a catalog under Paimon's names, and the keys that each metastore has."""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath

from ingestd.config.model import CatalogSection
from ingestd.paimon.catalog.base import CASE_SENSITIVE
from ingestd.paimon.catalog.jdbc import PASSWORD, URI, USER
from ingestd.paimon.catalog.rest_auth import TOKEN, TOKEN_FILE

_METASTORES_OF_KEY: Mapping[str, tuple[str, ...]] = {
    "uri": ("hive", "jdbc", "rest"),
    "warehouse": ("rest",),
    "token": ("rest",),
    "auth-file": ("rest",),
    "user": ("jdbc",),
    "password": ("jdbc",),
    "options": ("hive", "jdbc", "rest"),
}


def catalog_options(section: CatalogSection, folder: FilePath) -> dict[str, str]:
    """Return the options of a catalog from its section, under Paimon's names.

    The only option of `filesystem` is `case-sensitive`. Every other metastore has the `options` of
    the section, and those of its own keys that are set. The file of a token is relative to
    `folder`.
    """
    if section.metastore == "filesystem":
        return {CASE_SENSITIVE: str(section.case_sensitive).lower()}
    keys: Mapping[str, str | None]
    if section.metastore == "hive":
        keys = {URI: section.uri}
    elif section.metastore == "jdbc":
        keys = {URI: section.uri, USER: section.user, PASSWORD: section.password}
    else:
        file = None if section.auth_file is None else str(folder / section.auth_file)
        keys = {
            "uri": section.uri,
            "warehouse": section.warehouse,
            TOKEN: section.token,
            TOKEN_FILE: file,
        }
    return {
        **section.options,
        **{name: value for name, value in keys.items() if value is not None},
    }


def catalog_problems(section: CatalogSection) -> Iterator[tuple[str, str]]:
    """Yield (key, problem) for keys of `warehouse.catalog` that are missing or cannot be used."""
    metastore = section.metastore
    if section.uri is None and metastore in ("jdbc", "rest"):
        yield "uri", f"is needed with the metastore '{metastore}'"
    if metastore in ("hive", "jdbc") and "case_sensitive" in section.model_fields_set:
        yield (
            "case-sensitive",
            f"is for the metastore 'filesystem'; names of '{metastore}' have no capitals",
        )
    if metastore == "rest" and not section.case_sensitive:
        yield "case-sensitive", "is for the metastore 'filesystem'"
    if section.token is not None and section.auth_file is not None:
        yield "auth-file", "cannot be combined with 'token'"
    for key, metastores in _METASTORES_OF_KEY.items():
        if getattr(section, key.replace("-", "_")) and metastore not in metastores:
            *others, last = map(repr, metastores)
            names = f"{', '.join(others)} or {last}" if others else last
            yield key, f"is for the metastore {names}"
