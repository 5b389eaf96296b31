"""Functions of the patches that need no server."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from simulators.aws.patches import glue
from simulators.aws.patches.s3 import Refused, read_parts
from simulators.aws.patches.s3_bodies import CHUNK, Extent, Spool

CONTENT = bytes(index % 251 for index in range(2 * CHUNK + 5))


@pytest.fixture
def whole(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    return Extent.whole(file)


@pytest.mark.parametrize(
    "wanted",
    [slice(None), slice(0, 1), slice(3, 2), slice(-4, None), slice(CHUNK, CHUNK + 9), slice(9, 10**9)],
)
def test_an_extent_is_sliced_as_bytes_are(whole, wanted):
    part = whole[wanted][1:]
    assert b"".join(part.chunks()) == CONTENT[wanted][1:]
    assert len(part) == len(CONTENT[wanted][1:])


def test_an_extent_outlives_the_name_of_its_file(whole, tmp_path):
    (tmp_path / "file").unlink()
    assert b"".join(whole.chunks()) == CONTENT


def test_an_extent_of_a_file_that_became_shorter_raises(whole, tmp_path):
    os.truncate(tmp_path / "file", CHUNK + 1)
    with pytest.raises(OSError, match=f"{CHUNK + 4} bytes are missing"):
        list(whole.chunks())


def test_a_spool_keeps_what_several_threads_give_it_apart():
    spool = Spool()
    bodies = [bytes([number]) * 100_000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(spool.append, bodies))
    assert [b"".join(stream.chunks()) for stream in kept] == bodies


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<a",
        b"<a/>",
        b"<a><Part><ETag>1</ETag></Part></a>",
        b"<a><Part><PartNumber>x</PartNumber></Part></a>",
    ],
)
def test_a_list_of_parts_that_is_none_is_refused(body):
    with pytest.raises(Refused, match="MalformedXML"):
        read_parts(body)


def test_updates_of_tables_never_overlap():
    """Stock compares the version and then writes: whoever enters in between loses an update without an
    error.
    """
    both_inside = threading.Barrier(2)
    met = []

    def stock(*_):
        try:
            both_inside.wait(timeout=1)
            met.append(True)
        except threading.BrokenBarrierError:
            pass
        return 200, {}, b"{}"

    def update(_):
        headers = {"x-amz-target": "AWSGlue.UpdateTable"}
        return glue.handle_request(stock, "POST", "/", headers, b'{"TableInput": {"Name": "t"}}', {})[0]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(update, range(2))) == [200, 200]
    assert met == []


@pytest.mark.parametrize(
    ("action", "request_", "resource"),
    [
        ("GetDatabase", {"Name": "Lkc-1"}, "database/lkc-1"),
        ("CreateDatabase", {"DatabaseInput": {"Name": "d"}}, "database/d"),
        ("GetTable", {"DatabaseName": "d", "Name": "T"}, "table/d/t"),
        ("CreateTable", {"DatabaseName": "d", "TableInput": {"Name": "t"}}, "table/d/t"),
        ("GetTables", {"DatabaseName": "d"}, "database/d"),
        ("GetPartitions", {"DatabaseName": "d", "TableName": "t"}, "table/d/t"),
        ("GetDatabases", {}, None),
        ("StartJobRun", {"JobName": "export"}, None),
    ],
)
def test_a_glue_call_is_about_one_resource_of_the_catalog(action, request_, resource):
    assert glue.name_catalog_resource(f"AWSGlue.{action}", json.dumps(request_).encode()) == resource


def test_a_table_lies_in_its_database_and_that_in_the_catalog():
    prefix = "arn:aws:glue:eu-west-1:000000000000:"
    assert glue.list_related_arns("glue:GetTable", f"{prefix}table/d/t") == [
        f"{prefix}database/d",
        f"{prefix}catalog",
    ]
    assert glue.list_related_arns("glue:GetDatabase", f"{prefix}database/d") == [f"{prefix}catalog"]
    assert glue.list_related_arns("glue:GetJob", f"{prefix}job/export") == []
