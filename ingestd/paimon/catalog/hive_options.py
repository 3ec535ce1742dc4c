"""The options of a Hive catalog, from Paimon's options and from hive-site.xml."""

import getpass
import os
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.catalog.hive_client import Address, Metastore
from ingestd.paimon.catalog.lock_settings import LOCK_OPTIONS, LockSettings, lock_settings
from ingestd.paimon.io.file_io import storage_options
from ingestd.paimon.spec.option_types import parse_bool

URI = "uri"
_CONF_DIR = "hive-conf-dir"
_LOCATION_IN_PROPERTIES = "location-in-properties"
_TABLE_TYPE = "table.type"
_SYNC_PROPERTIES = "sync-all-properties"
_OPTIONS = (
    URI,
    _CONF_DIR,
    _LOCATION_IN_PROPERTIES,
    _TABLE_TYPE,
    _SYNC_PROPERTIES,
    *LOCK_OPTIONS,
)
_SITE = "hive-site.xml"
_URIS = ("hive.metastore.uris", "metastore.thrift.uris")
_DEFAULT_PORT = 9083
_REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "hive.metastore.sasl.enabled": (("false",), "SASL, with which Kerberos authenticates"),
    "metastore.sasl.enabled": (("false",), "SASL, with which Kerberos authenticates"),
    "hive.metastore.use.SSL": (("false",), "TLS"),
    "metastore.use.SSL": (("false",), "TLS"),
    "hive.metastore.client.auth.mode": (("nosasl",), "authentication with a password"),
    "metastore.client.auth.mode": (("nosasl",), "authentication with a password"),
    "hive.metastore.thrift.framed.transport.enabled": (("false",), "frames of Thrift"),
    "metastore.thrift.framed.transport.enabled": (("false",), "frames of Thrift"),
    "hive.metastore.thrift.compact.protocol.enabled": (("false",), "Thrift's compact protocol"),
    "metastore.thrift.compact.protocol.enabled": (("false",), "Thrift's compact protocol"),
    "hive.metastore.client.thrift.transport.mode": (("binary",), "Thrift over HTTP"),
    "metastore.client.thrift.transport.mode": (("binary",), "Thrift over HTTP"),
}
"""Settings of Hive's clients: the supported values, and the feature that other values require."""


@dataclass(frozen=True)
class HiveOptions:
    """The options of a Hive catalog.

    With `location_in_properties`, locations are stored as properties, so that the metastore needs
    no access to the store. With `external`, new tables are external. With `sync_properties`, the
    metastore has a copy of all table options. `lock` is None if the catalog does not lock.
    """

    metastore: Metastore
    location_in_properties: bool
    external: bool
    sync_properties: bool
    lock: LockSettings | None


def is_hive_option(name: str) -> bool:
    """Return whether Hive catalogs have an option of this name, apart from options of the store."""
    return name in _OPTIONS or name in _REFUSED or name in _URIS


def hive_options(warehouse: str, options: Mapping[str, str]) -> HiveOptions:
    """Return the options of a Hive catalog, by Paimon's names and from hive-site.xml.

    Options that are not set have Paimon's defaults; whether the catalog locks depends on
    `warehouse`. No connection is opened. Raises ConfigError for an unknown or invalid option,
    UnsupportedError for an authentication or a protocol that is not supported.
    """
    hive = set(filter(is_hive_option, options))
    unknown = sorted(set(options) - hive - storage_options(options).keys())
    if unknown:
        raise ConfigError(
            f"the Hive catalog has no option {', '.join(unknown)}; it has {', '.join(_OPTIONS)}, "
            "and the options of the store"
        )
    settings = _settings({name: options[name] for name in hive})
    table_type = settings.get(_TABLE_TYPE, "managed").lower()
    if table_type not in ("managed", "external"):
        raise ConfigError(
            f"catalog option '{_TABLE_TYPE}' = '{table_type}': write managed or external"
        )
    return HiveOptions(
        metastore=Metastore(_addresses(settings), _user()),
        location_in_properties=parse_bool(
            _LOCATION_IN_PROPERTIES, settings.get(_LOCATION_IN_PROPERTIES, "false")
        ),
        external=table_type == "external",
        sync_properties=parse_bool(_SYNC_PROPERTIES, settings.get(_SYNC_PROPERTIES, "true")),
        lock=lock_settings(warehouse, settings),
    )


def metastore_of(options: Mapping[str, str]) -> Metastore:
    """Return the metastore of the option `uri`, or of the hive-site.xml in `hive-conf-dir`.

    Raises ConfigError if the options contain no address of a metastore, or an invalid one, and
    UnsupportedError for an authentication or a protocol that is not supported.
    """
    return Metastore(_addresses(_settings(options)), _user())


def _settings(options: Mapping[str, str]) -> dict[str, str]:
    settings = {**_site(options), **options}
    _refuse_unsupported(settings)
    return settings


def _site(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of hive-site.xml that a catalog uses."""
    folder = options.get(_CONF_DIR) or os.environ.get("HIVE_CONF_DIR")
    if not folder:
        return {}
    file = Path(folder) / _SITE
    try:
        root = ET.parse(file).getroot()  # noqa: S314  (the operator's own file)
    except (OSError, ET.ParseError) as error:
        raise ConfigError(
            f"catalog option '{_CONF_DIR}': {file} cannot be read: {error}"
        ) from error
    settings = {
        (entry.findtext("name") or "").strip(): (entry.findtext("value") or "").strip()
        for entry in root.iter("property")
    }
    return {name: value for name, value in settings.items() if is_hive_option(name)}


def _refuse_unsupported(settings: Mapping[str, str]) -> None:
    for name, (supported, what) in _REFUSED.items():
        if name in settings and settings[name].lower() not in supported:
            raise UnsupportedError(
                f"catalog setting '{name}' = '{settings[name]}': {what} is not supported by the "
                f"Hive catalog; use a metastore with '{name}' = '{supported[0]}'"
            )


def _addresses(settings: Mapping[str, str]) -> tuple[Address, ...]:
    given = next((settings[name] for name in (URI, *_URIS) if settings.get(name)), None)
    if given is None:
        raise ConfigError(
            f"the Hive catalog needs the option '{URI}': thrift://HOST:PORT of its metastore, or "
            f"'{_CONF_DIR}': the folder of a {_SITE} with '{_URIS[0]}'"
        )
    return tuple(_address(uri.strip()) for uri in given.split(",") if uri.strip())


def _address(uri: str) -> Address:
    try:
        parts = urlsplit(uri)
        port = parts.port or _DEFAULT_PORT
    except ValueError as error:
        raise ConfigError(f"catalog option '{URI}' = '{uri}': {error}") from error
    if parts.scheme != "thrift" or not parts.hostname:
        raise ConfigError(f"catalog option '{URI}' = '{uri}': write thrift://HOST:PORT")
    return Address(parts.hostname, port)


def _user() -> str:
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
