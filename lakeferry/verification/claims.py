"""What a rehearsal claims of a deployment, to which deployment files each claim applies, and which claims
`lakeferry verify` can't ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from config.deployments.model import Deployment

#: Returns why a claim says nothing about a deployment, "" if it does.
Absent = Callable[[Deployment], str]


class Claim(StrEnum):
    PREPARED = "init, secrets, doctor and plan lead to a deployment"
    DEPLOYED = "the real CDK deploys the unmodified templates"
    EVENTS_FLOW = "events flow into Iceberg tables"
    STATUS = "status looks at every hop of every table"
    NEW_ROWS = "Snowflake shows new rows after its refresh"
    SAME_ROWS = "the same question gives the same rows everywhere"
    NAMED_QUERIES = "Athena's named queries run"
    QUERIED = "query shows a table without its hidden columns"
    SNOWFLAKE_PEOPLE = "a person in Snowflake sees the views, and nothing personal"
    ATHENA_PEOPLE = "a person in Athena sees some columns, and nothing personal"
    DOCTOR = "doctor finds nothing wrong"
    BROKEN_TRUST = "doctor names a broken handshake"
    MONITORING = "monitoring measures every hop"
    SUBSCRIPTIONS = "recipients confirm their subscription"
    PUBLISHED = "the schedule fires, and the job publishes the right rows"
    WORKBOOKS = "LibreOffice opens each workbook"
    AGGREGATES = "Athena's named queries run on aggregates"
    SNOWFLAKE_AGGREGATES = "a person in Snowflake sees the aggregates"
    NOT_TWICE = "a second firing publishes nothing twice"
    BACKFILLED = "one command writes past windows, and again it writes nothing"
    VERIFIED = "verify finds nothing wrong"
    FAILURE_MAILED = "a failed run is reported by mail"
    ATTACHED = "small files are attached to the mail"
    LINKS = "the link in a mail opens the file"
    ROTATION = "every secret rotates while a reader reads"
    REVOKED = "a key is rotated and revoked by hand"
    LOGS = "logs finds what a name wrote"
    EDITED = "an edited Flink statement goes on where its old text stopped"
    REPAIRED = "what somebody deleted is reported and created again"
    PERMISSIONS = "permissions that grow are shown before a deployment"
    ROLLBACK = "a failed change rolls back completely"
    UPDATE = "an update changes what the file says and nothing else"
    DESTROYED = "nothing is left over at any vendor"


#: Claims that `lakeferry verify` does not ask about, because asking would change something, and why.
NOT_ASKED: Final[Mapping[Claim, str]] = {
    Claim.PREPARED: "it writes a deployment file and keys",
    Claim.NEW_ROWS: "it writes a record to a topic",
    Claim.SAME_ROWS: "a query of Athena writes its result to the bucket, and one of Snowflake starts "
    "a warehouse",
    Claim.NAMED_QUERIES: "a query of Athena writes its result to the bucket",
    Claim.QUERIED: "a query of Athena writes its result to the bucket",
    Claim.SNOWFLAKE_PEOPLE: "it logs in as somebody else",
    Claim.ATHENA_PEOPLE: "it logs in as somebody else",
    Claim.BROKEN_TRUST: "it changes the trust of a role",
    Claim.AGGREGATES: "a query of Athena writes its result to the bucket",
    Claim.SNOWFLAKE_AGGREGATES: "a query of Athena writes its result to the bucket, and one of Snowflake "
    "starts a warehouse",
    Claim.WORKBOOKS: "it opens the files with another program",
    Claim.NOT_TWICE: "it starts a run",
    Claim.BACKFILLED: "it starts a run",
    Claim.VERIFIED: "it is what this verification shows as a whole",
    Claim.FAILURE_MAILED: "it makes a run fail, and sends a mail",
    Claim.ATTACHED: "the mails are with their recipients",
    Claim.LINKS: "it opens a link of a recipient; `lakeferry export links` shows which were used",
    Claim.REVOKED: "it rotates a key; `lakeferry rotate` shows the keys",
    Claim.LOGS: "it needs a run that fails",
    Claim.EDITED: "it edits a statement",
    Claim.PERMISSIONS: "it changes the deployment file; `lakeferry plan --check` compares with it",
    Claim.ROLLBACK: "it deploys a change that fails",
    Claim.UPDATE: "it deploys a change",
    Claim.DESTROYED: "it destroys the deployment",
}


def explain_no_exports(deployment: Deployment) -> str:
    return "" if deployment.exports else "the file has no export"


def explain_no_mail(deployment: Deployment) -> str:
    if deployment.exports and deployment.mail is None:
        return "the file has no [mail], and SNS sends no files"
    return explain_no_exports(deployment)


def explain_no_links(deployment: Deployment) -> str:
    if deployment.exports and not deployment.exports_with_links:
        return "no export has link_days and a recipient"
    return explain_no_exports(deployment)


def explain_no_tables(deployment: Deployment) -> str:
    return "" if deployment.tables else "the file has no table"


def explain_no_table_in_glue(deployment: Deployment) -> str:
    return "" if deployment.tables_in_glue else "the file has no table in Glue"


def explain_no_snowflake(deployment: Deployment) -> str:
    return "" if deployment.uses_snowflake else "the deployment does not use Snowflake"


def explain_nobody_in_snowflake(deployment: Deployment) -> str:
    snowflake = deployment.snowflake
    if deployment.uses_snowflake and snowflake and not snowflake.grant_to_users:
        return "the file has no grant_to_users"
    return explain_no_snowflake(deployment)


def explain_no_aggregates_in_snowflake(deployment: Deployment) -> str:
    snowflake = deployment.snowflake
    if deployment.uses_snowflake and snowflake and not snowflake.aggregates:
        return "the file has no aggregates = true under [snowflake]"
    return explain_no_snowflake(deployment) or explain_no_exports(deployment)


def explain_nobody_in_athena(deployment: Deployment) -> str:
    return "" if deployment.aws.athena_readers else "the file has no athena_readers"


def explain_no_trust(deployment: Deployment) -> str:
    if deployment.uses_own_bucket or deployment.uses_snowflake:
        return ""
    return "no vendor assumes a role of the deployment"


def explain_no_confluent(deployment: Deployment) -> str:
    return "" if deployment.confluent else "the file has no [confluent], so it creates nothing at a vendor"


def explain_no_statements(deployment: Deployment) -> str:
    return "" if deployment.statements else "the file has no Flink statement"


def explain_no_own_tables(deployment: Deployment) -> str:
    return explain_no_confluent(deployment) or explain_no_tables(deployment)


_ABSENT: Final[Mapping[Claim, Absent]] = {
    Claim.STATUS: explain_no_tables,
    Claim.NEW_ROWS: explain_no_snowflake,
    Claim.SAME_ROWS: explain_no_tables,
    Claim.NAMED_QUERIES: explain_no_table_in_glue,
    Claim.QUERIED: explain_no_table_in_glue,
    Claim.SNOWFLAKE_PEOPLE: explain_nobody_in_snowflake,
    Claim.ATHENA_PEOPLE: explain_nobody_in_athena,
    Claim.BROKEN_TRUST: explain_no_trust,
    Claim.MONITORING: explain_no_tables,
    Claim.PUBLISHED: explain_no_exports,
    Claim.AGGREGATES: explain_no_exports,
    Claim.SNOWFLAKE_AGGREGATES: explain_no_aggregates_in_snowflake,
    Claim.WORKBOOKS: explain_no_exports,
    Claim.NOT_TWICE: explain_no_exports,
    Claim.BACKFILLED: explain_no_exports,
    Claim.FAILURE_MAILED: explain_no_exports,
    Claim.EDITED: explain_no_statements,
    Claim.ATTACHED: explain_no_mail,
    Claim.LINKS: explain_no_links,
    Claim.ROTATION: explain_no_confluent,
    Claim.REVOKED: explain_no_confluent,
    Claim.REPAIRED: explain_no_own_tables,
    Claim.PERMISSIONS: explain_no_exports,
    Claim.ROLLBACK: explain_no_confluent,
}


def explain_absent(claim: Claim, deployment: Deployment) -> str:
    """Return why the claim says nothing about the deployment, "" if it does."""
    explain = _ABSENT.get(claim)
    return explain(deployment) if explain else ""
