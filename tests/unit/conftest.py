"""A bucket for tests that need S3's responses, and a server for tests that script them."""

from __future__ import annotations

import itertools

import boto3
import pytest

from glue_jobs.store import Bucket
from tests.support.scripted_server import Scripted

_numbers = itertools.count(1)


@pytest.fixture
def bucket(lake_aws) -> Bucket:
    """A new bucket in the embedded AWS, below a prefix."""
    s3 = boto3.client("s3")
    name = f"unit-{next(_numbers)}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region})
    return Bucket(s3, name, "team/exports")


@pytest.fixture
def server():
    """A loopback server that answers what the test scripts."""
    with Scripted() as scripted:
        yield scripted
