"""Schemas from a registry with the protocol of Confluent or of Apicurio.

A schema never changes under its id, so it is cached for the life of the process and shared by all
clients of the registry. An unknown id is cached for a short time only.
"""

import time
from dataclasses import dataclass

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId
from ingestd.kafka.apicurio_protocol import ApicurioProtocol
from ingestd.kafka.confluent_protocol import ConfluentProtocol
from ingestd.kafka.registry_http import HITS, RegistryHttp, note
from ingestd.kafka.registry_reading import RegistryCache, RegistryProtocol, SchemaReading, room
from ingestd.kafka.registry_settings import RegistrySettings

_UNKNOWN_SECONDS = 30.0
_caches: dict[RegistrySettings, RegistryCache] = {}


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A `SchemaLookup` in a registry; small and picklable, because the process holds its cache."""

    settings: RegistrySettings

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema of an id with its references; None if the registry does not have it.

        Raises SourceError if the registry does not respond, ConfigError if it rejects the
        credentials.
        """
        cache = _caches.setdefault(self.settings, RegistryCache())
        cached = cache.schemas.get(schema_id)
        if cached is not None:
            note(HITS)
            return cached
        if cache.unknown.get(schema_id, 0.0) > time.monotonic():
            return None
        # Two threads may request the same schema: cheaper than waiting for each other.
        schema = self._reading(cache).schema(schema_id)
        capacity = self.settings.cache_capacity
        if schema is None:
            cache.unknown = room(cache.unknown, capacity)
            cache.unknown[schema_id] = time.monotonic() + _UNKNOWN_SECONDS
            return None
        cache.schemas = room(cache.schemas, capacity)
        cache.schemas[schema_id] = schema
        return schema

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the earlier versions of a schema, newest first, at most 50 per subject.

        Returns none for a schema identified by a GUID. Raises SourceError and ConfigError as
        `find`.
        """
        cache = _caches.setdefault(self.settings, RegistryCache())
        return self._reading(cache).earlier(schema_id)

    def _reading(self, cache: RegistryCache) -> SchemaReading:
        settings, http = self.settings, RegistryHttp(self.settings)
        protocol: RegistryProtocol = ConfluentProtocol(http)
        if settings.apicurio_api is not None:
            protocol = ApicurioProtocol(http, settings.apicurio_api, settings.id_kind)
        return SchemaReading(protocol, cache, settings.cache_capacity)


def forget_schemas() -> None:
    """Clear the cached schemas of all registries."""
    _caches.clear()
