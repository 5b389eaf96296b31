"""`lakeferry verify` of a window that the real job published: each defect is planted and reported."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest

from config.deployments import deployment_file
from config.exports import contracts
from config.exports.check import NOT_JUDGED
from config.exports.windows import parse_label
from lakeferry.deployment.context import DeploymentContext
from lakeferry.exports.deployed import DeployedExport
from lakeferry.verification import recomputation, windows
from lakeferry.verification.evidence import Outcome
from tests.support.lake import MONDAY, WEEK, column, contract, topic_of
from tests.support.stand_ins import FILE

TOPIC = topic_of(("email", "string"), ("card", "string"), ("n", "int"))
CONTRACT = contract(
    column("id"),
    column("email", personal={"treatment": "hash", "kind": "email"}),
    column("card", personal={"treatment": "mask", "visible": 2}),
    column("n", "integer"),
)
ALL = (windows.FILES, windows.ROWS, windows.COLUMNS, windows.PERSONAL)


@attrs.define
class Published:
    """A published window, and the clone of somebody who verifies it."""

    lake: object
    export: DeployedExport
    manifest_key: str

    @property
    def manifest(self):
        return json.loads(self.lake.read(self.manifest_key))

    @property
    def data(self):
        (file,) = [file for file in self.manifest["files"] if file["role"] == "data"]
        return file

    def verify(self, *, recompute=False):
        window = parse_label(WEEK, self.export.contract.window)
        with windows.open_window(self.export, window) as published:
            found = list(published.check())
            if recompute:
                found.append(recomputation.check(published, is_wanted=True))
        return {finding.claim: finding for finding in found}

    def put(self, key, content):
        self.lake.s3.put_object(Bucket=self.lake.target.bucket, Key=key, Body=content)

    def replace(self, old, new, *, rows=0):
        """Replace a text of the data file, and describe the new file in the manifest, `rows` more rows."""
        content = self.lake.read(self.data["key"]).replace(old.encode(), new.encode())
        manifest = self.manifest
        for file in manifest["files"]:
            if file["role"] == "data":
                file |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                file["rows"] += rows
        manifest["rows"]["rows"] += rows
        self.put(self.data["key"], content)
        self.put(self.manifest_key, json.dumps(manifest).encode())


@pytest.fixture
def published(lake, lake_aws):
    lake.commit(
        TOPIC,
        *({"id": f"k{n}", "at": MONDAY, "email": f"user{n}@example.org", "card": f"4111{n}", "n": n}
          for n in range(20)),
    )  # fmt: skip
    run = lake.export(CONTRACT)
    assert run.state() == "published"
    file = lake.write_contract(CONTRACT)
    text = FILE.format(
        name="verified",
        stage="test",
        on_destroy="delete",
        account="myorganization-myaccount",
        confluent="",
        snowflake="",
    ).replace("eu-west-1", lake_aws.region)
    ctx = DeploymentContext(deployment_file.parse(text, name="test.toml", judge=NOT_JUDGED))
    arguments = dict(zip(lake.target.arguments()[::2], lake.target.arguments()[1::2], strict=True))
    export = DeployedExport(ctx, contracts.load(file), "job", arguments, 60)
    return Published(lake, export, f"{lake.target.prefix}/things/manifests/{WEEK}.json")


def outcomes(found):
    return {claim: finding.outcome for claim, finding in found.items()}


@pytest.mark.slow
def test_what_the_job_published_passes_and_a_second_computation_agrees(published):
    found = published.verify(recompute=True)
    assert outcomes(found) == dict.fromkeys((*ALL, recomputation.RECOMPUTED), Outcome.PASSED), found
    assert found[recomputation.RECOMPUTED].seen.startswith("20 rows of snapshot ")
    assert "treated: email, card" in found[windows.PERSONAL].seen


def test_a_file_that_is_not_the_one_of_the_manifest_fails(published):
    published.put(published.data["key"], published.lake.read(published.data["key"]) + b"x")
    assert published.verify()[windows.FILES].outcome is Outcome.FAILED


def test_a_file_that_is_gone_is_unknown(published):
    published.lake.s3.delete_object(Bucket=published.lake.target.bucket, Key=published.data["key"])
    assert set(outcomes(published.verify()).values()) == {Outcome.UNKNOWN}


def test_a_manifest_that_is_gone_is_unknown(published):
    published.lake.s3.delete_object(Bucket=published.lake.target.bucket, Key=published.manifest_key)
    assert set(outcomes(published.verify()).values()) == {Outcome.UNKNOWN}


def test_a_row_that_the_manifest_does_not_count_fails(published):
    published.replace("k1,", "k1,,***,1\r\nk1,")
    found = outcomes(published.verify())
    assert (found[windows.FILES], found[windows.ROWS]) == (Outcome.PASSED, Outcome.FAILED)


def test_another_column_fails(published):
    published.replace("id,email", "id,mail")
    assert published.verify()[windows.COLUMNS].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("k1,", "ada@example.org,", "id: an e-mail address in 1 rows"),
        (",***17,7", ",41117,7", "card: 1 values without the form"),
    ],
)
def test_personal_data_fails_and_is_not_shown(published, old, new, words):
    published.replace(old, new)
    finding = published.verify()[windows.PERSONAL]
    assert finding.outcome is Outcome.FAILED
    assert words in finding.seen
    assert new.split(",")[new[0] == ","] not in finding.seen


def test_a_value_without_a_pseudonym_fails(published):
    text = published.lake.read(published.data["key"]).decode()
    pseudonym = text.splitlines()[1].split(",")[1]
    published.replace(pseudonym, "user0 at example org")
    finding = published.verify()[windows.PERSONAL]
    assert finding.outcome is Outcome.FAILED
    assert "email: 1 values without the form" in finding.seen
    assert "user0" not in finding.seen


def test_the_file_of_another_version_of_the_contract_is_unknown(published):
    edited = attrs.evolve(published.export.contract, sha256="0" * 64)
    published.export = attrs.evolve(published.export, contract=edited)
    found = outcomes(published.verify(recompute=True))
    assert (found[windows.FILES], found[windows.ROWS]) == (Outcome.PASSED, Outcome.PASSED)
    for claim in (windows.COLUMNS, windows.PERSONAL, recomputation.RECOMPUTED):
        assert found[claim] is Outcome.UNKNOWN


@pytest.mark.slow
def test_a_number_that_was_changed_with_its_manifest_fails_without_showing_rows(published):
    published.replace(",***17,7", ",***17,8")
    found = published.verify(recompute=True)
    assert outcomes(found)[windows.FILES] is Outcome.PASSED
    finding = found[recomputation.RECOMPUTED]
    assert finding.outcome is Outcome.FAILED
    assert finding.seen.endswith("1 that were not expected, and 1 are missing")


@pytest.mark.slow
def test_a_snapshot_that_has_expired_is_unknown(published):
    manifest = published.manifest
    manifest["source"]["snapshot_id"] = 1
    published.put(published.manifest_key, json.dumps(manifest).encode())
    finding = published.verify(recompute=True)[recomputation.RECOMPUTED]
    assert finding.outcome is Outcome.UNKNOWN
    assert "snapshot 1 can't be read" in finding.seen


@pytest.mark.slow
def test_without_the_key_of_pseudonyms_it_is_unknown(published):
    arguments = {**published.export.arguments, "--pseudonym-secret": "nosuch"}
    published.export = attrs.evolve(published.export, arguments=arguments)
    finding = published.verify(recompute=True)[recomputation.RECOMPUTED]
    assert finding.outcome is Outcome.UNKNOWN
    assert "EXP-KEY-UNREADABLE" in finding.seen


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [("--tableflow-secret", "key", "in Confluent's storage"), (None, None, "--no-recompute")],
)
def test_a_second_computation_that_is_not_asked_says_why(published, argument, value, words):
    if argument:
        given = {**published.export.arguments, argument: value}
        published.export = attrs.evolve(published.export, arguments=given)
    with windows.open_window(published.export, parse_label(WEEK, published.export.contract.window)) as window:
        finding = recomputation.check(window, is_wanted=argument is not None)
    assert (finding.outcome, words in finding.seen) == (Outcome.NOT_ASKED, True)
