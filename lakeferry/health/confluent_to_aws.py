"""How Confluent comes into the account, hop by hop: integration, role, bucket, Glue, and what Tableflow says of it all."""

from __future__ import annotations

from typing import Any, Final

import attrs

from lakeferry.cli.output import CommandFailed
from lakeferry.deployment.context import Ground
from lakeferry.health import glue_hops
from lakeferry.health import trust as roles
from lakeferry.health import runner as asking
from lakeferry.health import stack_outputs as parts
from lakeferry.health.model import Check, Group, followed
from lakeferry.health.trust import Comer, Role
from lakeferry.health.stack_outputs import Part
from lambdas import contract
from lambdas.confluent.client import RestClient, get_path, objects, text
from lambdas.confluent.resources import catalog_integration
from lambdas.shared.errors import Denied

GROUP: Final = Group("Confluent → AWS")
INTEGRATION: Final = "provider integration"
ROLE: Final = roles.ROLE
TRUST: Final = "role's trust"
TAGS: Final = "role's trust of tags"
POLICY: Final = roles.POLICY
BUCKET: Final = "bucket"
KEY: Final = "Tableflow key"
CATALOG: Final = "catalog integration"
NAMES: Final = (INTEGRATION, ROLE, TRUST, TAGS, POLICY, BUCKET, KEY, CATALOG)
_TOPICS: Final = "/tableflow/v1/tableflow-topics"
_AGAIN: Final = "Run `lakeferry deploy --repair`: it creates again what is missing"
_OTHER: Final = (
    "Somebody changed or replaced it. Delete it, then run `lakeferry deploy --repair`: it creates it as the stack wants it"
)
_RESUME: Final = "Resume it then in Confluent's console, under Tableflow"


@attrs.frozen
class Hops:
    """`environment` and `cluster` are ids."""

    here: Ground
    part: Part
    bucket: str

    @property
    def environment(self) -> str:
        return self.part.outputs.get("EnvironmentId", "")

    @property
    def cluster(self) -> str:
        return self.part.outputs.get("KafkaClusterId", "")

    @property
    def query(self) -> dict[str, str]:
        return {"environment": self.environment, "spec.kafka_cluster": self.cluster}


def look(here: Ground) -> list[Check]:
    """Raises CommandFailed where CloudFormation can't be asked."""
    topics, tables = [_of_topic(topic) for topic in here.deployment.tables], glue_hops.names(here)
    confluent, data = parts.read(here, "confluent"), parts.read(here, "data")
    if isinstance(confluent, str) or isinstance(data, str):
        why = confluent if isinstance(confluent, str) else str(data)
        return GROUP.all_none((*NAMES, *topics, *tables), f"not deployed: {why}")
    hops = Hops(here, confluent, data.outputs.get("TableflowBucketName", ""))
    seen = [*_into_aws(hops), *_tableflow(hops), *glue_hops.look(here, GROUP, hops.cluster, hops.bucket)]
    return followed(seen, dict.fromkeys((CATALOG, *topics, *tables), ()), _RESUME)


def _into_aws(hops: Hops) -> list[Check]:
    restore = roles.restored(hops.here, "confluent")
    integration = asking.found(GROUP, INTEGRATION, lambda: _integration(hops))
    known = integration if isinstance(integration, Check) else _known(hops, integration)
    there, role = roles.there(hops.here, GROUP, parts.role_name(hops.here, "tableflow"), restore)
    seen = [known, there]
    if role and isinstance(integration, dict):
        seen += _trust(role, integration, restore)
    else:
        seen += GROUP.all_none((TRUST, TAGS), "not asked: one side isn't known")
    if role:
        seen.append(asking.tried(GROUP, POLICY, lambda: roles.may(hops.here, GROUP, role, _needs(hops), restore)))
    else:
        seen.append(GROUP.none(POLICY, "not asked: the role isn't known"))
    return [*seen, asking.tried(GROUP, BUCKET, lambda: glue_hops.bucket(hops.here, GROUP, hops.bucket))]


def _integration(hops: Hops) -> dict[str, Any] | None:
    name = hops.part.named("provider_integration")
    listed = hops.here.confluent().cloud.pages("/pim/v1/integrations", environment=hops.environment)
    return next((one for one in listed if text(one, "display_name") == name), None)


def _known(hops: Hops, found: dict[str, Any] | None) -> Check:
    wanted = parts.role_arn(hops.here, "tableflow")
    if found is None:
        return GROUP.fail(INTEGRATION, f"{hops.part.named('provider_integration')} is not there", _AGAIN)
    role = text(found, "config", "customer_iam_role_arn")
    if role != wanted:
        return GROUP.fail(INTEGRATION, f"{text(found, 'id')} comes by role {role or '(none)'}", _OTHER, wanted)
    comes = f"as {text(found, 'config', 'iam_role_arn')} with external id {text(found, 'config', 'external_id')}"
    return GROUP.ok(INTEGRATION, f"{text(found, 'id')} comes {comes}")


def _trust(role: Role, integration: dict[str, Any], restore: str) -> list[Check]:
    principal, external_id = (text(integration, "config", name) for name in ("iam_role_arn", "external_id"))
    comers = [Comer(TRUST, "sts:AssumeRole", principal, external_id), Comer(TAGS, "sts:TagSession", principal)]
    return [roles.trusts(GROUP, role, comer, restore) for comer in comers]


def _needs(hops: Hops) -> dict[str, tuple[str, ...]]:
    return glue_hops.needs(hops.here, contract.TABLEFLOW_NEEDS, hops.bucket, hops.cluster)


def _tableflow(hops: Hops) -> list[Check]:
    """With the deployment's own key: Tableflow answers to no other."""
    secret, topics = parts.tableflow_secret(hops.here), [_of_topic(topic) for topic in hops.here.deployment.tables]
    plane = asking.found(GROUP, KEY, lambda: _plane(hops, secret))
    if isinstance(plane, Check):
        return [plane, *GROUP.all_none((CATALOG, *topics), "not asked: there is no way to Tableflow")]
    catalog = asking.tried(GROUP, CATALOG, lambda: _catalog(hops, plane))
    shown = asking.found(GROUP, topics[0] if topics else CATALOG, lambda: plane.pages(_TOPICS, **hops.query))
    if isinstance(shown, Check):
        return [GROUP.ok(KEY, f"{plane.key.id}, in {secret}"), catalog, shown]
    tables = [_table(name, topic.name, shown) for name, topic in zip(topics, hops.here.deployment.tables, strict=True)]
    return [GROUP.ok(KEY, f"{plane.key.id}, in {secret}"), catalog, *tables]


def _plane(hops: Hops, secret: str) -> RestClient:
    """Raises CommandFailed where the key isn't one for Tableflow, or not any more."""
    plane = hops.here.confluent().tableflow(hops.here.secrets.read_key(secret))
    try:
        plane.get(plane.probe)
    except Denied as denied:
        hint = f"Replace it: `lakeferry rotate {secret} --now --stage {hops.here.stage}`"
        raise CommandFailed(denied.row.code, f"{denied.what}, with the key in {secret}", hint) from None
    return plane


def _catalog(hops: Hops, plane: RestClient) -> Check:
    if not hops.here.deployment.tables_in_glue:
        return GROUP.none(CATALOG, "not asked: the deployment file wants no table in Glue")
    found = plane.pages(catalog_integration.ROUTE, **hops.query)
    if not found:
        return GROUP.fail(CATALOG, f"cluster {hops.cluster} has none", _AGAIN)
    return _of_catalog(hops, found[0])


def _of_catalog(hops: Hops, found: dict[str, Any]) -> Check:
    id, phase, reason = text(found, "id"), text(found, "status", "phase"), text(found, "status", "error_message")
    database = text(found, "spec", "config", "custom_database")
    if database and database != hops.cluster:
        fix = f"Set its database back to {hops.cluster} in Confluent's console"
        return GROUP.fail(CATALOG, f"{id} shows tables in Glue database {database}", fix, hops.cluster)
    if phase == "FAILED" or get_path(found, "spec", "suspended") is True:
        state = "FAILED" if phase == "FAILED" else "suspended"
        return GROUP.fail(CATALOG, f"{id} is {state}: {reason or 'no reason given'}", f"Mend that. {_RESUME}")
    if phase == "PENDING":
        return GROUP.warn(CATALOG, f"{id} is PENDING until the first table is written", "Wait; a table takes some ten minutes")
    return GROUP.ok(CATALOG, f"{id} is {phase}")


def _table(name: str, topic: str, shown: list[dict[str, Any]]) -> Check:
    found = next((one for one in shown if text(one, "spec", "display_name") == topic), None)
    if found is None:
        return GROUP.fail(name, f"Tableflow of topic {topic} is off", _AGAIN)
    phase, reason = text(found, "status", "phase"), text(found, "status", "error_message") or "no reason given"
    if get_path(found, "spec", "suspended") is True:
        return GROUP.fail(name, f"suspended: {reason}", f"Mend that. {_RESUME}")
    if phase == "FAILED":
        return GROUP.fail(name, f"FAILED: {reason}", f"Mend that. {_RESUME}")
    for status in objects(found, "status", "catalog_sync_statuses"):
        if text(status, "sync_status") in ("FAILED", "DISCONNECTED"):
            told = f"{phase}, and its catalog {text(status, 'sync_status')}: {text(status, 'error_message') or 'no reason given'}"
            return GROUP.fail(name, told, f"Mend that. {_RESUME}")
    return GROUP.ok(name, phase) if phase == "RUNNING" else GROUP.warn(name, phase, "Wait; a table takes some ten minutes")


def _of_topic(topic: Any) -> str:
    return f"Tableflow of {topic.name}"
