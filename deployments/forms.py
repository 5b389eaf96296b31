"""What single values of a deployment file look like, and what is said of those that don't."""

from __future__ import annotations

import re
from typing import Final

NAME: Final = r"(?=.{2,20}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
#: Without a hyphen, so that name and stage can be told apart again in what is made of both.
STAGE: Final = r"[a-z][a-z0-9]{1,11}"
REGION: Final = r"[a-z]{2}(-[a-z]+)+-[0-9]"
SECRET_NAME: Final = r"[A-Za-z0-9/_+=.@-]{1,200}"  # noqa: S105  (the form of a name)
LOG_TOPIC: Final = r"[a-z0-9_-]{1,249}"
SNOWFLAKE_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,200}"
_TOPIC: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,248}")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
#: What SNS takes as an address, without the rarities that mail systems disagree about.
_MAIL: Final = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}")
_TAG: Final = re.compile(r"[\w .:/=+@-]{1,256}")


def topic_name(name: str) -> str | None:
    if any(sign.isupper() for sign in name):
        return f"{name!r} has capitals, and Glue and Athena only know small letters: two topics could become one table"
    if not _TOPIC.fullmatch(name):
        return f"{name!r} is not a topic's name: small letters, digits, dots, hyphens and underscores, at most 249"
    return None


def bucket_name(name: str) -> str | None:
    if "." in name:
        return f"{name!r} has a dot, and neither Snowflake nor TLS by host name can use such a bucket"
    if not _BUCKET.fullmatch(name) or name.startswith("xn--") or name.endswith("-s3alias"):
        return f"{name!r} is not a bucket's name: 3 to 63 small letters, digits and hyphens, none of them at the ends"
    return None


def mail_address(address: str) -> str | None:
    return None if _MAIL.fullmatch(address) else f"{address[:60]!r} is not a mail address"


def tag_value(value: str) -> str | None:
    return None if _TAG.fullmatch(value) else f"{value[:60]!r} can't be a tag: letters, digits, blanks and . : / = + @ _ -"


def is_stage(text: str) -> bool:
    return re.fullmatch(STAGE, text) is not None
