"""Formats of single values of a deployment file. Functions return what is wrong with a value, or None."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from config.toml_model import Form

NAME: Final = Form(
    r"(?=.{2,20}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*",
    "2 to 20 lower-case letters, digits and hyphens, a letter first",
)
#: Without a hyphen, so that a prefix, name-stage, can be split again.
STAGE: Final = Form(r"[a-z][a-z0-9]{1,11}", "2 to 12 lower-case letters and digits, a letter first")
#: Regions with AWS Glue (AWS General Reference, "AWS Glue endpoints and quotas"), without those of China and
#: GovCloud.
REGIONS: Final = (
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3",
    "ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4",
    "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "eu-central-1",
    "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3",
    "il-central-1", "me-central-1", "me-south-1", "mx-central-1", "sa-east-1", "us-east-1", "us-east-2",
    "us-west-1", "us-west-2",
)  # fmt: skip
#: Regions in which CloudFormation has no type AWS::Budgets::Budget, by the schemas of each region that
#: CloudFormation publishes and cfn-lint ships. For eu-central-2, users report it too
#: (cloudformation-coverage-roadmap, issue 2177).
NO_BUDGETS: Final = frozenset((
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-south-2", "ap-southeast-3",
    "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-west-1", "eu-central-2",
    "eu-north-1", "eu-south-1", "eu-south-2", "il-central-1", "me-central-1", "mx-central-1",
))  # fmt: skip
#: Quickstarts of the Datagen connector (confluentinc/kafka-connect-datagen, DatagenTask.Quickstart).
QUICKSTARTS: Final = (
    "CAMPAIGN_FINANCE", "CLICKSTREAM", "CLICKSTREAM_CODES", "CLICKSTREAM_USERS", "CREDIT_CARDS",
    "DEVICE_INFORMATION", "FLEET_MGMT_DESCRIPTION", "FLEET_MGMT_LOCATION", "FLEET_MGMT_SENSORS",
    "GAMING_GAMES", "GAMING_PLAYERS", "GAMING_PLAYER_ACTIVITY", "INSURANCE_CUSTOMERS",
    "INSURANCE_CUSTOMER_ACTIVITY", "INSURANCE_OFFERS", "INVENTORY", "ORDERS", "PAGEVIEWS", "PAYROLL_BONUS",
    "PAYROLL_EMPLOYEE", "PAYROLL_EMPLOYEE_LOCATION", "PIZZA_ORDERS", "PIZZA_ORDERS_CANCELLED",
    "PIZZA_ORDERS_COMPLETED", "PRODUCT", "PURCHASES", "RATINGS", "SHOES", "SHOE_CLICKSTREAM",
    "SHOE_CUSTOMERS", "SHOE_ORDERS", "SIEM_LOGS", "STOCK_TRADES", "STORES", "SYSLOG_LOGS", "TRANSACTIONS",
    "USERS", "USERS_",
)  # fmt: skip
FROM_SCHEMA: Final = "schema"
SECRET_NAME: Final = Form(
    r"[A-Za-z0-9/_+=.@-]{1,200}",
    "a secret's name: letters, digits and /_+=.@-, 200 at most",
    quoted=False,
)
LOG_TOPIC: Final = Form(
    r"[a-z0-9_-]{1,249}", "a topic's name: lower-case letters, digits, hyphens and underscores"
)
SNOWFLAKE_NAME: Final = Form(
    r"[A-Za-z_][A-Za-z0-9_]{0,200}", "a name of letters, digits and underscores, no digit first"
)
#: Users are often called like their mail addresses.
SNOWFLAKE_GRANTEE: Final = Form(
    r"[A-Za-z0-9_](?:[A-Za-z0-9_$.@+ -]{0,253}[A-Za-z0-9_$])?",
    "the name of a user or role of the account: letters, digits and _$.@+-, without quotes",
)
SNOWFLAKE_ACCOUNT: Final = Form(
    r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*", "an account's name like myorganization-myaccount, without a domain"
)
ENVIRONMENT_ID: Final = Form(r"env-[a-z0-9]+", "an environment's id like env-abc123")
CLUSTER_ID: Final = Form(r"lkc-[a-z0-9]+", "a Kafka cluster's id like lkc-abc123")
CATALOG_URI: Final = Form(
    r"https://tableflow\.[a-z0-9-]+\.aws\.confluent\.cloud/iceberg/catalog"
    r"/organizations/[0-9a-f-]{36}/environments/env-[a-z0-9]+",
    "the REST Catalog Endpoint that Confluent's console shows under Tableflow, like https://tableflow."
    "eu-west-1.aws.confluent.cloud/iceberg/catalog/organizations/…/environments/env-abc123",
)
REGISTRY_URL: Final = Form(
    r"https://[a-z0-9-]+(?:\.[a-z0-9-]+)*\.confluent\.cloud",
    "the endpoint of Schema Registry that Confluent's console shows, like https://psrc-abc12.eu-west-1."
    "aws.confluent.cloud",
)
CLUSTER_TYPE: Final = Form(
    r"Standard",
    "Standard: Confluent has no roles on single topics of a Basic cluster, and other types are reached "
    "over private networks",
)
ACCOUNT_ID: Final = Form(r"[0-9]{12}", "12 digits in quotes")
#: Of AWS's partition `aws`, to which all REGIONS belong. AWS's own policies have the account `aws`.
POLICY_ARN: Final = Form(
    r"arn:aws:iam::(?:[0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]{1,512}",
    "the ARN of a managed policy like arn:aws:iam::111122223333:policy/boundary",
)
PRINCIPAL_ARN: Final = Form(
    r"arn:aws:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9+=,.@_/-]{1,512}",
    "the ARN of a role or a user like arn:aws:iam::111122223333:role/analysts",
)
KMS_KEY: Final = Form(
    r"arn:aws:kms:[a-z0-9-]{4,25}:[0-9]{12}:key/[A-Za-z0-9-]{1,64}",
    "the ARN of a key like arn:aws:kms:eu-west-1:111122223333:key/1234abcd-…",
)
#: Without a name and password: the address is in the templates.
PROXY: Final = Form(
    r"http://[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?:[0-9]{2,5}",
    "a proxy's address without a login, like http://proxy.example.com:3128",
    quoted=False,
)
#: The beginning of keys in a bucket that others use too. IAM has other meanings for * and ?.
KEY_PREFIX: Final = Form(
    r"(?=.{2,200}$)(?:[A-Za-z0-9][A-Za-z0-9!_.'()-]*/)+",
    "the beginning of keys with a slash at the end, like team/, at most 200 characters",
)
SNS_TOPIC: Final = Form(
    r"arn:aws:sns:[a-z0-9-]{4,25}:[0-9]{12}:[A-Za-z0-9_.-]{1,256}",
    "the ARN of an SNS topic like arn:aws:sns:eu-west-1:111122223333:alarms",
)
SUBNET: Final = Form(r"subnet-[0-9a-f]{8,17}", "a subnet's id like subnet-0a1b2c3d4e5f60718")
SECURITY_GROUP: Final = Form(r"sg-[0-9a-f]{8,17}", "a security group's id like sg-0a1b2c3d4e5f60718")
ZONE: Final = Form(r"[a-z]{2}(?:-[a-z]+)+-[0-9][a-z]", "an availability zone like eu-west-1a")
#: Glue's own rule for names; Tableflow's are ids of clusters or, with a custom name, letters and digits.
GLUE_DATABASE: Final = Form(
    r"[a-z0-9_-]{1,255}", "a database's name: lower-case letters, digits, hyphens and underscores"
)
#: AWS allows 512 characters; ARNs with the path are values of vendors' properties, which are shorter.
IAM_PATH: Final = Form(
    r"(?=.{3,200}$)/(?:[A-Za-z0-9+=,.@_-]+/)+",
    "a path like /team/, with a slash at both ends, at most 200 characters",
)
#: CDK accepts others of up to ten characters, but they end in names of buckets and roles.
QUALIFIER: Final = Form(
    r"[a-z0-9]{1,10}", "the qualifier of `cdk bootstrap`: 1 to 10 lower-case letters and digits"
)
_TOPIC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,248}")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
#: Addresses that SNS accepts, without rare forms that mail systems treat differently.
_MAIL: Final = re.compile(
    r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)
#: What IAM allows, but of blanks only the space.
_TAG: Final = re.compile(r"[\w .:/=+@-]{1,256}")
_LONGEST_TAG_NAME: Final = 128


def region(name: str) -> str | None:
    return (
        None
        if name in REGIONS
        else f"{name[:40]!r} is not an AWS region with Glue{_suggest_name(name, REGIONS)}"
    )


def datagen(name: str) -> str | None:
    if name in (FROM_SCHEMA, *QUICKSTARTS):
        return None
    choices = f'"{FROM_SCHEMA}" or one of {", ".join(QUICKSTARTS)}'
    return (
        f"{name[:40]!r} is not a quickstart of the Datagen connector. Use "
        f"{choices}{_suggest_name(name.upper(), QUICKSTARTS)}"
    )


def _suggest_name(name: str, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, choices)
    return f". Did you mean {close[0]}?" if close else ""


def topic_name(name: str) -> str | None:
    if _TOPIC.fullmatch(name):
        return None
    return (
        f"{name!r} is not a valid name of a topic: letters, digits, dots, hyphens, underscores; at most 249"
    )


def new_topic_name(name: str) -> str | None:
    """Check the name of a topic that Lakeferry creates, whose table has the same name."""
    if any(sign.isupper() for sign in name):
        return (
            f"{name!r} has upper-case letters, and names in Glue and Athena are lower case: two topics "
            "could become one table"
        )
    return topic_name(name)


def bucket_name(name: str) -> str | None:
    if "." in name:
        return f"{name!r} has a dot, and neither Snowflake nor TLS by host name supports such a bucket"
    if not _BUCKET.fullmatch(name) or name.startswith("xn--") or name.endswith("-s3alias"):
        return (
            f"{name!r} is not a valid name of a bucket: 3 to 63 lower-case letters, digits and hyphens, "
            "none of them at the ends"
        )
    return None


def mail_address(address: str) -> str | None:
    return None if _MAIL.fullmatch(address) else f"{address[:60]!r} is not a mail address"


_SENDER: Final = re.compile(r"[A-Za-z0-9 ._&+-]{1,60} <([^<>]+)>")
_DOMAIN: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}")


def explain_bad_sender(sender: str) -> str | None:
    named = _SENDER.fullmatch(sender)
    if _MAIL.fullmatch(named[1] if named else sender):
        return None
    return (
        f"{sender[:80]!r} is no sender: write an address, or a name of ASCII letters, digits, blanks and "
        "._&+- before an address in < and >"
    )


def explain_bad_identity(identity: str) -> str | None:
    if _MAIL.fullmatch(identity) or _DOMAIN.fullmatch(identity):
        return None
    return f"{identity[:60]!r} is neither a domain nor a mail address"


def tag_value(value: str) -> str | None:
    return (
        None
        if _TAG.fullmatch(value)
        else f"{value[:60]!r} can't be the value of a tag: letters, digits, blanks and . : / = + @ _ -"
    )


def tag_name(name: str) -> str | None:
    if _TAG.fullmatch(name) and len(name) <= _LONGEST_TAG_NAME:
        return None
    return f"{name[:60]!r} can't be the name of a tag: 1 to 128 letters, digits, blanks and . : / = + @ _ -"


def is_stage(text: str) -> bool:
    return STAGE.problem(text) is None


_READER: Final = re.compile(
    r"arn:aws:iam::[0-9]{12}:(?:role|user)/(?:[\w+=,.@-]+/)*[\w+=,.@-]{1,64}", re.ASCII
)
_SSO_READER: Final = re.compile(
    r"arn:aws:iam::[0-9]{12}:role/aws-reserved/sso\.amazonaws\.com/(?:[a-z0-9-]+/)?"
    r"AWSReservedSSO_[\w+=,.@-]{1,32}_\*",
    re.ASCII,
)


def explain_bad_reader(arn: str) -> str | None:
    """Return why nobody can read with this ARN, or None."""
    if _READER.fullmatch(arn) or _SSO_READER.fullmatch(arn):
        return None
    if ":assumed-role/" in arn:
        return f"{arn} is a session, which ends. Name its role: arn:aws:iam::<account>:role/<path and name>"
    if "*" in arn:
        return (
            f"{arn} could match roles that you don't know. Only the role of a permission set of IAM Identity "
            "Center may end with _*, in place of its last 16 characters: arn:aws:iam::<account>:role/"
            "aws-reserved/sso.amazonaws.com/<region>/AWSReservedSSO_<permission set>_*"
        )
    return (
        f"{arn} is not the ARN of an IAM role or user, such as arn:aws:iam::111122223333:role/analysts. For "
        "a group of IAM Identity Center, name the role of its permission set"
    )
