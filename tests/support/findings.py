"""The policy linter: lists policies in the templates that allow too much."""

from __future__ import annotations

from tests.support.policies import Reader

#: Actions of CloudWatch, Logs and others that have no resource.
WITHOUT_RESOURCE = {"cloudwatch:PutMetricData"}
#: Actions of X-Ray, which have neither a resource nor a condition.
OF_TRACES = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
#: Reads the account's settings of Lake Formation, which have neither a resource nor a condition. Source:
#: Service Authorization Reference, "Actions, resources, and condition keys for AWS Lake Formation".
OF_LAKE_FORMATION = {"lakeformation:GetDataLakeSettings"}
#: Services that act for others, so that a trust must say for whom.
DEPUTIES = {
    "glue.amazonaws.com",
    "scheduler.amazonaws.com",
    "secretsmanager.amazonaws.com",
    "cloudwatch.amazonaws.com",
}


def lint(assembly):
    reader = Reader(assembly)
    return [*_documents(assembly), *_grants(reader), *_trusts(reader), *_invocations(assembly)]


def _documents(assembly):
    for part, template in assembly.templates.items():
        for logical_id, body in template["Resources"].items():
            for statement in _statements(body.get("Properties", {})):
                where = f"{part}.{logical_id}"
                if {"NotAction", "NotResource", "NotPrincipal"} & statement.keys():
                    yield f"{where}: says what is excluded, not what is included"
                if statement["Effect"] == "Allow" and statement.get("Principal") in ("*", {"AWS": "*"}):
                    yield f"{where}: everybody"


def _statements(value):
    if isinstance(value, dict):
        if "Effect" in value and ("Action" in value or "NotAction" in value):
            yield value
        for inner in value.values():
            yield from _statements(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _statements(inner)


def _grants(reader):
    for body in reader.roles().items():
        role, properties = body
        if properties.get("ManagedPolicyArns"):
            yield f"{role}: has a policy that somebody else may change"
    for grant in reader.grants():
        where = f"{grant.role} {grant.sid}".strip()
        for action in grant.actions:
            if "*" in action:
                yield f"{where}: action {action}"
            if action.lower() == "iam:passrole":
                yield f"{where}: can pass any role"
            if action.lower().startswith(("iam:", "sts:", "kms:put", "kms:creategrant", "organizations:")):
                yield f"{where}: {action} grants more permissions"
        actions = set(grant.actions)
        bound = (
            (actions <= WITHOUT_RESOURCE and grant.conditions)
            or actions <= OF_TRACES
            or actions <= OF_LAKE_FORMATION
        )
        if "*" in grant.resources and not bound:
            yield f"{where}: any resource"
        if any(action.startswith("kms:") for action in grant.actions) and not _is_bound(grant):
            yield f"{where}: a key for any service"


def _is_bound(grant):
    """Return whether a grant is limited to one service, or to the key of one topic."""
    return "kms:ViaService" in grant.conditions.get("StringEquals", {}) or "AlarmKey" in str(grant.resources)


def _trusts(reader):
    for role, statement in reader.trusts():
        conditions = statement.get("Condition", {}).get("StringEquals", {})
        named = statement["Principal"]
        # A reader's role trusts accounts on the condition that the caller is one of its readers.
        readers = statement.get("Condition", {}).get("ArnLike", {}).get("aws:PrincipalArn", [])
        is_bound = "sts:ExternalId" in conditions or (readers and not any("*" in arn for arn in readers))
        if "AWS" in named and statement["Action"] == "sts:AssumeRole" and not is_bound:
            yield f"{role}: {named['AWS']} without an external id"
        if "AWS" in named and statement["Action"] not in ("sts:AssumeRole", "sts:TagSession"):
            yield f"{role}: {named['AWS']} may {statement['Action']}"
        if named.get("Service") in DEPUTIES and "aws:SourceAccount" not in conditions:
            yield f"{role}: {named['Service']} for any account"


def _invocations(assembly):
    for (part, logical_id), body in assembly.resources("AWS::Lambda::Permission").items():
        if "SourceArn" not in body:
            yield f"{part}.{logical_id}: {body['Principal']} for any caller"
        if body["Principal"] in DEPUTIES and "SourceAccount" not in body:
            yield f"{part}.{logical_id}: {body['Principal']} for any account"
