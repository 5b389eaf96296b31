"""Without a valid pseudonymisation key nothing is published.

The record identifies the key without containing it.
"""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest

from glue_jobs.errors import ExportError
from tests.support.job_process import await_held
from tests.support.lake import AS_OF, KEY
from tests.support.things import LINES, TOPIC, ended, events
from tests.support.waiting import PATIENCE


@pytest.fixture
def stocked(lake):
    lake.commit(TOPIC, *events(5), at=AS_OF)
    return lake


def store(lake, **content):
    return boto3.client("secretsmanager").put_secret_value(SecretId=lake.target.pseudonym_secret, **content)[
        "VersionId"
    ]


def key_of(length):
    return json.dumps({"key": base64.b64encode(KEY[:length]).decode()})


def refused(lake, *words):
    with pytest.raises(ExportError) as error:
        lake.export(LINES, *words)
    assert [key for key in lake.keys("exports") if "/runs/" not in key] == []
    return error.value


#: Values of the secret that are not a key.
MALFORMED = {
    "text": {"SecretString": "swordfish-swordfish-swordfish-swordfish"},
    "another object": {"SecretString": '{"password": "swordfish"}'},
    "a list": {"SecretString": '["swordfish"]'},
    "a number": {"SecretString": '{"key": 7}'},
    "not base64": {"SecretString": '{"key": "swordfish!"}'},
    "no key": {"SecretString": "{}"},
    "too short": {"SecretString": key_of(31)},
    "too long": {"SecretString": json.dumps({"key": base64.b64encode(KEY * 3).decode()})},
    "bytes": {"SecretBinary": KEY},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_secret_is_refused_and_not_shown(stocked, what):
    store(stocked, **MALFORMED[what])
    error = refused(stocked)
    assert (error.code, error.exit_code) == ("EXP-KEY-FORM", 2)
    assert stocked.target.pseudonym_secret in error.what
    assert "swordfish" not in str(error)


def test_a_missing_or_forbidden_secret_is_refused(stocked, faults):
    assert refused(stocked, "--pseudonym-secret", "").code == "EXP-KEY-MISSING"
    gone = refused(stocked, "--pseudonym-secret", "nobody-made-it")
    assert (gone.code, "nobody-made-it" in gone.what, gone.exit_code) == ("EXP-KEY-UNREADABLE", True, 1)
    target = {"x-amz-target": "secretsmanager.GetSecretValue"}
    faults.rule(
        {
            "fault": "error",
            "headers": target,
            "status": 400,
            "shape": "aws-json",
            "code": "AccessDeniedException",
        }
    )
    assert "AccessDeniedException" in refused(stocked).what


@pytest.mark.slow
def test_a_key_that_is_rotated_during_a_run_is_used_by_the_next_run(stocked, faults):
    faults.rule({"fault": "hang", "method": "POST", "path": "*/data/*", "query": {"uploads": "*"}})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stocked.export, LINES)
        await_held(faults, ended(running))
        version = store(stocked, SecretString=json.dumps({"key": base64.b64encode(KEY[::-1]).decode()}))
        faults.release()
        before = running.result(PATIENCE)
    old = before.column("who")
    first = before.manifest()["pseudonyms"]["key_version"]
    after = stocked.export(LINES)
    assert (after.state(), after.manifest()["generation"]) == ("published", 2)
    assert (first != version, after.manifest()["pseudonyms"]["key_version"]) == (True, version)
    assert set(old).isdisjoint(after.column("who"))
