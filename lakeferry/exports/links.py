"""`lakeferry export links`: which links were used, and ending links before their time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import attrs

from config.deployments.export_model import Export
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.exports.deployed import DeployedExport, find_export
from lakeferry.output import Output, find_program_name
from lambdas import contract
from lambdas.links.ledger import Ledger, Revocation

_YES: Final = ("y", "yes")
_ANY: Final = "any"


@attrs.frozen
class UsedLink:
    """A link with which files were downloaded. `recipient` is an address, or the id of somebody who left the
    list. Times are in seconds since 1970.
    """

    window: str
    generation: int
    recipient: str
    downloads: int
    first: int
    last: int
    files: dict[str, int]


@attrs.frozen
class LinkedExport:
    """`addresses` has the recipients of the deployment file by their ids."""

    ctx: DeploymentContext
    deployed: DeployedExport
    settings: Export
    ledger: Ledger
    addresses: dict[str, str]

    def name_recipient(self, recipient: str) -> str:
        return self.addresses.get(recipient, f"{recipient} (no longer in the list)") if recipient else _ANY

    def identify(self, address: str) -> str:
        return contract.build_recipient_id(self.ctx.deployment.prefix, self.settings.contract, address)

    def list_used(self) -> list[UsedLink]:
        """Return the links that were used, those used last first. Raises LakeferryError."""
        used = [
            UsedLink(
                link.window,
                link.generation,
                self.name_recipient(link.recipient),
                downloads.count,
                downloads.first,
                downloads.last,
                downloads.files,
            )
            for link, downloads in self.ledger.list_downloads(self.settings.contract)
        ]
        return sorted(used, key=lambda link: link.last, reverse=True)

    def list_revoked(self) -> list[dict[str, Any]]:
        """Raises LakeferryError."""
        return [
            {
                "at": entry.at,
                "window": entry.window or _ANY,
                "recipient": self.name_recipient(entry.recipient),
            }
            for entry in self.ledger.read_revocations(self.settings.contract)
        ]


def show(output: Output, stage: str, name: str) -> dict[str, Any]:
    """Show which links were used and which are revoked. Raises CommandFailed."""
    with open_context(stage) as ctx:
        export = _find(ctx, name)
        with output.step(f"Reading the links of {name}"), translate_aws_errors(f"reading links of {name}"):
            document = _describe(export)
        _print(output, export, document)
        call = find_program_name()
        output.print(
            f"Next: `{call} export links {name} --stage {stage} --revoke --recipient ADDRESS` ends the links "
            "of one recipient"
        )
        return {**document, "revoked_now": []}


def revoke(
    output: Output, stage: str, name: str, *, recipient: str, windows: str, yes: bool
) -> dict[str, Any]:
    """End the links that were sent until now: of one recipient, of windows, or of both. Raises
    CommandFailed.
    """
    with open_context(stage) as ctx:
        export = _find(ctx, name)
        deployed = export.deployed
        selected = deployed.select(windows, deployed.now) if windows else []
        labels = [window.label for window in selected]
        with translate_aws_errors(f"reading the mails about {name}"):
            _require_recipient(export, recipient)
        _confirm(output, export, recipient, labels, yes=yes)
        now = _read_aws_time(export)
        revocations = [
            Revocation(now, label, export.identify(recipient) if recipient else "")
            for label in labels or [""]
        ]
        with output.step(f"Revoking links of {name}"), translate_aws_errors(f"revoking links of {name}"):
            for revocation in revocations:
                export.ledger.revoke(name, revocation)
            document = _describe(export)
        _print(output, export, document)
        output.print(f"Next: {_advise(export, recipient)}")
        ended = [
            {"at": now, "window": entry.window or _ANY, "recipient": recipient or _ANY}
            for entry in revocations
        ]
        return {**document, "revoked_now": ended}


def _find(ctx: DeploymentContext, name: str) -> LinkedExport:
    """Raises CommandFailed for an export that isn't deployed, or whose mails have no links that open."""
    deployed = find_export(ctx, name)
    settings = next(export for export in ctx.deployment.exports if export.contract == name)
    if settings.link_days is None:
        raise CommandFailed(
            "LINK-NONE",
            f"mails about {name} have no links that open: the deployment file of stage {ctx.stage} has no "
            "link_days for it",
        )
    prefix = f"{ctx.deployment.lake_root}{contract.LINKS}"
    addresses = {
        contract.build_recipient_id(ctx.deployment.prefix, name, address): address
        for address in settings.recipients
    }
    return LinkedExport(ctx, deployed, settings, Ledger(deployed.objects, prefix), addresses)


def _require_recipient(export: LinkedExport, address: str) -> None:
    """Raise CommandFailed for an address that got no mail: ending its links would end those of nobody."""
    if not address or address in export.settings.recipients:
        return
    name = export.settings.contract
    notices = f"{export.ctx.deployment.lake_root}{contract.NOTICES}/{name}/"
    marker = f"/{contract.name_recipient_marker(export.identify(address))}.json"
    if any(listed.key.endswith(marker) for listed in export.deployed.objects.list(notices)):
        return
    raise CommandFailed(
        "LINK-RECIPIENT",
        f"no mail about {name} was sent to {address}, and the deployment file doesn't name it as a recipient",
        f"Recipients are: {', '.join(export.settings.recipients) or 'none'}",
    )


def _read_aws_time(export: LinkedExport) -> int:
    """Return the time of AWS, in seconds since 1970.

    Links are signed by it, and the clock of this machine may differ.
    """
    objects = export.deployed.objects
    with translate_aws_errors(f"asking for bucket {objects.bucket}"):
        answer = objects.client.head_bucket(Bucket=objects.bucket)
    date = answer["ResponseMetadata"]["HTTPHeaders"]["date"]
    return int(parsedate_to_datetime(date).timestamp())


def _describe(export: LinkedExport) -> dict[str, Any]:
    """Raises LakeferryError."""
    return {
        "stage": export.ctx.stage,
        "export": export.settings.contract,
        "days": export.settings.link_days,
        "downloads_allowed": export.settings.link_downloads,
        "links": [attrs.asdict(link) for link in export.list_used()],
        "revoked": export.list_revoked(),
    }


def _confirm(
    output: Output, export: LinkedExport, recipient: str, labels: Sequence[str], *, yes: bool
) -> None:
    """Raises CommandFailed unless the user agrees."""
    if yes:
        return
    what = f"of {recipient}" if recipient else "of all recipients"
    where = f" to {', '.join(labels)}" if labels else " to all windows"
    question = (
        f"End the links {what}{where} of {export.settings.contract} that were sent until now? They can't be "
        "made valid again. Type yes"
    )
    if not output.can_prompt:
        raise CommandFailed(
            "LINK-NOT-CONFIRMED",
            "confirmation is required, and the session is not interactive; no link was ended",
        )
    if output.ask(question).lower() not in _YES:
        raise CommandFailed("STOPPED", "stopped; no link was ended", "Run the command again")


def _print(output: Output, export: LinkedExport, document: dict[str, Any]) -> None:
    settings = export.settings
    output.print(
        f"{settings.contract}: a link works for {settings.link_days} days and {settings.link_downloads} "
        f"downloads; {len(settings.recipients)} recipients get one in each mail."
    )
    rows = [
        [
            link["window"],
            str(link["generation"]),
            link["recipient"],
            str(link["downloads"]),
            _write_time(link["last"]),
            ", ".join(link["files"]),
        ]
        for link in document["links"]
    ]
    if rows:
        output.table(["window", "generation", "recipient", "downloads", "last", "files"], rows)
    else:
        output.print("Nobody has downloaded a file with a link.")
    for entry in document["revoked"]:
        output.print(
            f"Revoked: recipient {entry['recipient']}, window {entry['window']}, links sent until "
            f"{_write_time(entry['at'])}"
        )


def _advise(export: LinkedExport, recipient: str) -> str:
    call = find_program_name()
    if recipient in export.settings.recipients:
        return (
            f"the next mail gives {recipient} a link that works. If that is not wanted, take the address out "
            f"of `recipients`, and run `{call} deploy --stage {export.ctx.stage}`"
        )
    return f"`{call} export links {export.settings.contract} --stage {export.ctx.stage}` shows what is used"


def _write_time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
