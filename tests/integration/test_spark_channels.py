"""Who may speak to Spark's channels: on loopback, too, only who knows the session's secret."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ingestd.spark.startup.session import build_session

pytestmark = pytest.mark.integration
ENDPOINT = "OutputCommitCoordinator"


@contextmanager
def session(settings: dict[str, str]) -> Iterator[SparkContext]:
    built = build_session("test", {"spark.master": "local[1]", **settings})
    try:
        yield built.sparkContext
    finally:
        built.stop()


def call_without_secret(context: SparkContext) -> None:
    """Ask the driver's port for an endpoint as a process does that knows of no secret."""
    jvm: Any = context._jvm
    spark = jvm.org.apache.spark
    port = int(context.getConf().get("spark.driver.port") or 0)
    conf = jvm.org.apache.spark.SparkConf(False)
    conf.set("spark.rpc.askTimeout", "20s")
    entries = getattr(getattr(spark.internal.config, "package$"), "MODULE$")
    manager = spark.SecurityManager(conf, jvm.scala.Option.empty(), entries.AUTH_SECRET_FILE())
    stranger = spark.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, manager, True)
    try:
        stranger.setupEndpointRef(spark.rpc.RpcAddress("127.0.0.1", port), ENDPOINT)
    finally:
        stranger.shutdown()


def test_the_driver_answers_no_stranger_on_loopback() -> None:
    with session({"spark.authenticate": "false"}) as context:
        call_without_secret(context)  # what the stranger says is right
    with session({}) as context:
        with pytest.raises(Py4JJavaError, match=r"SASL|authenticat"):
            call_without_secret(context)
        assert context.parallelize([1, 2, 3], 2).map(lambda one: one + 1).sum() == 9


def test_calls_from_the_jvm_ask_for_the_gateways_secret() -> None:
    with session({}) as context:
        gateway: Any = context._gateway
        called = threading.Event()
        stream = SparkSession(context).readStream.format("rate").load().writeStream
        query = stream.foreachBatch(lambda _, __: called.set()).start()
        try:
            assert called.wait(180), query.exception()
            with socket.create_connection(("127.0.0.1", gateway._callback_server.port)) as stranger:
                stranger.settimeout(60)
                stranger.sendall(b"g\np0\ne\n")  # let the driver forget its first function
                with suppress(ConnectionResetError):
                    assert not stranger.recv(100).startswith(b"!y")
            called.clear()
            assert called.wait(180), query.exception()
        finally:
            query.stop()


def test_no_process_shows_the_secret() -> None:
    with session({}) as context:
        jvm: Any = context._jvm
        hadoop = jvm.org.apache.hadoop
        known = hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
        secret = bytes(known.getSecretKey(hadoop.io.Text("sparkCookie"))).decode()
        assert len(secret) >= 32
        shown = b"".join(map(command_line, Path("/proc").glob("[0-9]*/cmdline")))
        assert secret.encode() not in shown
        assert secret not in str(context.getConf().getAll())


def command_line(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended
        return b""
