"""Probes: how AWS differs from stock MiniStack in Amazon S3."""

import base64
import hashlib
from pathlib import Path

from simulators.tests.aws.probe_kit import probe, refuses
from tests.support.aws_clients import PART, error_of, policy, sha256

MIB = 1024 * 1024


@probe("s3_bodies")
def holds_no_object_in_memory(aws):
    """64 MiB up and down, in a process that may grow by far less."""
    bucket = aws.new_bucket()
    before = _bytes(aws, "VmHWM")
    aws.complete(bucket, "k", *aws.upload(bucket, "k", [bytes(8 * MIB)] * 8))
    received = sum(map(len, aws.s3.get_object(Bucket=bucket, Key="k")["Body"].iter_chunks(MIB)))
    return received == 64 * MIB and _bytes(aws, "VmHWM") - before < 48 * MIB


@probe("s3_bodies")
def holds_no_version_in_memory(aws):
    """Sixteen versions of 8 MiB each."""
    bucket = aws.new_bucket()
    before = _bytes(aws, "VmRSS")
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for _ in range(16):
        aws.s3.put_object(Bucket=bucket, Key="k", Body=bytes(8 * MIB))
    return _bytes(aws, "VmRSS") - before < 64 * MIB


def _bytes(aws, figure):
    status = Path(f"/proc/{aws.server.pid}/status").read_text()
    return int(status.split(f"{figure}:")[1].split()[0]) * 1024


@probe("s3_bodies")
def sends_a_range_of_a_version(aws):
    bucket = aws.new_bucket()
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = aws.s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")["VersionId"]
    got = aws.s3.get_object(Bucket=bucket, Key="k", VersionId=version, Range="bytes=2-4")
    return got["Body"].read() == b"234" and got.get("ContentRange") == "bytes 2-4/10"


def complete(aws, bodies, edit, **upload):
    """Complete an upload of these parts with an edited list."""
    bucket = aws.new_bucket()
    upload_id, parts = aws.upload(bucket, "k", bodies, **upload)
    aws.complete(bucket, "k", upload_id, edit(parts))


def upload_to_sha256(aws, **part):
    """Upload a part to an upload that was created with SHA256."""
    bucket = aws.new_bucket()
    upload_id, _ = aws.upload(bucket, "k", [], ChecksumAlgorithm="SHA256")
    aws.s3.upload_part(Bucket=bucket, Key="k", UploadId=upload_id, PartNumber=1, Body=b"1", **part)


def without_checksums(parts):
    return [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts]


SHA1 = base64.b64encode(hashlib.sha1(b"1").digest()).decode()
for name, code, call in (
    ("refuses_a_small_part", "EntityTooSmall", lambda aws: complete(aws, [b"1", b"2"], list)),
    (
        "refuses_parts_out_of_order",
        "InvalidPartOrder",
        lambda aws: complete(aws, [bytes(PART)] * 2, lambda parts: parts[::-1]),
    ),
    ("refuses_an_empty_list", "MalformedXML", lambda aws: complete(aws, [b"1"], lambda parts: [])),
    (
        "refuses_a_part_without_etag",
        "MalformedXML",
        lambda aws: complete(aws, [b"1"], lambda parts: [{"PartNumber": 1}]),
    ),
    (
        "wants_the_checksum_of_each_part",
        "InvalidRequest",
        lambda aws: complete(aws, [b"1"], without_checksums, ChecksumAlgorithm="SHA256"),
    ),
    (
        "refuses_gaps_between_numbers_of_parts_with_checksums",
        "InvalidPartOrder",
        lambda aws: complete(aws, [bytes(PART)] * 3, lambda parts: parts[::2], ChecksumAlgorithm="SHA256"),
    ),
    ("refuses_a_part_without_the_checksum_of_its_upload", "InvalidRequest", upload_to_sha256),
    (
        "refuses_a_part_with_another_checksum",
        "InvalidRequest",
        lambda aws: upload_to_sha256(aws, ChecksumSHA1=SHA1),
    ),
):
    refuses("s3_multipart", name, code, call)


@probe("s3_limits")
def pages_hold_1000_entries(aws):
    bucket = aws.new_bucket()
    return aws.s3.list_objects_v2(Bucket=bucket, MaxKeys=5000)["MaxKeys"] == 1000


@probe("s3_limits")
def deletes_no_more_than_1000_at_once(aws):
    keys = {"Objects": [{"Key": f"k{number}"} for number in range(1001)]}
    return error_of(aws.s3.delete_objects, Bucket=aws.new_bucket(), Delete=keys) == "MalformedXML"


@probe("s3_limits")
def refuses_a_long_key(aws):
    bucket = aws.new_bucket()
    put = error_of(aws.s3.put_object, Bucket=bucket, Key="k" * 1025, Body=b"")
    begun = error_of(aws.s3.create_multipart_upload, Bucket=bucket, Key="k" * 1025)
    return put == begun == "KeyTooLongError"


@probe("s3_limits")
def answers_with_the_checksum(aws):
    answer = aws.s3.put_object(Bucket=aws.new_bucket(), Key="k", Body=b"1", ChecksumSHA256=sha256(b"1"))
    return answer.get("ChecksumSHA256") == sha256(b"1")


@probe("s3_managed_key")
def an_upload_may_name_no_key(aws):
    bucket = aws.new_bucket()
    return not error_of(aws.s3.put_object, Bucket=bucket, Key="k", Body=b"1", ServerSideEncryption="aws:kms")


@probe("s3_missing_key")
def hides_a_missing_key_from_who_may_not_list(aws):
    bucket = aws.new_bucket()
    reader = aws.assuming(aws.new_role(("s3:GetObject", f"arn:aws:s3:::{bucket}/*")))
    return error_of(reader.s3.get_object, Bucket=bucket, Key="missing") == "AccessDenied"


@probe("secure_transport")
def takes_loopback_for_tls(aws):
    bucket = aws.new_bucket()
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    reader = aws.assuming(aws.new_role(("s3:GetObject", f"arn:aws:s3:::{bucket}/*")))
    tls_only = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": f"arn:aws:s3:::{bucket}/*"}
    tls_only["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=policy(tls_only))
    return error_of(reader.s3.get_object, Bucket=bucket, Key="k") is None
