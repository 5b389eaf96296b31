"""Mails and events about exports. EventBridge invokes the function when a run of a Glue job has ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
from botocore.config import Config

from lambdas import contract
from lambdas.handlers.runtime import LambdaContext, entry_point, get_client
from lambdas.notifications import errors as notification_errors
from lambdas.notifications.announcement import Announcer
from lambdas.notifications.mail_links import Links
from lambdas.notifications.mailer import LinkSigner, Notifier
from lambdas.notifications.outcome import ExportSettings
from lambdas.notifications.ses_mailer import SesMailer
from lambdas.notifications.undelivered import Reporter
from lambdas.shared import deployment
from lambdas.shared.clock import Clock, SystemClock
from lambdas.shared.errors import Refused
from lambdas.shared.event_bus import EventBus
from lambdas.shared.link_tokens import parse_keys
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import SecretStore
from lambdas.shared.ses import SesSender
from lambdas.shared.settings import NotificationSettings
from lambdas.shared.sns import SnsTopics

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

#: No retries: if only an answer was lost, botocore's retry would send a second mail that no marker records.
SENT_ONCE: Final = Config(connect_timeout=5, read_timeout=15, retries={"total_max_attempts": 1})


@attrs.frozen
class Settings:
    project: str
    stage: str
    bucket: str
    prefix: str
    notices: str
    region: str
    alarm_topic: str
    exports: dict[str, ExportSettings]
    link_secret: str = ""
    link_url: str = ""
    deployment: str = ""
    mail_sender: str = ""
    mail_configuration_set: str = ""


def on_state_change(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Send the mails about the run that the event names, or report the mail that did not arrive.

    After an exception, Lambda tries again twice; then the event and the exception's message go to the
    dead-letter queue. The message never contains text of a mail.
    """
    with entry_point(event=event.get("id"), job=(event.get("detail") or {}).get("jobName")) as log:
        require_own_event(event, context.invoked_function_arn)
        settings = read_settings(os.environ, get_client("s3"))
        detail = event["detail"]
        if event["source"] == contract.SES_SOURCE:
            open_reporter(settings, log).report(detail)
            return {"mail": detail["mail"]["messageId"]}
        notifier = build(settings, SystemClock(), log, context.aws_request_id)
        notifier.job_ended(str(detail["jobName"]), str(detail["jobRunId"]), str(detail["state"]))
        return {"job_run": detail["jobRunId"]}


def require_own_event(event: Mapping[str, Any], function_arn: str) -> None:
    """Raise Refused unless Glue or SES sent the event, in the function's own account and region."""
    account = event.get("account")
    region = event.get("region")
    is_of_job = event.get("source") == "aws.glue" and event.get("detail-type") == "Glue Job State Change"
    is_of_mail = (
        event.get("source") == contract.SES_SOURCE and event.get("detail-type") in contract.UNDELIVERED
    )
    if not is_of_job and not is_of_mail:
        raise Refused(
            notification_errors.EVENT, "neither a change of a Glue job's state nor a mail that did not arrive"
        )
    if [region, account] != function_arn.split(":")[3:5]:
        raise Refused(notification_errors.EVENT, f"it comes from account {account} in {region}")


def build(settings: Settings, clock: Clock, log: Log, request_id: str) -> Notifier:
    objects = Objects(get_client("s3"), settings.bucket)
    links = Links(settings.bucket, settings.region, settings.prefix)
    announcer = Announcer(
        objects=objects,
        bus=EventBus(get_client("events")),
        clock=clock,
        log=log,
        project=settings.project,
        stage=settings.stage,
        links=links,
        notices=settings.notices,
    )
    return Notifier(
        objects=objects,
        topics=SnsTopics(get_client("sns", SENT_ONCE)),
        glue=get_client("glue"),
        clock=clock,
        log=log,
        exports=settings.exports,
        alarm_topic=settings.alarm_topic,
        links=links,
        notices=settings.notices,
        invocation=request_id,
        signer=_open_signer(settings, clock),
        announce=announcer.announce,
        ses_mailer=_open_ses_mailer(settings),
    )


def open_reporter(settings: Settings, log: Log) -> Reporter:
    return Reporter(
        objects=Objects(get_client("s3"), settings.bucket),
        topics=SnsTopics(get_client("sns", SENT_ONCE)),
        log=log,
        topic=settings.alarm_topic,
        notices=settings.notices,
    )


def _open_ses_mailer(settings: Settings) -> SesMailer | None:
    """Return None for a deployment whose mails SNS sends."""
    if not settings.mail_sender:
        return None
    client = get_client("sesv2", SENT_ONCE)
    return SesMailer(SesSender(client, settings.mail_sender, settings.mail_configuration_set))


def _open_signer(settings: Settings, clock: Clock) -> LinkSigner | None:
    """Return None for a deployment without links. The key is read in each invocation: it may be a new one."""
    if not settings.link_secret:
        return None
    fields = SecretStore(get_client("secretsmanager")).read(settings.link_secret)
    return LinkSigner(parse_keys(fields, settings.deployment), settings.link_url, clock)


def read_settings(environment: Mapping[str, str], s3: S3Client) -> Settings:
    """Raises LakeferryError that names all variables that are missing."""
    variables = NotificationSettings.from_environment(environment)
    exports = deployment.read(s3, variables.settings).exports
    topics = variables.topic_arns
    return Settings(
        project=variables.project,
        stage=variables.stage,
        bucket=variables.bucket,
        prefix=variables.prefix.strip("/"),
        notices=variables.notices,
        region=variables.region,
        alarm_topic=variables.alarm_topic,
        link_secret=variables.link_secret,
        link_url=variables.link_url,
        deployment=variables.deployment,
        mail_sender=variables.mail_sender,
        mail_configuration_set=variables.mail_configuration_set,
        exports={
            export.export: ExportSettings(
                export.export,
                export.job,
                "" if variables.mail_sender else f"{topics}{export.export}",
                export.zone,
                export.cron,
                tuple(export.recipient_ids),
                tuple(export.addresses),
                export.link_days,
            )
            for export in exports
        },
    )
