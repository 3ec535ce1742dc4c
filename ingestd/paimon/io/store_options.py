"""Options of object stores by Paimon's own names, and the schemes whose paths have them."""

from collections.abc import Mapping

from ingestd.errors import ConfigError

SCHEMES = ("s3", "s3a")
"""Schemes of paths that lie in object stores."""

_PREFIXES = ("s3.", "s3a.", "fs.s3a.")
S3_NAMES: Mapping[str, str] = {
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
}
"""Paimon's names without their prefix, and what the store's client calls them."""


def is_storage_option(name: str) -> bool:
    """Whether an option of a catalog configures the store of its files."""
    return name.startswith(_PREFIXES)


def storage_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """Those options of a catalog that configure the store of its files."""
    return {name: value for name, value in options.items() if is_storage_option(name)}


def check_storage_options(scheme: str, options: Mapping[str, str]) -> None:
    """ConfigError for an option that is not known, or that the scheme has no use for."""
    if options and scheme not in SCHEMES:
        names = ", ".join(sorted(options))
        raise ConfigError(f"{names}: only warehouses in an object store (s3://...) have these")
    for name in options:
        if bare_name(name) not in S3_NAMES:
            known = ", ".join(sorted(f"s3.{one}" for one in S3_NAMES))
            raise ConfigError(f"{name}: no such option of S3; there are {known}")


def bare_name(name: str) -> str:
    """The name of an option without the prefix of its store."""
    return next((name[len(one) :] for one in _PREFIXES if name.startswith(one)), name)
