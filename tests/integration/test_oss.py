"""Tables in `oss://`, in a real S3 server behind a proxy that has OSS's condition of a put."""

import uuid
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool

import pytest

from ingestd.errors import ConfigError, StorageError
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.io import object_store
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from tests.integration.oss_proxy import HOST, VIRTUAL_DOMAIN, OssProxy
from tests.integration.token_catalog import TokenCatalog
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.s3_server import S3Server, built, can_be_had, running_s3
from tests.support.store_checks import check_directories, check_large_file, check_names
from tests.support.stored_rows import stored_rows

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not can_be_had(), reason="the S3 server is built with go"),
]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("s3")
    with running_s3(built(), folder, "--virtual-domain", VIRTUAL_DOMAIN) as server:
        yield server


@pytest.fixture
def oss(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[OssProxy]:
    with OssProxy(s3.endpoint) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.endpoint)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        object_store.open_store.cache_clear()
        object_store._PROVED.clear()
        yield proxy
    object_store.open_store.cache_clear()


def options(s3: S3Server) -> dict[str, str]:
    return {
        "fs.oss.endpoint": f"http://{HOST}",
        "fs.oss.accessKeyId": s3.options["s3.access-key"],
        "fs.oss.accessKeySecret": s3.options["s3.secret-key"],
    }


def opened(s3: S3Server) -> tuple[FileIO, str]:
    return file_io_for("oss://lake", options(s3)), f"oss://lake/{uuid.uuid4().hex}"


def test_a_name_is_created_once(s3: S3Server, oss: OssProxy) -> None:
    io, root = opened(s3)
    check_names(io, root)
    with ThreadPool(4) as pool:
        won = pool.map(lambda n: io.try_write_atomic(f"{root}/raced", b"%d" % n), range(12))
    assert won.count(True) == 1
    assert io.list_names(root) == ["raced", "snapshot-1"]
    assert (s3.folder / root.removeprefix("oss://lake/") / "snapshot-1").read_bytes() == b"hint"


def test_large_files_and_directories(s3: S3Server, oss: OssProxy) -> None:
    check_large_file(*opened(s3))
    check_directories(*opened(s3))


def test_a_bucket_that_ignores_the_condition_is_refused_before_anything_is_replaced(
    s3: S3Server, oss: OssProxy
) -> None:
    io, root = opened(s3)
    io.overwrite(f"{root}/snapshot-1", b"theirs")
    oss.versioned = True
    with pytest.raises(StorageError, match="disable versioning"):
        io.try_write_atomic(f"{root}/snapshot-1", b"mine")
    assert io.read_bytes(f"{root}/snapshot-1") == b"theirs"
    assert io.list_names(root) == ["snapshot-1"]


def test_an_endpoint_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"fs\.oss\.endpoint"):
        file_io_for("oss://lake", {}).list_names("oss://lake/x")


def test_a_table_is_written_and_read(s3: S3Server, oss: OssProxy) -> None:
    io, root = opened(s3)
    table = native_table(root, [("id", "INT")], keys=["id"], options={"bucket": "1"}, io=io)
    for number in range(3):
        put(table, [{"id": number}])
    assert sorted(row["id"] for row in stored_rows(table)) == [0, 1, 2]


@pytest.mark.parametrize("external", [False, True])
def test_a_rest_catalog_hands_out_tables_and_credentials(
    s3: S3Server, oss: OssProxy, external: bool
) -> None:
    bucket = f"lake-{external}".lower()
    with TokenCatalog(s3, {"orders": bucket}, seconds=3600) as server:
        server.scheme, server.external = "oss", external
        given = {"uri": server.endpoint, "token": server.token}
        catalog = load_catalog("rest", "lake", {**given, "fs.oss.endpoint": f"http://{HOST}"})
        schema = new_schema([("id", parse_type("INT"))], ["id"], [], {"bucket": "1"}, NOW_MS)
        table = catalog.create_table(Identifier("shop", "orders"), schema)
        put(table, [{"id": 1}])
        put(table, [{"id": 2}])
        assert table.path == f"oss://{bucket}/managed/shop.db/orders"
        assert sorted(row["id"] for row in stored_rows(server.table("orders"))) == [1, 2]
        assert any(one.endswith("/commit") for one in server.asked) != external
