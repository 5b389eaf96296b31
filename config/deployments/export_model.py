"""What an export in a deployment is: `[[exports]]`."""

from __future__ import annotations

from datetime import date

import attrs

from config.deployments import validation
from config.exports import cron
from config.forms import NAME, explain_implausible_day, find_zone_problem
from config.toml_model import setting


@attrs.frozen
class Export:
    """`[[exports]]`"""

    contract: str = setting("Name of the export contract, project/exports/<name>.toml.", form=NAME)
    cron: str = setting("Schedule: minute, hour, day of month, month, day of week, year.", check=cron.problem)
    zone: str = setting("Time zone of `cron`, from the tz database.", check=find_zone_problem)
    recipients: list[str] = setting(
        "Addresses that get the mails about the export.", default=list, check=validation.mail_address
    )
    first_day: date | None = setting(
        "A day, in the contract's zone, of the first window to export: the first for which this deployment "
        "has events. The default is the contract's.",
        default=None,
        check=explain_implausible_day,
    )
    late_after_hours: int = setting(
        "Hours after the scheduled time at which a run without a result counts as late.",
        default=6,
        minimum=1,
        maximum=144,
    )
    readers: list[str] = setting(
        "ARNs of IAM roles and users that may assume the export's reader role, which reads its files. For a "
        "group of IAM Identity Center, the role of its permission set, with * in place of the last 16 "
        "characters: arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/eu-west-1/"
        "AWSReservedSSO_Analysts_*",
        default=list,
        check=validation.explain_bad_reader,
    )
    link_days: int | None = setting(
        "Days for which the link in a mail opens the files without an AWS login. Each recipient then gets a "
        "mail and a link of their own. Without it, links open for AWS users only.",
        default=None,
        minimum=1,
        maximum=90,
    )
    link_downloads: int = setting(
        "How many files a link downloads at most, all files and days together.",
        default=20,
        minimum=1,
        maximum=1000,
    )
    link_keeps: list[str] = setting(
        "Columns whose personal data the contract keeps, and which a link may deliver nevertheless.",
        default=list,
        form=NAME,
    )
    keep_days: int = setting("Days after which a file is removed.", default=730, minimum=30, maximum=36500)
