"""Each fault as a client meets it: on the wire of the embedded AWS, with a client that forgives nothing."""

import http.client
import json
import socket
import urllib.error
from urllib.parse import urlsplit

import pytest

from simulators.aws.server import EmbeddedAws
from simulators.core.faults import FaultClient
from tests.support.aws_clients import Clients, error_of
from tests.support.faults_kit import call


@pytest.fixture(scope="module")
def server():
    """Without IAM, so that a bare HTTP client can talk to it."""
    with EmbeddedAws() as server:
        yield server


@pytest.fixture
def faults(server):
    faults = FaultClient(server.url)
    faults.clear()
    yield faults
    faults.clear()


@pytest.fixture(scope="module")
def clients(server):
    return Clients(server)


@pytest.fixture(scope="module")
def bucket(clients):
    return clients.new_bucket()


def put(server, bucket, key, body=b"1"):
    return call(server.url, "PUT", f"/{bucket}/{key}", body)


def get(server, bucket, key):
    return call(server.url, "GET", f"/{bucket}/{key}")


def test_an_error_comes_before_the_effect_in_the_words_of_s3(server, faults, clients, bucket):
    faults.rule({"fault": "error", "method": "PUT", "path": f"/{bucket}/*", "status": 503, "shape": "s3"})
    status, headers, body = put(server, bucket, "none", b"x" * 1_000_000)
    assert (status, headers["content-type"]) == (503, "application/xml")
    assert b"<Error><Code>SlowDown</Code>" in body
    assert error_of(clients.s3.get_object, Bucket=bucket, Key="none") == "NoSuchKey"
    assert put(server, bucket, "none")[0] == 200


def test_boto3_reads_each_shape_as_the_service_error_it_is(faults, clients, bucket):
    faults.rule(
        {"fault": "error", "method": "PUT", "status": 409, "shape": "s3"},
        {
            "fault": "error",
            "headers": {"x-amz-target": "AWSGlue.*"},
            "status": 400,
            "shape": "aws-json",
            "code": "OperationTimeoutException",
        },
    )
    assert error_of(clients.s3.put_object, Bucket=bucket, Key="k", Body=b"") == "ConditionalRequestConflict"
    assert error_of(clients.glue.get_databases) == "OperationTimeoutException"
    assert error_of(clients.glue.get_databases) is None


def test_an_answer_of_success_can_hold_an_error(faults, clients, bucket):
    """As CompleteMultipartUpload may on AWS: it has sent its status before it is done."""
    upload_id, parts = clients.upload(bucket, "late", [b"1"])
    faults.rule(
        {
            "fault": "error",
            "method": "POST",
            "query": {"uploadId": "*"},
            "status": 200,
            "shape": "s3",
            "code": "InternalError",
        }
    )
    assert error_of(clients.complete, bucket, "late", upload_id, parts) == "InternalError"
    assert clients.complete(bucket, "late", upload_id, parts)["Key"] == "late"


def test_an_error_can_come_after_the_effect(server, faults, bucket):
    faults.rule({"fault": "effect_then_error", "method": "PUT", "status": 500})
    assert put(server, bucket, "done", b"done")[0] == 500
    assert get(server, bucket, "done")[2] == b"done"


@pytest.mark.parametrize(("fault", "found"), [("reset", 404), ("effect_then_reset", 200)])
def test_a_connection_is_reset_before_or_after_the_effect(server, faults, bucket, fault, found):
    faults.rule({"fault": fault, "method": "PUT", "path": f"/{bucket}/{fault}"})
    with pytest.raises(ConnectionResetError) as broken:
        put(server, bucket, fault)
    assert (
        broken.type is ConnectionResetError
    )  # and not RemoteDisconnected, which is an orderly end without an answer
    assert get(server, bucket, fault)[0] == found


def test_throttling_says_when_to_come_back_or_does_not(server, faults, bucket):
    faults.rule(
        {"fault": "error", "status": 429, "reply_headers": {"Retry-After": "7"}},
        {"fault": "error", "status": 429, "nth": 2},
    )
    assert [get(server, bucket, "x")[1].get("retry-after") for _ in range(2)] == ["7", None]
    assert get(server, bucket, "x")[0] == 404


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_body_hangs_until_released(server, faults, bucket, size):
    body = bytes(index % 251 for index in range(size))
    put(server, bucket, "slow", body)
    faults.rule({"fault": "hang", "method": "GET", "after_bytes": 7})
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=30) as wire:
        wire.sendall(f"GET /{bucket}/slow HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(wire)
        answer.begin()
        assert answer.read(7) == body[:7]
        # The seventh byte is on the wire before its sender reports that it waits.
        assert any(faults.state()["held"] for _ in range(1000))
        wire.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.recv(1)
        wire.settimeout(30)
        faults.release()
        assert answer.read() == body[7:]
    assert faults.state()["held"] == 0


@pytest.mark.parametrize("after", [0, 5, 2_000_000])
def test_a_body_breaks_off(server, faults, bucket, after):
    put(server, bucket, "short", bytes(3_000_000))
    faults.rule({"fault": "truncate", "method": "GET", "after_bytes": after})
    with pytest.raises(http.client.IncompleteRead) as broken:
        get(server, bucket, "short")
    assert len(broken.value.partial) == after


def test_a_body_is_cut_in_an_answer_that_looks_whole(server, faults, bucket):
    put(server, bucket, "rows.json", b'{"data": [1, 2]}')
    faults.rule({"fault": "cut"}, {"fault": "cut", "nth": 2, "after_bytes": 3})
    for expected in (b'{"data":', b'{"d', b'{"data": [1, 2]}'):
        status, headers, body = get(server, bucket, "rows.json")
        assert (status, int(headers["content-length"]), body) == (200, len(expected), expected)


def test_html_comes_where_json_is_expected(server, faults, bucket):
    faults.rule(
        {"fault": "error", "status": 502, "shape": "html"},
        {"fault": "error", "nth": 2, "status": 200, "body": "<p>", "shape": "html"},
    )
    for expected in (502, 200):
        status, headers, body = get(server, bucket, "x")
        assert (status, headers["content-type"], body[:1]) == (expected, "text/html", b"<")


def test_a_read_is_stale(server, faults, bucket):
    faults.rule({"fault": "stale", "method": "GET", "path": f"/{bucket}/*", "nth": 3})
    put(server, bucket, "v", b"old")
    put(server, bucket, "w", b"other")
    assert get(server, bucket, "v")[2] == b"old"
    put(server, bucket, "v", b"new")
    assert get(server, bucket, "w")[2] == b"other"
    assert get(server, bucket, "v")[2] == b"old"
    assert get(server, bucket, "v")[2] == b"new"


def test_a_list_is_empty_or_repeats_itself(server, faults, bucket):
    put(server, bucket, "list.json", b'{"items": [1, 2], "next": "p2"}')
    faults.rule(
        {"fault": "empty_list", "list_field": "items"},
        {"fault": "repeat_item", "list_field": "items", "nth": 2},
    )
    answers = [json.loads(get(server, bucket, "list.json")[2])["items"] for _ in range(3)]
    assert answers == [[], [1, 1, 2], [1, 2]]


def test_credentials_flap(server, faults, bucket):
    put(server, bucket, "k")
    faults.rule({"fault": "error", "status": 403, "nth": 2, "every": 2, "times": 2})
    assert [get(server, bucket, "k")[0] for _ in range(6)] == [200, 403, 200, 403, 200, 200]


def test_a_rule_without_end_hits_until_it_is_cleared(server, faults, bucket):
    faults.rule({"fault": "error", "status": 500, "times": 0})
    assert [get(server, bucket, "x")[0] for _ in range(5)] == [500] * 5
    (rule,) = faults.state()["rules"]
    assert (rule["seen"], rule["hits"]) == (5, 5)
    faults.clear()
    assert get(server, bucket, "x")[0] == 404


def test_the_trace_tells_each_call_and_what_befell_it(server, faults, clients, bucket):
    faults.rule({"fault": "reset", "method": "HEAD"})
    get(server, bucket, "x?versionId=1")
    with pytest.raises(ConnectionResetError):
        call(server.url, "HEAD", f"/{bucket}")
    clients.glue.get_databases()
    assert faults.state()["trace"] == [
        {"call": f"GET /{bucket}/x?versionId=1", "operation": "", "status": 404},
        {"call": f"HEAD /{bucket}", "operation": "", "fault": "reset"},
        {"call": "POST /", "operation": "AWSGlue.GetDatabases", "status": 200},
    ]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"fault": "explode"}, "no fault 'explode'"),
        ({"fault": "error", "every": 0}, "every must be at least 1"),
        ({"fault": "error", "shape": "xml"}, "shape 'xml'"),
        ({"fault": "error", "n": 1}, "a rule has no n. It may have "),
        ({}, "fault"),
    ],
)
def test_a_rule_that_is_none_is_refused_in_words(faults, rule, sentence):
    with pytest.raises(urllib.error.HTTPError) as refused:
        faults.rule(rule)
    assert sentence in json.load(refused.value)["error"]
    assert faults.state()["rules"] == []
