"""Connectors."""

from __future__ import annotations

import pytest
from confluent_context import AVRO, CONNECTORS, IN_CLUSTER, NAME, SA, context, spec, wrote

from lambdas.confluent.resources import connector
from lambdas.shared.errors import BadProperties, NeedsReplacement, Refused, ResourceMissing, Transient


def connector_spec(**given):
    return spec(connector, service_account_id=SA, **IN_CLUSTER, **{"topic": "trades", "quickstart": "STOCK_TRADES", **given})


CONFIG = {
    "connector.class": "DatagenSource",
    "name": NAME,
    "kafka.auth.mode": "SERVICE_ACCOUNT",
    "kafka.service.account.id": SA,
    "tasks.max": "1",
    "output.data.format": "AVRO",
    "kafka.topic": "trades",
    "quickstart": "STOCK_TRADES",
}
VALIDATE = f"PUT {CONNECTORS.removesuffix('connectors')}connector-plugins/DatagenSource/config/validate"


def expanded(server, state="RUNNING", tasks=("RUNNING",), trace="", **config):
    status = {"connector": {"state": state, "trace": trace}, "tasks": [{"state": task, "msg": trace} for task in tasks]}
    found = {"id": {"id": "lcc-1"}, "info": {"config": {**CONFIG, **config}}, "status": status}
    server.answers[f"GET {CONNECTORS}"] = (200, {"other": {}, NAME: found})


def test_connector_create(server):
    server.answers[VALIDATE] = (200, {"error_count": 0})
    server.answers[f"POST {CONNECTORS}"] = (201, {})
    assert connector.create(context(server), connector_spec()) == NAME
    assert wrote(server) == [(VALIDATE, CONFIG), (f"POST {CONNECTORS}", {"name": NAME, "config": CONFIG})]


def test_connector_with_a_schema_of_one_s_own(server):
    server.answers[VALIDATE] = server.answers[f"POST {CONNECTORS}"] = (200, {})
    own = {"quickstart": "", "schema": AVRO, "schema_key_field": "id", "max_interval_ms": "500"}
    connector.create(context(server), connector_spec(**own))
    sent = wrote(server)[-1][1]["config"]
    data = {"schema.string": AVRO, "schema.keyfield": "id", "max.interval": "500"}
    assert sent == {name: value for name, value in CONFIG.items() if name != "quickstart"} | data


def test_connector_configuration_that_is_not_valid_is_reported_setting_by_setting(server):
    wrong = {"value": {"name": "quickstart", "errors": ["no such data"]}}
    server.answers[VALIDATE] = (200, {"error_count": 1, "configs": [wrong, {"value": {"name": "ok", "errors": []}}]})
    with pytest.raises(Refused, match="quickstart: no such data") as refused:
        connector.create(context(server), connector_spec())
    assert refused.value.row.code == "CFL-CONNECTOR-CONFIG"
    assert len(server.writes()) == 1


@pytest.mark.parametrize("given", [{"quickstart": ""}, {"schema": "{}"}, {"secret_config": {"a": "b#c"}}])
def test_connector_properties_that_do_not_fit(given):
    with pytest.raises(BadProperties):
        connector_spec(**given)


def test_connector_states(server):
    expanded(server)
    assert connector.is_ready(context(server), connector_spec(), NAME) == {"name": NAME, "id": "lcc-1"}
    for state in ("NONE", "PROVISIONING", "DEGRADED", "NEW_WORD"):
        expanded(server, state=state)
        assert connector.is_ready(context(server), connector_spec(), NAME) is None
    for given in ({"state": "FAILED"}, {"tasks": ("RUNNING", "FAILED")}):
        expanded(server, trace="no ACL", **given)
        with pytest.raises(NeedsReplacement, match="no ACL"):
            connector.is_ready(context(server), connector_spec(), NAME)
    assert wrote(server) == []
    expanded(server, state="PAUSED")
    server.answers[f"PUT {CONNECTORS}/{NAME}/resume"] = (202, None)
    assert connector.is_ready(context(server), connector_spec(), NAME) is None
    assert len(server.writes()) == 1
    server.answers[f"GET {CONNECTORS}"] = (200, {})
    with pytest.raises(ResourceMissing):
        connector.is_ready(context(server), connector_spec(), NAME)


def test_connector_update(server):
    server.answers[VALIDATE] = server.answers[f"PUT {CONNECTORS}/{NAME}/config"] = (200, {})
    expanded(server, **{"cloud.provider": "aws", "kafka.service.account.id": "****************"})
    connector.update(context(server), connector_spec(), NAME)
    assert wrote(server) == []
    connector.update(context(server), connector_spec(max_interval_ms="9"), NAME)
    assert wrote(server)[-1] == (f"PUT {CONNECTORS}/{NAME}/config", {**CONFIG, "max.interval": "9"})


def test_connector_delete_believes_the_body_not_the_status(server):
    server.answers[f"DELETE {CONNECTORS}/{NAME}"] = [(200, {"error": {"message": "busy"}}), (200, {"error": None})]
    with pytest.raises(Transient, match="busy"):
        connector.delete(context(server), connector_spec(), NAME)
    connector.delete(context(server), connector_spec(), NAME)
