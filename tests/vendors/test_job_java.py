"""A job in the embedded Glue starts Java as a local run does.

The two share no module, so each of them has the options.
"""

import json
import os
import shlex
from unittest import mock

from lakeferry.local import spark as local_spark
from tests.support.runtime_kit import new_job, run

#: A job that writes the environment in which Spark's Java starts.
JOB = """
import json, os, sys, boto3
bucket = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--bucket"]
boto3.client("s3").put_object(Bucket=bucket, Key="environment", Body=json.dumps(dict(os.environ)))
"""


def test_heap_and_options_of_java_are_those_of_a_local_run(aws):
    bucket = aws.new_bucket()
    job = new_job(aws, JOB, ("s3:PutObject", f"arn:aws:s3:::{bucket}/*"), arguments={"--bucket": bucket})
    assert run(aws, job)["JobRunState"] == "SUCCEEDED"
    in_glue = json.load(aws.s3.get_object(Bucket=bucket, Key="environment")["Body"])
    with mock.patch.dict(os.environ):
        local_spark.prepare()
        local = dict(os.environ)
    assert _java(in_glue) == _java(local)


def _java(environment):
    """Return the heap, and the options that don't name a file."""
    submit, java = (shlex.split(environment[name]) for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS"))
    heap = submit[submit.index("--driver-memory") + 1]
    return heap, {option for option in java if option.startswith("-XX:") and "Archive" not in option}
