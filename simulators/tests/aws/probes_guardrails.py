"""Probes: what denies a call besides the permissions of the caller, and how AWS names it."""

from botocore.exceptions import ClientError

from simulators.tests.aws.probe_kit import probe
from tests.support.runtime_kit import control

WORDS = {
    ("service control policy", True): "with an explicit deny in a service control policy",
    ("resource control policy", True): "with an explicit deny in a resource control policy",
    ("permissions boundary", False): "because no permissions boundary allows the glue:GetDatabase action",
    ("session policy", False): "because no session policy allows the glue:GetDatabase action",
    ("VPC endpoint policy", False): "because no VPC endpoint policy allows the glue:GetDatabase action",
}


def said(call, **given):
    try:
        call(**given)
    except ClientError as error:
        return f"{error.response['Error']['Code']}: {error.response['Error']['Message']}"
    return ""


def reader(aws, database):
    resources = [aws.arn("glue", f"database/{database}"), aws.arn("glue", "catalog")]
    role = aws.new_role(("glue:GetDatabase", resources))
    return role, aws.assuming(role)


@probe("guardrails")
def names_what_denies_a_call_that_iam_allows(aws):
    database = aws.new_database()
    role, client = reader(aws, database)
    if said(client.glue.get_database, Name=database):
        return False
    pattern = f"*{role.rpartition('/')[2]}*"
    answers = []
    for (by, explicit), words in WORDS.items():
        denial = {"by": by, "action": "glue:GetDatabase", "principal": pattern, "explicit": explicit}
        control(aws, "guardrails", denials=[denial])
        answer = said(client.glue.get_database, Name=database)
        answers.append(answer.startswith("AccessDeniedException: User: ") and answer.endswith(words))
    control(aws, "guardrails", denials=[])
    return all(answers) and not said(client.glue.get_database, Name=database)


@probe("guardrails")
def wants_a_permission_of_lake_formation_too(aws):
    database = aws.new_database()
    role, client = reader(aws, database)
    control(aws, "lake-formation", governs=True)
    refused = said(client.glue.get_database, Name=database)
    control(aws, "lake-formation", governs=True, grants={role.rpartition("/")[2]: ["DESCRIBE"]})
    granted = said(client.glue.get_database, Name=database)
    control(aws, "lake-formation")
    wanted = (
        f"AccessDeniedException: Insufficient Lake Formation permission(s): Required Describe on {database}"
    )
    return refused == wanted and not granted
