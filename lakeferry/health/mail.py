"""SES, for a deployment whose mails it sends: whether it accepts mails of the sender to everybody."""

from __future__ import annotations

from functools import partial
from typing import Final

from botocore.exceptions import ClientError

from config.deployments.mail_model import Mail
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import read_error_code

GROUP: Final = Group("SES")
IDENTITY: Final = "identity of the sender"
SENDING: Final = "sending"
_PAGE: Final = "docs/how-to/send-mails-over-ses.md"


def look(ctx: DeploymentContext) -> list[Check]:
    mail = ctx.deployment.mail
    assert mail is not None  # without [mail], doctor leaves out the group
    return [
        runner.attempt(GROUP, IDENTITY, partial(_check_identity, ctx, mail)),
        runner.attempt(GROUP, SENDING, partial(_check_sending, ctx)),
    ]


def _check_identity(ctx: DeploymentContext, mail: Mail) -> Check:
    """Raises ClientError."""
    identity = mail.verified_identity
    where = f"in {ctx.region}"
    try:
        found = ctx.client("sesv2").get_email_identity(EmailIdentity=identity)
    except ClientError as error:
        if read_error_code(error) != "NotFoundException":
            raise
        fix = f"Create and verify it there, or name another one in `mail.identity`: {_PAGE}"
        return GROUP.fail(IDENTITY, f"SES has no identity {identity} {where}", fix)
    if not found["VerifiedForSendingStatus"]:
        fix = f"Add the DNS records that SES shows, or follow the link in its mail: {_PAGE}"
        return GROUP.fail(IDENTITY, f"{identity} is not verified {where}", fix)
    return GROUP.ok(IDENTITY, identity)


def _check_sending(ctx: DeploymentContext) -> Check:
    """Raises ClientError."""
    account = ctx.client("sesv2").get_account()
    if not account["SendingEnabled"]:
        fix = "Look at the account's reputation in the SES console, and answer AWS's mail about it"
        return GROUP.fail(SENDING, f"AWS has stopped this account's mails in {ctx.region}", fix)
    if not account["ProductionAccessEnabled"]:
        return GROUP.warn(
            SENDING,
            "the account is in SES's sandbox: only verified addresses get mails",
            f"Request production access in the SES console: {_PAGE}",
        )
    return GROUP.ok(SENDING, "production access")
