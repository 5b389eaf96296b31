"""The context of a resource's verbs, with a scripted server in place of Confluent Cloud."""

from __future__ import annotations

import json

from lambdas.confluent.client import Confluent
from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session, Timeouts
from lambdas.shared.properties import parse
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.resource import Context
from lambdas.shared.secrets import SecretStore
from tests.support.resource_environment import ManualClock, MemorySecrets

ORG = "11111111-2222-4333-8444-555555555555"
ENV = "env-1"
LKC = "lkc-1"
SA = "sa-1"
NAME = "lakeferry-test-eu-west-1-it-0a1b2c3d"
CLUSTER = f"/cmk/v2/clusters/{LKC}"
KAFKA = f"/kafka/v3/clusters/{LKC}"
STATEMENTS = f"/sql/v1/organizations/{ORG}/environments/{ENV}/statements"
IN_ENV = {"environment_id": ENV}
IN_CLUSTER = {**IN_ENV, "cluster_id": LKC}
AVRO = '{"type": "record", "name": "O", "fields": []}'
CONNECTORS = f"/connect/v1/environments/{ENV}/clusters/{LKC}/connectors"
KEY = {"apiKey": "KEY", "apiSecret": "canary-of-the-data-plane"}


def cloud(server):
    clock = ManualClock()
    session = Session(Deadline(clock, clock.time() + 90), timeouts=Timeouts(1, 1, 5))
    return Confluent(session, clock, ApiKey("CLOUD", Secret("canary-of-the-cloud-key")), server.url)


def context(server, *, deleting=False, previous=None, notes=None, owned=False, **secrets):
    """Return a context with the secrets `kafka`, `sr`, `flink`, `tableflow` and `secrets`, and with addresses
    of `server`.
    """
    server.answers.setdefault("GET /org/v2/organizations", (200, {"data": [{"id": ORG}]}))
    server.answers.setdefault("GET /org/v2/environments", (200, {"data": []}))
    give_role(server)
    spec = {"http_endpoint": server.url, "kafka_bootstrap_endpoint": "SASL_SSL://broker:9092"}
    server.answers.setdefault(
        f"GET {CLUSTER}", (200, {"id": LKC, "spec": spec, "status": {"phase": "PROVISIONED"}})
    )
    registry = {"id": "lsrc-1", "spec": {"http_endpoint": server.url}, "status": {"phase": "PROVISIONED"}}
    server.answers.setdefault("GET /srcm/v3/clusters", (200, {"data": [registry]}))
    region = {"id": "aws.eu-west-1", "http_endpoint": server.url}
    server.answers.setdefault("GET /fcpm/v2/regions", (200, {"data": [region]}))
    vendor = cloud(server)
    held = {name: json.dumps(KEY) for name in ("kafka", "sr", "flink", "tableflow")}
    store = SecretStore(MemorySecrets(**held, **secrets))
    notes = {} if notes is None else notes
    return Context(vendor, NAME, store, vendor.clock, notes, previous, deleting, is_owned=lambda: owned)


def give_role(
    server, role="OrganizationAdmin", where="", created="2020-01-01T00:00:00Z", owner="sa-deployer"
):
    """Make the owner of every key `owner`, with one role in the organization or in a part of it."""
    pattern = f"crn://confluent.cloud/organization={ORG}{where}"
    binding = {"id": "rb-owner", "principal": f"User:{owner}", "role_name": role, "crn_pattern": pattern}
    server.answers.setdefault("GET /org/v2/organizations", (200, {"data": [{"id": ORG}]}))
    for key_id in ("CLOUD", "KEY", "k"):
        server.answers.setdefault(f"GET /iam/v2/api-keys/{key_id}", (200, {"spec": {"owner": {"id": owner}}}))

    def answer(sent):
        is_owner = sent.query.get("principal") == f"User:{owner}"
        return listing({**binding, "metadata": {"created_at": created}}) if is_owner else listing()

    server.answers.setdefault("GET /iam/v2/role-bindings", answer)


def spec(kind, **given):
    """Parse a resource type's properties, as strictly as for a new deployment."""
    return parse(kind.PROPERTIES, given, strict=True)


def listing(*items, following=""):
    return 200, {"metadata": {"next": following}, "data": list(items)}


def wrote(server):
    """Return the requests that changed something, or could have."""
    return [(sent.route, sent.body) for sent in server.writes()]
