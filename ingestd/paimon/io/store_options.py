"""Options of object stores and HDFS by Paimon's names, and the schemes of their paths.

A scheme is supported only if its store can create a file without ever replacing one, because every
commit relies on that; `REFUSED` has the reasons why other schemes are not supported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ingestd.errors import ConfigError, UnsupportedError

MOST_CREDENTIALS = 4096
"""Credentials that expire, with their clients, that a process keeps: those of as many tables."""
_OBJECTS = "ingestd.paimon.io.object_store"


class StoreCredentials(Protocol):
    """Options of a store whose credentials expire; picklable, hashable and thread-safe."""

    def current(self) -> frozenset[tuple[str, str]]:
        """Return all options of the store, by Paimon's names, with credentials valid now."""
        ...

    def discard(self) -> None:
        """Forget the credentials, which the store has refused."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of store: the schemes of its paths, and its options.

    `title` is the name of the kind in messages. The names of its options start with one of
    `prefixes`. `names` maps each option, without its prefix unless `whole` is set, to its name in
    the store's client. Names in `hosted` may be followed by a host or a nameservice. `home` is the
    module whose `open_file_io` opens such stores; because it imports the store's client, it is
    imported only for a path of such a store.
    """

    title: str
    schemes: tuple[str, ...]
    prefixes: tuple[str, ...]
    names: Mapping[str, str]
    hosted: tuple[str, ...] = ()
    whole: bool = False
    home: str = _OBJECTS

    def bare_name(self, name: str) -> str | None:
        """Return the name of an option as in `names`: without its prefix, unless `whole` is set.

        The result is None for an option of another kind of store.
        """
        start = next((prefix for prefix in self.prefixes if name.startswith(prefix)), None)
        return name if start is not None and self.whole else start and name[len(start) :]

    def known(self) -> list[str]:
        """Return the names of all options of this kind of store, with the first prefix, sorted."""
        prefix = "" if self.whole else self.prefixes[0]
        return sorted(f"{prefix}{key}" for key in self.names)


S3 = Family(
    "S3",
    ("s3", "s3a"),
    ("s3.", "s3a.", "fs.s3a."),
    {
        "endpoint": "endpoint",
        "endpoint.region": "region",
        "region": "region",
        "access-key": "access_key_id",
        "access.key": "access_key_id",
        "secret-key": "secret_access_key",
        "secret.key": "secret_access_key",
        "session.token": "session_token",
        "path.style.access": "virtual_hosted_style_request",
        "path-style-access": "virtual_hosted_style_request",
    },
)
OSS = Family(
    "OSS",
    ("oss",),
    ("fs.oss.",),
    {
        "endpoint": "endpoint",
        "region": "region",
        "accessKeyId": "access_key_id",
        "accessKeySecret": "secret_access_key",
        "securityToken": "session_token",
    },
)
GCS = Family(
    "Google Cloud Storage",
    ("gs",),
    ("fs.gs.",),
    {"auth.service.account.json.keyfile": "service_account"},
)
AZURE = Family(
    "Azure",
    ("abfs", "abfss", "wasb", "wasbs"),
    ("fs.azure.",),
    {"account.key": "account_key", "sas.fixed.token": "sas_key"},
    hosted=("account.key", "sas.fixed.token"),
)
_OF_NAMESERVICES = (
    "hadoop.dfs.ha.namenodes",
    "hadoop.dfs.namenode.rpc-address",
    "hadoop.dfs.client.failover.proxy.provider",
    "hadoop.dfs.client.failover.random.order",
    "hadoop.dfs.client.failover.resolve-needed",
    "hadoop.dfs.client.failover.resolver.useFQDN",
)
_OF_HDFS = (
    *_OF_NAMESERVICES,
    "hadoop-conf-dir",
    "hadoop.dfs.client.block.write.replace-datanode-on-failure.best-effort",
    "hadoop.dfs.client.block.write.replace-datanode-on-failure.enable",
    "hadoop.dfs.client.block.write.replace-datanode-on-failure.policy",
    "hadoop.dfs.client.use.datanode.hostname",
    "hadoop.dfs.data.transfer.protection",
    "hadoop.fs.defaultFS",
    "hadoop.hadoop.security.authentication",
    "security.kerberos.login.keytab",
    "security.kerberos.login.principal",
)
HDFS = Family(
    "HDFS",
    ("hdfs",),
    ("hadoop.", "hadoop-", "security.kerberos.login."),
    {name: name for name in _OF_HDFS},
    hosted=_OF_NAMESERVICES,
    whole=True,
    home="ingestd.paimon.io.hdfs",
)
FAMILIES = (S3, OSS, GCS, AZURE, HDFS)
SCHEMES: Mapping[str, Family] = {scheme: owner for owner in FAMILIES for scheme in owner.schemes}
"""The supported schemes, other than local ones, with their kinds of store."""
_CREDENTIALS = frozenset(
    {"access_key_id", "secret_access_key", "session_token"}
    | {"account_key", "sas_key", "service_account"}
)
"""The names of credentials in the stores' clients."""
_OWN_HEADER = (
    "this store takes the condition of a put in a header of its own, which ingestd does not "
    "send, so two writers could replace each other's commits"
)
_NO_RENAME = (
    "a directory behind it may be in any store, and commits need one whose renames never replace "
    "each other's commits; name the cluster itself, hdfs://NAME/..."
)
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("viewfs", "webhdfs"), _NO_RENAME),
    **dict.fromkeys(("cosn", "obs", "tos"), _OWN_HEADER),
}
"""Schemes that Paimon's Java client supports, with the reasons why ingestd does not."""


def is_storage_option(name: str) -> bool:
    """Return whether an option of a catalog configures the store of its files."""
    return any(family.bare_name(name) is not None for family in FAMILIES)


def storage_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a catalog that configure the store of its files."""
    return {name: value for name, value in options.items() if is_storage_option(name)}


def check_storage_options(scheme: str, options: Mapping[str, str]) -> None:
    """Raise ConfigError for an option that stores of a scheme do not have.

    Stores of local paths have no options.
    """
    family = SCHEMES.get(scheme)
    if options and family is None:
        names = ", ".join(sorted(options))
        raise ConfigError(
            f"{names}: only warehouses in an object store (s3://...) or HDFS have these"
        )
    for name in options:
        if family is not None and client_name(family, name) is None:
            known = ", ".join(family.known())
            raise ConfigError(f"{name}: no such option of {family.title}; there are {known}")


def with_credentials(
    scheme: str, options: Mapping[str, str], given: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the options of a store with the credentials `given`, which replace all of its own.

    `scheme` names the kind of store and must be in `SCHEMES`. `given` may contain other options of
    the store as well; options of other stores in it are left out. Raises UnsupportedError if it
    contains no credentials that the store's client knows.
    """
    family = SCHEMES[scheme]
    known = {name: value for name, value in given.items() if client_name(family, name)}
    replaced = {client_name(family, name) for name in known}
    if not replaced & _CREDENTIALS:
        names = ", ".join(sorted(given)) or "nothing"
        raise UnsupportedError(
            f"the catalog's token for storage contains no credentials of {family.title}: it "
            f"contains {names}; there are {', '.join(family.known())}"
        )
    dropped = replaced | _CREDENTIALS
    kept = {name: v for name, v in options.items() if client_name(family, name) not in dropped}
    return {**kept, **known}


def client_name(family: Family, name: str) -> str | None:
    """Return the name of an option in the store's client, or None if the option is unknown.

    Options of Azure may end with a host, as in Hadoop, and options of HDFS with a nameservice.
    """
    bare = family.bare_name(name)
    if bare is None:
        return None
    longer = next((host for host in family.hosted if bare.startswith(f"{host}.")), bare)
    return family.names.get(longer)


def unsupported_scheme(uri: str, scheme: str) -> UnsupportedError:
    """Return the error for a scheme that is not supported, with the reason if it is known."""
    reason = REFUSED.get(scheme)
    return UnsupportedError(
        f"warehouse {uri}: the scheme '{scheme}' is not supported"
        + (f": {reason}" if reason else "")
        + "; use a local path, file:///..., s3://bucket/..., oss://bucket/..., gs://bucket/..., "
        "abfss://container@account.dfs.core.windows.net/... or hdfs://name/..."
    )
