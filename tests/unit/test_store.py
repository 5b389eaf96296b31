"""What a run reads from S3 and writes to it: objects, parts of them and listings, and errors in words."""

from __future__ import annotations

import attrs
import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    IncompleteReadError,
    NoRegionError,
)

from glue_jobs.errors import StorageProblem
from glue_jobs.store import (
    CLIENT_CONFIG,
    Bucket,
    Conflict,
    Gone,
    ObjectBody,
    Services,
    Unanswered,
    connect,
    connect_s3,
    read_location,
    translate_aws_errors,
)
from simulators.core.faults import FaultClient

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def faults(lake_aws):
    client = FaultClient(lake_aws.url)
    yield client
    client.clear()


def body(bucket: Bucket, pause=None, **span) -> ObjectBody:
    bucket.write("file", CONTENT, "text/plain")
    return ObjectBody(bucket.s3, bucket.name, bucket.key("file"), pause or refuse_to_wait, **span)


def refuse_to_wait(seconds: float) -> None:
    raise AssertionError(f"nothing broke off, so there is nothing to wait {seconds} s for")


def test_an_object_is_read_in_pieces_or_at_once(bucket):
    found = body(bucket)
    assert found.etag == bucket.s3.head_object(Bucket=bucket.name, Key=bucket.key("file"))["ETag"]
    assert found.read(0) == b""
    assert found.read(3) == CONTENT[:3]
    assert found.read(5_000) == CONTENT[3:5_003]
    assert found.read() == CONTENT[5_003:]
    assert (found.read(7), found.read()) == (b"", b"")
    assert body(bucket).read(1 << 20) == CONTENT


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 0, CONTENT[:1]),
        (10, 19, CONTENT[10:20]),
        (10_200, 10_239, CONTENT[-40:]),
        (10_000, 99_999, CONTENT[10_000:]),
        (0, None, CONTENT),
    ],
)
def test_a_part_of_an_object_is_from_its_first_byte_to_its_last(bucket, start, end, expected):
    assert body(bucket, start=start, end=end).read() == expected
    assert body(bucket, start=start, end=end).read(1 << 20) == expected


def ranges_of(bucket: Bucket) -> list[str | None]:
    """Return a list that gets the range of each object that is asked for from now on."""
    asked: list[str | None] = []
    bucket.s3.meta.events.register(
        "before-call.s3.GetObject", lambda params, **_: asked.append(params["headers"].get("Range"))
    )
    return asked


def test_only_a_part_is_asked_for_as_a_range(bucket):
    asked = ranges_of(bucket)
    body(bucket)
    body(bucket, start=3, end=7)
    assert asked == [None, "bytes=3-7"]


@pytest.mark.parametrize(
    ("span", "expected", "ranges"),
    [
        ({}, CONTENT, [None, "bytes=1000-", "bytes=2000-"]),
        (
            {"start": 100, "end": 9_999},
            CONTENT[100:10_000],
            ["bytes=100-9999", "bytes=1100-9999", "bytes=2100-9999"],
        ),
    ],
    ids=["all", "a part"],
)
def test_reading_goes_on_where_the_connection_broke(bucket, faults, span, expected, ranges):
    pauses: list[float] = []
    asked = ranges_of(bucket)
    faults.rule({"fault": "truncate", "method": "GET", "path": "*/file", "after_bytes": 1_000, "times": 2})
    found = body(bucket, pauses.append, **span)
    assert found.read() == expected
    assert (pauses, asked) == ([0.5, 0.5], ranges)


def test_reading_gives_up_after_the_last_pause(bucket, faults):
    pauses: list[float] = []
    faults.rule({"fault": "truncate", "method": "GET", "path": "*/file", "after_bytes": 0, "times": 0})
    found = body(bucket, pauses.append)
    with pytest.raises(IncompleteReadError):
        found.read()
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def test_the_rest_is_never_that_of_another_object(bucket, faults):
    faults.rule({"fault": "truncate", "method": "GET", "path": "*/file", "after_bytes": 1_000, "times": 1})

    def replace(_: float) -> None:
        bucket.write("file", CONTENT[::-1], "text/plain")

    found = body(bucket, replace)
    with pytest.raises(StorageProblem) as refused:
        found.read()
    assert refused.value.code == "EXP-AWS-FAILED"
    assert refused.value.what == f"s3://{bucket.name}/team/exports/file was replaced while it was read"


def test_an_object_that_vanishes_while_it_is_read_is_not_called_replaced(bucket, faults):
    faults.rule({"fault": "truncate", "method": "GET", "path": "*/file", "after_bytes": 1_000, "times": 1})
    found = body(bucket, lambda _: bucket.delete(["file"]))
    with pytest.raises(ClientError, match="NoSuchKey"):
        found.read()


def test_a_location_is_read_from_its_own_bucket(bucket):
    bucket.write("a/b.txt", b"content", "text/plain")
    services = attrs.evolve(connect("eu-central-1"), s3=bucket.s3)
    where = f"s3://{bucket.name}/team/exports/a/b.txt"
    assert read_location(services, where) == b"content"
    assert read_location(services, where.replace("s3://", "s3a://")) == b"content"
    with pytest.raises(Gone) as gone:
        read_location(services, f"{where}.gone")
    assert gone.value.what == f"reading {where}.gone failed: NoSuchKey"


@pytest.mark.parametrize("prefix", ["", "team/exports"])
def test_keys_are_relative_to_the_prefix(bucket, prefix):
    found = attrs.evolve(bucket, prefix=prefix)
    whole = f"{prefix}/a/b" if prefix else "a/b"
    assert (found.key("a/b"), found.relative(whole)) == (whole, "a/b")
    assert found.relative("other/a/b") == "other/a/b"
    found.write("a/b", b"12", "text/plain")
    found.write("a/a", b"1", "text/plain")
    found.write("b", b"", "text/plain")
    assert list(found.sizes("a/")) == [("a/a", 1), ("a/b", 2)]
    assert list(found.keys("")) == ["a/a", "a/b", "b"]
    assert list(found.keys("c")) == []
    assert (found.size_of(whole), found.size_of(f"{whole}-gone")) == (2, None)


def test_an_object_has_its_content_type_and_may_be_missing(bucket):
    assert bucket.read("a.json") is None
    assert bucket.read_json("a.json") is None
    bucket.write("a.json", '{"word": "é"}'.encode(), "application/json")
    head = bucket.s3.head_object(Bucket=bucket.name, Key="team/exports/a.json")
    assert head["ContentType"] == "application/json"
    assert bucket.read_json("a.json") == ({"word": "é"}, head["ETag"])
    assert bucket.read("a.json") == ('{"word": "é"}'.encode(), head["ETag"])


def test_uploads_are_listed_below_a_folder_until_they_are_aborted(bucket):
    ids = {}
    for name in ("data/a", "data/b", "other/c"):
        answer = bucket.s3.create_multipart_upload(Bucket=bucket.name, Key=bucket.key(name))
        ids[name] = answer["UploadId"]
    assert list(bucket.uploads("data/")) == [("data/a", ids["data/a"]), ("data/b", ids["data/b"])]
    bucket.abort("data/a", ids["data/a"])
    bucket.abort("data/a", ids["data/a"])
    assert list(bucket.uploads("data/")) == [("data/b", ids["data/b"])]


def test_a_write_that_depends_on_what_is_there_is_refused_otherwise(bucket):
    bucket.write_if("a", b"1", "text/plain", etag=None)
    content, etag = bucket.read("a")
    bucket.write_if("a", b"2", "text/css", etag=etag)
    assert (content, bucket.read("a")[0]) == (b"1", b"2")
    assert bucket.s3.head_object(Bucket=bucket.name, Key=bucket.key("a"))["ContentType"] == "text/css"
    for name, expected in (("a", None), ("a", etag), ("gone", etag)):
        with pytest.raises(Conflict) as refused:
            bucket.write_if(name, b"3", "text/plain", etag=expected)
        assert refused.value.is_repeated is False
    assert (bucket.read("a")[0], bucket.read("gone")) == (b"2", None)


def test_nothing_to_delete_needs_no_request(bucket, faults):
    faults.rule({"fault": "error", "status": 403, "code": "AccessDenied", "method": "POST", "path": "*"})
    bucket.delete([])
    with pytest.raises(StorageProblem) as refused:
        bucket.delete(["a"])
    assert refused.value.what.startswith(f"deleting below s3://{bucket.name}/team/exports failed: ")


@pytest.mark.parametrize(
    ("error", "code", "what"),
    [
        ("<Code>InternalError</Code><Message>We failed.</Message>", "EXP-AWS-FAILED", "InternalError"),
        ("<Code>AccessDenied</Code><Message>No.</Message>", "EXP-AWS-DENIED", "AccessDenied: No"),
        ("", "EXP-AWS-FAILED", "unknown"),
    ],
)
def test_an_object_that_remains_is_an_error_with_its_key(bucket, faults, error, code, what):
    body = f"<DeleteResult><Error><Key>team/exports/a</Key>{error}</Error></DeleteResult>"
    faults.rule({"fault": "error", "status": 200, "body": body, "method": "POST", "path": "*"})
    with pytest.raises(StorageProblem) as remains:
        bucket.delete(["a"])
    assert remains.value.code == code
    assert remains.value.what == f"deleting s3://{bucket.name}/team/exports/a failed: {what}"
    assert remains.value.remedy == (PERMIT if code == "EXP-AWS-DENIED" else AGAIN)


def client_error(code: str, status: int | None = 400, retries: int = 0, message: str = "") -> ClientError:
    metadata = {"RetryAttempts": retries} | ({} if status is None else {"HTTPStatusCode": status})
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}
    return ClientError(answer, "PutObject")


def translated(error: Exception) -> StorageProblem:
    with pytest.raises(StorageProblem) as problem, translate_aws_errors("writing x"):
        raise error
    assert problem.value.__cause__ is error
    return problem.value


AGAIN = "Run again; if it fails again, look up the code in the service's documentation"
PERMIT = "Give the job's role this permission (docs/reference/iam.md lists what it needs), then run again"


@pytest.mark.parametrize(
    ("error", "kind", "code", "remedy"),
    [
        (client_error("InvalidRequest"), StorageProblem, "EXP-AWS-FAILED", AGAIN),
        (client_error("InvalidRequest", 499), StorageProblem, "EXP-AWS-FAILED", AGAIN),
        (client_error("InvalidRequest", retries=1), Unanswered, "EXP-AWS-FAILED", AGAIN),
        (client_error("InternalError", 500), Unanswered, "EXP-AWS-FAILED", AGAIN),
        (client_error("SlowDown", 503, retries=5), Unanswered, "EXP-AWS-FAILED", AGAIN),
        (client_error("InvalidRequest", None), Unanswered, "EXP-AWS-FAILED", AGAIN),
        (client_error("NoSuchKey", 404), Gone, "EXP-AWS-FAILED", AGAIN),
        (client_error("404", 404), Gone, "EXP-AWS-FAILED", AGAIN),
        (client_error("NotFound", 404), Gone, "EXP-AWS-FAILED", AGAIN),
        (client_error("NoSuchUpload", 404, retries=2), Gone, "EXP-AWS-FAILED", AGAIN),
        (
            client_error("NoSuchBucket", 404),
            StorageProblem,
            "EXP-AWS-NO-BUCKET",
            "Check --bucket; the run never creates buckets",
        ),
        (client_error("AccessDenied", 403), StorageProblem, "EXP-AWS-DENIED", PERMIT),
    ],
)
def test_an_error_of_aws_has_a_kind_a_code_and_a_remedy(error, kind, code, remedy):
    problem = translated(error)
    assert (type(problem), problem.code, problem.remedy) == (kind, code, remedy)
    assert problem.what == f"writing x failed: {error.response['Error']['Code']}"


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException"])
def test_credentials_that_ended_have_the_remedy_of_the_catalogue(code):
    problem = translated(client_error(code))
    assert problem.code == "EXP-CREDENTIALS-ENDED"
    assert problem.remedy not in ("", AGAIN, PERMIT)


def test_a_denial_names_the_policy_that_denied_it():
    said = "not authorized to perform: s3:PutObject because no permissions boundary allows it"
    problem = translated(client_error("AccessDenied", 403, message=said))
    assert problem.remedy.startswith("It is denied by a permissions boundary. ")
    assert problem.what == f"writing x failed: AccessDenied: {said}"


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict", "412", "409"])
def test_a_conflict_says_whether_the_request_was_repeated(code, retries):
    with pytest.raises(Conflict) as conflict, translate_aws_errors("writing x"):
        raise client_error(code, 412, retries)
    assert conflict.value.is_repeated == bool(retries)


def test_a_service_that_cannot_be_reached_leaves_it_open_what_happened():
    problem = translated(EndpointConnectionError(endpoint_url="https://s3.example.com"))
    assert (type(problem), problem.code) == (Unanswered, "EXP-AWS-UNREACHABLE")
    assert problem.what == (
        'writing x failed: Could not connect to the endpoint URL: "https://s3.example.com"'
    )
    assert problem.remedy == "Check network, region and credentials, then run again"


def test_clients_have_one_region_limits_and_few_attempts(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    services = connect("eu-west-3")
    clients = [*attrs.asdict(services, recurse=False).values(), connect_s3("eu-west-3")]
    assert isinstance(services, Services)
    assert [client.meta.service_model.service_name for client in clients] == [
        "s3",
        "glue",
        "secretsmanager",
        "s3",
    ]
    for client in clients:
        config = client.meta.config
        assert client.meta.region_name == "eu-west-3"
        assert (config.connect_timeout, config.read_timeout) == (10, 60)
        assert config.request_checksum_calculation == "when_required"
        assert config.retries == CLIENT_CONFIG.retries
    assert CLIENT_CONFIG.retries == {"mode": "standard", "total_max_attempts": 6}


def test_without_a_region_nothing_is_connected(monkeypatch, tmp_path):
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(Unanswered) as unknown:
        connect()
    assert isinstance(unknown.value.__cause__, NoRegionError)
    assert unknown.value.what.startswith("connecting to AWS failed: ")
