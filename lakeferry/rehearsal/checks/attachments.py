"""Check the files in mails over SES: they are those that were published."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from config.deployments.export_model import Export
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require
from lakeferry.verification.claims import Claim
from lambdas import contract


def files_are_attached(harness: Harness) -> list[Result]:
    seen = []
    for export in harness.deployment.exports:
        delivery = harness.ctx.loaded.sources.contract(export.contract, None).delivery
        if delivery.attach_up_to_kb and export.recipients:
            seen.append(_check_newest(harness, export, delivery.attach_up_to_kb))
    if not seen:
        return [
            NotApplicable(Claim.ATTACHED, "no export with recipients has attach_up_to_kb in its contract")
        ]
    return [Check(Claim.ATTACHED, "; ".join(seen), {"exports": len(seen)})]


def _check_newest(harness: Harness, export: Export, most_kb: int) -> str:
    """Return what the newest mail about the newest window of the export has. Raises CheckFailed."""
    manifest = _read_newest_manifest(harness, export)
    window = manifest["window"]["label"]
    files = [file for file in manifest["files"] if file["role"] in contract.ROLES_WITH_ROWS]
    if sum(file["size"] for file in files) > most_kb * 1000:
        files = []
    expected = {PurePosixPath(file["key"]).name: file["sha256"] for file in files}
    address = export.recipients[0]
    mails = [
        mail
        for mail in harness.simulators.ask_aws("GET", "/mail")
        if mail["to"] == address and window in mail["subject"] and f"[{manifest['title']}]" in mail["subject"]
    ]
    require(mails, f"{address} got no mail about {window} of {export.contract}")
    found = {attachment["name"]: attachment["sha256"] for attachment in mails[-1]["attachments"]}
    require(found == expected, f"the mail about {window} has {found}, and {expected} was published")
    return f"{export.contract}: {', '.join(expected) or 'nothing, it is too large'}"


def _read_newest_manifest(harness: Harness, export: Export) -> dict[str, Any]:
    bucket = harness.output("data", "LakeBucketName")
    keys = harness.objects(bucket, f"exports/{export.contract}/manifests/")
    require(keys, f"{export.contract} has published nothing")
    manifest: dict[str, Any] = json.loads(harness.content(bucket, max(keys)))
    return manifest
