"""The README of the chart: one row per value, from the comments of values.yaml."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_INTRODUCTION = """# ingestd on Kubernetes

Written by `make docs` from `values.yaml`. One release is one pipeline.

    helm install shop helm/ingestd --namespace lake --values shop.yaml

`shop.yaml` contains the configuration of the pipeline, as in [configuration.md]({docs}):

    config:
      warehouse:
        path: /lake
        database: shop
      sources:
        shop:
          kafka:
            bootstrap.servers: kafka:9092
            sasl.password: ${{file:/run/secrets/ingestd/kafka-password}}
          format: debezium-json
          topic-pattern: shop\\.public\\..*
    existingSecret: kafka       # the key kafka-password of the secret becomes the file

The daemon is a StatefulSet with one replica, so that the cluster does not start a second pod before
the first has ended. A changed `config` restarts the pod. The current batch is finished first if
`terminationGracePeriodSeconds` allows it; else it is run again after the restart.

| value | default | description |
|---|---|---|
"""


class Value(NamedTuple):
    """A value: its path with dots, its default, and its comment."""

    path: str
    default: Any
    comment: str


def values(text: str) -> Iterator[Value]:
    """Yield the values of a values file that have a comment, nested ones included."""
    document = yaml.safe_load(text)
    comment: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        key = re.match(r"( *)([A-Za-z][\w-]*):", line)
        if stripped.startswith("#"):
            comment.append(stripped.lstrip("# "))
        elif key is not None:
            depth = len(key[1])
            parents = [(level, name) for level, name in parents if level < depth]
            parents.append((depth, key[2]))
            if comment:
                path = [name for _, name in parents]
                yield Value(".".join(path), _at(document, path), " ".join(comment))
            comment = []
        elif not stripped:
            comment = []


def _at(document: Any, path: list[str]) -> Any:  # noqa: ANN401  (a document's value)
    for name in path:
        document = document[name]
    return document


def chart_page(chart: Path) -> str:
    """The page for a chart's folder."""
    text = (chart / "values.yaml").read_text(encoding="utf-8")
    rows = [
        f"| `{value.path}` | `{_shown(value.default)}` | {value.comment} |"
        for value in values(text)
    ]
    return _INTRODUCTION.format(docs="../../docs/configuration.md") + "\n".join(rows) + "\n"


def _shown(default: Any) -> str:  # noqa: ANN401  (a document's value)
    text = json.dumps(default)
    return text if len(text) <= 60 else "{...}"
