"""Notices about exports: invoked by Glue's events, and on a schedule for what events didn't tell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
from botocore.config import Config

from lambdas import contract
from lambdas.handlers.runtime import LambdaContext, client, entry_point, require_variables
from lambdas.notifications import errors as notification_errors
from lambdas.notifications.mailer import Mailer, Notifier
from lambdas.notifications.message import Links
from lambdas.notifications.outcome import ExportSettings
from lambdas.shared import deployment
from lambdas.shared.clock import Clock, SystemClock
from lambdas.shared.errors import Refused
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects
from lambdas.shared.sns import SnsTopics

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

#: What a schedule of ours sends in place of an event of Glue's.
CATCH_UP: Final = {"operation": "catch_up"}
#: A message that is sent again because its answer was lost would be a second mail that nobody counts.
SENT_ONCE: Final = Config(connect_timeout=5, read_timeout=15, retries={"total_max_attempts": 1})


@attrs.frozen
class Settings:
    bucket: str
    prefix: str
    region: str
    alarm_topic: str
    exports: dict[str, ExportSettings]


def on_state_change(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """What is raised ends as a try of Lambda's, then in the dead-letter queue: nothing of a mail's text is in it."""
    with entry_point(event=event.get("id"), job=(event.get("detail") or {}).get("jobName")) as log:
        answer(build(read_settings(os.environ, client("s3")), SystemClock(), log), event, context.invoked_function_arn)
        return {"told": True}


def answer(notifier: Notifier, event: Mapping[str, Any], function_arn: str) -> None:
    """Raises LakeferryError for every event but two kinds: what it sends itself never comes back as one."""
    if event == CATCH_UP:
        notifier.of_late()
        return
    account, region = event.get("account"), event.get("region")
    if event.get("source") != "aws.glue" or event.get("detail-type") != "Glue Job State Change":
        raise Refused(notification_errors.EVENT, "not a change of a Glue job's state")
    if [region, account] != function_arn.split(":")[3:5]:
        raise Refused(notification_errors.EVENT, f"it comes from account {account} in {region}")
    detail = event["detail"]
    notifier.of_job(str(detail["jobName"]), str(detail["jobRunId"]), str(detail["state"]))


def build(settings: Settings, clock: Clock, log: Log) -> Notifier:
    post = Mailer(Objects(client("s3"), settings.bucket), SnsTopics(client("sns", SENT_ONCE)), clock, log)
    links = Links(settings.bucket, settings.region, settings.prefix)
    return Notifier(post, client("glue"), settings.exports, settings.alarm_topic, links)


def read_settings(environment: Mapping[str, str], s3: S3Client) -> Settings:
    """Raises LakeferryError that names all that is missing."""
    require_variables(
        environment, contract.LAKE_BUCKET, contract.LAKE_PREFIX, contract.SETTINGS, contract.TOPIC_ARNS, "AWS_REGION"
    )
    exports = deployment.read(s3, environment[contract.SETTINGS]).exports
    topics = environment[contract.TOPIC_ARNS]
    return Settings(
        bucket=environment[contract.LAKE_BUCKET],
        prefix=environment[contract.LAKE_PREFIX].strip("/"),
        region=environment["AWS_REGION"],
        alarm_topic=environment.get(contract.ALARM_TOPIC, ""),
        exports={one.export: ExportSettings(one.export, one.job, f"{topics}{one.export}", one.zone, one.cron) for one in exports},
    )
