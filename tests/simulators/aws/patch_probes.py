"""For each patch, what tells AWS from stock MiniStack: a probe is true where the server does as AWS does."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import probes_athena
import probes_buckets
import probes_mail
import probes_operations
import probes_runtime
import probes_schedules
import probes_stacks
import probes_workgroups
from aws_clients import PART, error_of, policy, sha256
from rotation_kit import echo, echoing_secret, invoked, steps_told

MIB = 1024 * 1024


def refuses_a_small_part(aws):
    bucket = aws.new_bucket()
    return error_of(aws.complete, bucket, "k", *aws.upload(bucket, "k", [b"1", b"2"])) == "EntityTooSmall"


def refuses_parts_out_of_order(aws):
    bucket = aws.new_bucket()
    upload_id, parts = aws.upload(bucket, "k", [bytes(PART), bytes(PART)])
    return error_of(aws.complete, bucket, "k", upload_id, parts[::-1]) == "InvalidPartOrder"


def refuses_an_empty_list(aws):
    bucket = aws.new_bucket()
    upload_id, _ = aws.upload(bucket, "k", [b"1"])
    return error_of(aws.complete, bucket, "k", upload_id, []) == "MalformedXML"


def refuses_a_part_without_etag(aws):
    bucket = aws.new_bucket()
    upload_id, _ = aws.upload(bucket, "k", [b"1"])
    return error_of(aws.complete, bucket, "k", upload_id, [{"PartNumber": 1}]) == "MalformedXML"


def wants_the_checksum_of_each_part(aws):
    bucket = aws.new_bucket()
    upload_id, parts = aws.upload(bucket, "k", [b"1"], ChecksumAlgorithm="SHA256")
    bare = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts]
    return error_of(aws.complete, bucket, "k", upload_id, bare) == "InvalidRequest"


def wants_each_part_with_the_checksum_of_its_upload(aws):
    bucket = aws.new_bucket()
    upload_id, _ = aws.upload(bucket, "k", [], ChecksumAlgorithm="SHA256")
    part = {"Bucket": bucket, "Key": "k", "UploadId": upload_id, "PartNumber": 1, "Body": b"1"}
    other = {"ChecksumSHA1": base64.b64encode(hashlib.sha1(b"1").digest()).decode()}
    return error_of(aws.s3.upload_part, **part) == error_of(aws.s3.upload_part, **part, **other) == "InvalidRequest"


def holds_no_object_in_memory(aws):
    """64 MiB up and down, in a process that may grow by far less."""
    bucket, before = aws.new_bucket(), _bytes(aws, "VmHWM")
    aws.complete(bucket, "k", *aws.upload(bucket, "k", [bytes(8 * MIB)] * 8))
    received = sum(map(len, aws.s3.get_object(Bucket=bucket, Key="k")["Body"].iter_chunks(MIB)))
    return received == 64 * MIB and _bytes(aws, "VmHWM") - before < 48 * MIB


def holds_no_version_in_memory(aws):
    """Sixteen versions of 8 MiB each."""
    bucket, before = aws.new_bucket(), _bytes(aws, "VmRSS")
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for _ in range(16):
        aws.s3.put_object(Bucket=bucket, Key="k", Body=bytes(8 * MIB))
    return _bytes(aws, "VmRSS") - before < 64 * MIB


def _bytes(aws, figure):
    status = Path(f"/proc/{aws.server.pid}/status").read_text()
    return int(status.split(f"{figure}:")[1].split()[0]) * 1024


def sends_a_range_of_a_version(aws):
    bucket = aws.new_bucket()
    aws.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = aws.s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")["VersionId"]
    got = aws.s3.get_object(Bucket=bucket, Key="k", VersionId=version, Range="bytes=2-4")
    return got["Body"].read() == b"234" and got.get("ContentRange") == "bytes 2-4/10"


def pages_hold_1000_entries(aws):
    bucket = aws.new_bucket()
    return aws.s3.list_objects_v2(Bucket=bucket, MaxKeys=5000)["MaxKeys"] == 1000


def deletes_no_more_than_1000_at_once(aws):
    keys = {"Objects": [{"Key": f"k{number}"} for number in range(1001)]}
    return error_of(aws.s3.delete_objects, Bucket=aws.new_bucket(), Delete=keys) == "MalformedXML"


def refuses_a_long_key(aws):
    bucket = aws.new_bucket()
    put = error_of(aws.s3.put_object, Bucket=bucket, Key="k" * 1025, Body=b"")
    begun = error_of(aws.s3.create_multipart_upload, Bucket=bucket, Key="k" * 1025)
    return put == begun == "KeyTooLongError"


def answers_with_the_checksum(aws):
    answer = aws.s3.put_object(Bucket=aws.new_bucket(), Key="k", Body=b"1", ChecksumSHA256=sha256(b"1"))
    return answer.get("ChecksumSHA256") == sha256(b"1")


def hides_a_missing_key_from_who_may_not_list(aws):
    bucket = aws.new_bucket()
    reader = aws.assuming(aws.new_role(("s3:GetObject", f"arn:aws:s3:::{bucket}/*")))
    return error_of(reader.s3.get_object, Bucket=bucket, Key="missing") == "AccessDenied"


def takes_loopback_for_tls(aws):
    bucket = aws.new_bucket()
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    reader = aws.assuming(aws.new_role(("s3:GetObject", f"arn:aws:s3:::{bucket}/*")))
    tls_only = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": f"arn:aws:s3:::{bucket}/*"}
    tls_only["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=policy(tls_only))
    return error_of(reader.s3.get_object, Bucket=bucket, Key="k") is None


def folds_names_of_tables(aws):
    database = aws.new_database()
    made = error_of(aws.glue.create_table, DatabaseName=database.upper(), TableInput={"Name": "Orders"})
    found = error_of(aws.glue.get_table, DatabaseName=database, Name="ORDERS")
    return made is found is None


def pages_hold_100_tables(aws):
    database = aws.new_database()
    for number in range(101):
        aws.glue.create_table(DatabaseName=database, TableInput={"Name": f"t{number:03}"})
    pages = list(aws.glue.get_paginator("get_tables").paginate(DatabaseName=database))
    names = [table["Name"] for page in pages for table in page["TableList"]]
    return len(pages) == 2 and names == [f"t{number:03}" for number in range(101)]


def misses_the_database_of_a_list(aws):
    return error_of(aws.glue.get_tables, DatabaseName="lkc-none") == "EntityNotFoundException"


def filters_tables_by_regular_expression(aws):
    database = aws.new_database()
    for name in ("orders", "orders_by_day", "trades"):
        aws.glue.create_table(DatabaseName=database, TableInput={"Name": name})
    found = aws.glue.get_tables(DatabaseName=database, Expression="orders.+")["TableList"]
    return [table["Name"] for table in found] == ["orders_by_day"]


def replaces_the_whole_table(aws):
    database = aws.new_database()
    aws.glue.create_table(DatabaseName=database, TableInput={"Name": "t", "Parameters": {"a": "1"}})
    aws.glue.update_table(DatabaseName=database, TableInput={"Name": "t"})
    return aws.glue.get_table(DatabaseName=database, Name="t")["Table"].get("Parameters") == {}


def wants_the_catalog_and_the_database_too(aws):
    database = aws.new_database()
    aws.glue.create_table(DatabaseName=database, TableInput={"Name": "t"})
    chain = [aws.arn("glue", each) for each in (f"table/{database}/t", f"database/{database}", "catalog")]
    codes = [
        error_of(aws.assuming(aws.new_role(("glue:GetTable", allowed))).glue.get_table, DatabaseName=database, Name="t")
        for allowed in (chain, chain[:2], chain[::2], chain[1:])
    ]
    return codes == [None, *["AccessDeniedException"] * 3]


def finds_a_database_by_its_own_arn(aws):
    database = aws.new_database()
    resources = [aws.arn("glue", f"database/{database}"), aws.arn("glue", "catalog")]
    reader = aws.assuming(aws.new_role(("glue:GetDatabase", resources)))
    return error_of(reader.glue.get_database, Name=database) is None


def keeps_a_version_that_has_a_token(aws):
    name, token = aws.new_database(), "t" * 32
    aws.secrets.create_secret(Name=name, SecretString="1")
    aws.secrets.put_secret_value(SecretId=name, SecretString="2", ClientRequestToken=token)
    again = error_of(aws.secrets.put_secret_value, SecretId=name, SecretString="3", ClientRequestToken=token)
    same = error_of(aws.secrets.put_secret_value, SecretId=name, SecretString="2", ClientRequestToken=token)
    now = aws.secrets.get_secret_value(SecretId=name)
    return (again, same, now["SecretString"], now["VersionId"]) == ("ResourceExistsException", None, "2", token)


def names_the_first_version_by_its_token(aws):
    made = aws.secrets.create_secret(Name=aws.new_database(), SecretString="1", ClientRequestToken="u" * 32)
    return made["VersionId"] == "u" * 32


def has_no_value_where_none_was_given(aws):
    name = aws.new_database()
    aws.secrets.create_secret(Name=name)
    return error_of(aws.secrets.get_secret_value, SecretId=name) == "ResourceNotFoundException"


def calls_the_function_in_four_steps(aws):
    name, token = echoing_secret(aws), "v" * 32
    aws.secrets.rotate_secret(SecretId=name, ClientRequestToken=token, RotationLambdaARN=echo(aws))
    return steps_told(aws, name) == ["createSecret", "setSecret", "testSecret", "finishSecret"]


def tests_without_rotating(aws):
    """Only one step; its version is gone afterwards."""
    name = echoing_secret(aws)
    aws.secrets.rotate_secret(SecretId=name, RotationLambdaARN=echo(aws), RotateImmediately=False)
    result = steps_told(aws, name)
    return result == ["testSecret"] and len(aws.secrets.describe_secret(SecretId=name)["VersionIdsToStages"]) == 1


def refuses_a_second_rotation(aws):
    name = echoing_secret(aws)
    aws.secrets.put_secret_value(SecretId=name, SecretString="p", ClientRequestToken="w" * 32, VersionStages=["AWSPENDING"])
    return error_of(aws.secrets.rotate_secret, SecretId=name, RotationLambdaARN=echo(aws)) == "InvalidRequestException"


def refuses_a_function_that_it_may_not_call(aws):
    arn = echo(aws, open_to="events.amazonaws.com")
    return error_of(aws.secrets.rotate_secret, SecretId=echoing_secret(aws), RotationLambdaARN=arn) == "AccessDeniedException"


def refuses_to_rotate_without_a_function(aws):
    return error_of(aws.secrets.rotate_secret, SecretId=echoing_secret(aws)) == "InvalidRequestException"


def keeps_a_label_on_one_version(aws):
    name = echoing_secret(aws)
    for token in ("x" * 32, "y" * 32):
        aws.secrets.put_secret_value(SecretId=name, SecretString=token, ClientRequestToken=token, VersionStages=["AWSPENDING"])
    stages = aws.secrets.describe_secret(SecretId=name)["VersionIdsToStages"]
    return [version for version, held in stages.items() if "AWSPENDING" in held] == ["y" * 32]


def runs_functions_with_the_packages_that_ship(aws):
    return invoked(aws, "def handler(event, context):\n    import attrs, cattrs\n    return 'well'\n") == "well"


#: Modules with probes of their own.
_ELSEWHERE = (
    probes_athena,
    probes_buckets,
    probes_mail,
    probes_operations,
    probes_runtime,
    probes_schedules,
    probes_stacks,
    probes_workgroups,
)
PROBES = {
    "s3_bodies": [holds_no_object_in_memory, holds_no_version_in_memory, sends_a_range_of_a_version],
    "s3_multipart": [
        refuses_a_small_part,
        refuses_parts_out_of_order,
        refuses_an_empty_list,
        refuses_a_part_without_etag,
        wants_the_checksum_of_each_part,
        wants_each_part_with_the_checksum_of_its_upload,
    ],
    "s3_limits": [
        pages_hold_1000_entries,
        deletes_no_more_than_1000_at_once,
        refuses_a_long_key,
        answers_with_the_checksum,
    ],
    "s3_missing_key": [hides_a_missing_key_from_who_may_not_list],
    "secure_transport": [takes_loopback_for_tls],
    "glue_catalog": [
        folds_names_of_tables,
        pages_hold_100_tables,
        misses_the_database_of_a_list,
        filters_tables_by_regular_expression,
        replaces_the_whole_table,
    ],
    "glue_permissions": [wants_the_catalog_and_the_database_too, finds_a_database_by_its_own_arn],
    "secrets_rotation": [
        calls_the_function_in_four_steps,
        tests_without_rotating,
        refuses_a_second_rotation,
        refuses_a_function_that_it_may_not_call,
        refuses_to_rotate_without_a_function,
        keeps_a_label_on_one_version,
    ],
    "lambda_interpreter": [runs_functions_with_the_packages_that_ship],
    "secrets_versions": [
        keeps_a_version_that_has_a_token,
        names_the_first_version_by_its_token,
        has_no_value_where_none_was_given,
    ],
} | {name: probes for module in _ELSEWHERE for name, probes in module.PROBES.items()}
