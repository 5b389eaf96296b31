"""What the export job relies on, in S3, Glue, Secrets Manager and STS, beside what the patches see to."""

import base64
import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.aws_clients import PART, error_of, policy, sha256


@pytest.fixture(scope="module")
def bucket(aws):
    return aws.new_bucket()


def test_a_conditional_put_creates_once(aws, bucket):
    put = {"Bucket": bucket, "Key": "once", "IfNoneMatch": "*"}
    assert error_of(aws.s3.put_object, Body=b"first", **put) is None
    assert error_of(aws.s3.put_object, Body=b"second", **put) == "PreconditionFailed"
    assert aws.s3.get_object(Bucket=bucket, Key="once")["Body"].read() == b"first"


def test_a_conditional_put_replaces_only_what_it_saw(aws, bucket):
    seen = aws.s3.put_object(Bucket=bucket, Key="seen", Body=b"1")["ETag"]
    assert error_of(aws.s3.put_object, Bucket=bucket, Key="seen", Body=b"2", IfMatch=seen) is None
    assert (
        error_of(aws.s3.put_object, Bucket=bucket, Key="seen", Body=b"3", IfMatch=seen)
        == "PreconditionFailed"
    )
    assert error_of(aws.s3.put_object, Bucket=bucket, Key="never", Body=b"1", IfMatch=seen) == "NoSuchKey"


def test_of_many_conditional_puts_at_once_one_wins(aws, bucket):
    def put(number):
        return error_of(aws.s3.put_object, Bucket=bucket, Key="race", Body=b"%d" % number, IfNoneMatch="*")

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(put, range(16)))
    assert (codes.count(None), codes.count("PreconditionFailed")) == (1, 15)


def test_a_conditional_completion_creates_once_and_can_be_repeated(aws, bucket):
    first, second = (aws.upload(bucket, "big", [body]) for body in (b"first", b"second"))
    created = aws.complete(bucket, "big", *first, IfNoneMatch="*")
    assert error_of(aws.complete, bucket, "big", *second, IfNoneMatch="*") == "PreconditionFailed"
    assert aws.complete(bucket, "big", *first, IfNoneMatch="*")["ETag"] == created["ETag"]
    assert aws.s3.get_object(Bucket=bucket, Key="big")["Body"].read() == b"first"
    assert [upload["UploadId"] for upload in aws.s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [
        second[0]
    ]


def test_a_multipart_object_has_the_bytes_etag_and_checksum_of_its_parts(aws, bucket):
    bodies = [b"a" * PART, b"b" * (PART + 7), b"tail"]
    created = aws.complete(bucket, "whole", *aws.upload(bucket, "whole", bodies, ChecksumAlgorithm="SHA256"))
    digests = b"".join(hashlib.md5(body).digest() for body in bodies)
    composite = base64.b64encode(
        hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in bodies)).digest()
    )
    head = aws.s3.head_object(Bucket=bucket, Key="whole", ChecksumMode="ENABLED")
    assert head["ETag"] == created["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    assert head["ChecksumSHA256"] == created["ChecksumSHA256"] == f"{composite.decode()}-3"
    assert (head["ContentLength"], head["ChecksumType"]) == (2 * PART + 11, "COMPOSITE")
    assert aws.s3.get_object(Bucket=bucket, Key="whole")["Body"].read() == b"".join(bodies)
    middle = aws.s3.get_object(Bucket=bucket, Key="whole", Range=f"bytes={PART - 2}-{PART + 1}")
    assert (middle["Body"].read(), middle["ContentRange"]) == (
        b"aabb",
        f"bytes {PART - 2}-{PART + 1}/{2 * PART + 11}",
    )


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024 - 1, 1024 * 1024, 3 * 1024 * 1024 + 1])
def test_ranges_at_the_edges(aws, bucket, size):
    body = bytes(index % 251 for index in range(size))
    aws.s3.put_object(Bucket=bucket, Key="edges", Body=body)

    def part(wanted):
        return aws.s3.get_object(Bucket=bucket, Key="edges", Range=wanted)["Body"].read()

    assert aws.s3.get_object(Bucket=bucket, Key="edges")["Body"].read() == body
    if size:
        assert part("bytes=0-0") == body[:1]
        assert part("bytes=-3") == body[-3:]
        assert part(f"bytes={size // 2}-") == body[size // 2 :]
        assert part(f"bytes={size - 1}-{size + 99}") == body[-1:]
    assert error_of(part, f"bytes={size}-") == "InvalidRange"


def test_a_reader_goes_on_with_what_it_opened_while_the_object_is_replaced(aws, bucket):
    old = b"o" * (8 * PART)
    new = b"n" * (8 * PART)
    aws.s3.put_object(Bucket=bucket, Key="replaced", Body=old)
    reading = aws.s3.get_object(Bucket=bucket, Key="replaced")["Body"]
    first = reading.read(1000)
    aws.s3.put_object(Bucket=bucket, Key="replaced", Body=new)
    assert first + reading.read() == old
    assert aws.s3.get_object(Bucket=bucket, Key="replaced")["Body"].read() == new


def test_a_version_keeps_its_bytes_when_a_multipart_object_takes_its_key(aws):
    bucket = aws.new_bucket()
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = aws.s3.put_object(Bucket=bucket, Key="k", Body=b"old")["VersionId"]
    new = aws.complete(bucket, "k", *aws.upload(bucket, "k", [b"x" * PART, b"y"]))["VersionId"]
    assert aws.s3.get_object(Bucket=bucket, Key="k", VersionId=old)["Body"].read() == b"old"
    assert aws.s3.get_object(Bucket=bucket, Key="k", VersionId=new)["Body"].read() == b"x" * PART + b"y"
    aws.s3.delete_object(Bucket=bucket, Key="k", VersionId=new)
    assert aws.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"


def test_parts_that_arrive_at_once_end_up_in_order(aws, bucket):
    upload_id, _ = aws.upload(bucket, "parallel", [])

    def send(number):
        part = {"Bucket": bucket, "Key": "parallel", "UploadId": upload_id, "PartNumber": number}
        return {"PartNumber": number, "ETag": aws.s3.upload_part(**part, Body=bytes([number]) * PART)["ETag"]}

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(send, range(1, 9)))
    aws.complete(bucket, "parallel", upload_id, parts)
    whole = aws.s3.get_object(Bucket=bucket, Key="parallel")["Body"].read()
    assert whole == b"".join(bytes([number]) * PART for number in range(1, 9))


def test_a_wrong_checksum_is_refused_and_a_right_one_kept(aws, bucket):
    put = {"Bucket": bucket, "Key": "checked", "Body": b"1"}
    md5 = base64.b64encode(hashlib.md5(b"2").digest()).decode()
    assert error_of(aws.s3.put_object, **put, ContentMD5=md5) == "BadDigest"
    assert error_of(aws.s3.put_object, **put, ChecksumSHA256=sha256(b"2")) == "BadDigest"
    upload_id, _ = aws.upload(bucket, "checked", [], ChecksumAlgorithm="SHA256")
    part = {**put, "UploadId": upload_id, "PartNumber": 1}
    assert error_of(aws.s3.upload_part, **part, ChecksumSHA256=sha256(b"2")) == "BadDigest"
    assert aws.s3.upload_part(**part, ChecksumSHA256=sha256(b"1"))["ChecksumSHA256"] == sha256(b"1")
    (listed,) = aws.s3.list_parts(Bucket=bucket, Key="checked", UploadId=upload_id)["Parts"]
    assert (listed["PartNumber"], listed["Size"], listed["ChecksumSHA256"]) == (1, 1, sha256(b"1"))


@pytest.mark.parametrize("change", [{"ETag": '"0"'}, {"PartNumber": 7}, {"ChecksumSHA256": sha256(b"other")}])
def test_a_part_that_is_not_as_listed_is_refused(aws, bucket, change):
    upload_id, (part,) = aws.upload(bucket, "listed", [b"1"], ChecksumAlgorithm="SHA256")
    assert error_of(aws.complete, bucket, "listed", upload_id, [part | change]) == "InvalidPart"


def test_a_part_that_was_sent_again_counts_as_last_sent(aws, bucket):
    upload_id, stale = aws.upload(bucket, "again", [b"1"])
    part = {"Bucket": bucket, "Key": "again", "UploadId": upload_id, "PartNumber": 1}
    fresh = [{"PartNumber": 1, "ETag": aws.s3.upload_part(**part, Body=b"2")["ETag"]}]
    assert error_of(aws.complete, bucket, "again", upload_id, stale) == "InvalidPart"
    aws.complete(bucket, "again", upload_id, fresh)
    assert aws.s3.get_object(Bucket=bucket, Key="again")["Body"].read() == b"2"


def test_an_aborted_upload_is_gone(aws, bucket):
    upload_id, parts = aws.upload(bucket, "aborted", [b"1"])
    upload = {"Bucket": bucket, "Key": "aborted", "UploadId": upload_id}
    aws.s3.abort_multipart_upload(**upload)
    assert error_of(aws.s3.upload_part, **upload, PartNumber=1, Body=b"1") == "NoSuchUpload"
    assert error_of(aws.s3.abort_multipart_upload, **upload) == "NoSuchUpload"
    assert error_of(aws.complete, bucket, "aborted", upload_id, parts) == "NoSuchUpload"


def test_open_uploads_are_listed_by_prefix_in_pages(aws):
    bucket = aws.new_bucket()
    for key in ("runs/1/a", "runs/1/b", "runs/2/a"):
        aws.upload(bucket, key, [])
    pages = aws.s3.get_paginator("list_multipart_uploads").paginate(
        Bucket=bucket, Prefix="runs/1/", PaginationConfig={"PageSize": 1}
    )
    assert [[upload["Key"] for upload in page.get("Uploads", [])] for page in pages] == [
        ["runs/1/a"],
        ["runs/1/b"],
    ]


def test_objects_are_listed_by_prefix_in_pages_and_deleted_in_batches(aws):
    bucket = aws.new_bucket()
    keys = [f"data/run=1/part {number}.csv" for number in range(5)]
    for key in [*keys, "data/run=2/part 0.csv", "datum"]:
        aws.s3.put_object(Bucket=bucket, Key=key, Body=b"1")
    pages = aws.s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="data/run=1/", PaginationConfig={"PageSize": 2}
    )
    assert [[content["Key"] for content in page["Contents"]] for page in pages] == [
        keys[:2],
        keys[2:4],
        keys[4:],
    ]
    answer = aws.s3.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": key} for key in [*keys, "absent"]]}
    )
    assert [item["Key"] for item in answer["Deleted"]] == [*keys, "absent"]
    assert aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2


def test_a_deleted_key_of_a_versioned_bucket_can_be_created_again(aws):
    bucket = aws.new_bucket()
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    assert aws.s3.delete_object(Bucket=bucket, Key="k")["DeleteMarker"] is True
    assert error_of(aws.s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"
    assert error_of(aws.s3.put_object, Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*") is None
    assert len(aws.s3.list_object_versions(Bucket=bucket)["Versions"]) == 2


def test_of_many_updates_from_one_table_version_one_wins(aws):
    database = aws.new_database()
    start = threading.Barrier(8, timeout=60)
    aws.glue.create_table(DatabaseName=database, TableInput={"Name": "t"})

    def update(number):
        start.wait()
        table = {"Name": "t", "Parameters": {"by": str(number)}}
        return error_of(
            aws.glue.update_table, DatabaseName=database, TableInput=table, VersionId="1", SkipArchive=True
        )

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(update, range(8)))
    table = aws.glue.get_table(DatabaseName=database, Name="t")["Table"]
    assert (table["VersionId"], table["Parameters"]) == ("2", {"by": str(codes.index(None))})
    assert set(codes) == {None, "ConcurrentModificationException"}


def test_a_role_can_do_what_its_policy_says_and_no_more(aws):
    bucket = aws.new_bucket()
    database = aws.new_database()
    for key in ("in/k", "out/k"):
        aws.s3.put_object(Bucket=bucket, Key=key, Body=b"1")
    for secret in ("own", "other"):
        aws.secrets.create_secret(Name=f"{database}/{secret}", SecretString="1")
    job = aws.assuming(
        aws.new_role(
            ("s3:GetObject", f"arn:aws:s3:::{bucket}/in/*"),
            (["s3:PutObject", "s3:AbortMultipartUpload"], f"arn:aws:s3:::{bucket}/out/*"),
            ("secretsmanager:GetSecretValue", aws.arn("secretsmanager", f"secret:{database}/own-??????")),
        )
    )
    allowed = [
        error_of(job.s3.get_object, Bucket=bucket, Key="in/k"),
        error_of(job.s3.put_object, Bucket=bucket, Key="out/new", Body=b"1", IfNoneMatch="*"),
        error_of(job.complete, bucket, "out/parts", *job.upload(bucket, "out/parts", [b"1"])),
        error_of(job.secrets.get_secret_value, SecretId=f"{database}/own"),
    ]
    denied = [
        error_of(job.s3.get_object, Bucket=bucket, Key="out/k"),
        error_of(job.s3.put_object, Bucket=bucket, Key="in/new", Body=b"1"),
        error_of(job.s3.delete_object, Bucket=bucket, Key="out/new"),
        error_of(job.s3.list_objects_v2, Bucket=bucket),
        error_of(job.s3.create_multipart_upload, Bucket=bucket, Key="in/parts"),
        error_of(job.s3.copy_object, Bucket=bucket, Key="out/copy", CopySource=f"{bucket}/out/k"),
        error_of(job.glue.get_database, Name=database),
        error_of(job.secrets.get_secret_value, SecretId=f"{database}/other"),
        error_of(job.secrets.put_secret_value, SecretId=f"{database}/own", SecretString="2"),
    ]
    assert allowed == [None] * 4
    assert set(denied) == {"AccessDenied", "AccessDeniedException"}


def test_credentials_that_are_not_those_that_were_given_are_refused(aws):
    bucket = aws.new_bucket()
    job = aws.assuming(aws.new_role(("s3:*", "*")))
    good = job._credentials
    spoilt = [
        {**good, "SecretAccessKey": "other"},
        {**good, "SessionToken": "other"},
        {**good, "AccessKeyId": "ASIAOTHER"},
    ]
    codes = [
        error_of(type(job)(aws.server, item).s3.list_objects_v2, Bucket=bucket) for item in [good, *spoilt]
    ]
    assert codes == [None, "SignatureDoesNotMatch", "InvalidToken", "InvalidAccessKeyId"]


def test_a_bucket_policy_denies_whom_the_role_allows(aws):
    bucket = aws.new_bucket()
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    job = aws.assuming(aws.new_role(("s3:GetObject", "*")))
    assert error_of(job.s3.get_object, Bucket=bucket, Key="k") is None
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=policy(deny))
    assert json.loads(aws.s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"] == [deny]
    assert error_of(job.s3.get_object, Bucket=bucket, Key="k") == "AccessDenied"


def test_quotas_of_glue_are_listed_for_who_may_list_them(aws):
    quotas = aws.client("service-quotas").list_service_quotas(ServiceCode="glue")["Quotas"]
    assert {quota["QuotaName"] for quota in quotas} == {
        "Max concurrent job runs per account", "Max task DPUs per account",
    }  # fmt: skip
    client = {True: ("servicequotas:ListServiceQuotas", "*"), False: ("glue:*", "*")}
    for allowed, statement in client.items():
        role = aws.assuming(aws.new_role(statement)).client("service-quotas")
        error = None if allowed else "AccessDeniedException"
        assert error_of(role.list_service_quotas, ServiceCode="glue") == error
