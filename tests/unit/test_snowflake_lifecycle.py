"""Snowflake's kinds through the whole lifecycle, over a scripted SQL API that remembers."""

from __future__ import annotations

import re

import pytest
from resource_environment import Invocations, MemorySecrets, Resource, TurnedClock
from snowflake_context import DONE, IAM_USER, POST, READS, ROLE_ARN, failure, result, script, sent, value, vendor, written

from lambdas.shared.errors import Refused, TimedOut


class Roles:
    """Roles of an account, by name, with their comments. `lose` says whose answers get lost after their effect."""

    def __init__(self, server):
        self.comments = {}
        self.lose = 0
        self.server = server
        server.answers[POST] = self.answer

    def answer(self, request):
        statement = request.body["statement"]
        if statement.startswith("SHOW ROLES"):
            return result(*({"name": n, "comment": c} for n, c in self.comments.items()), columns=("name", "comment"))
        verb, name = re.match(r'(CREATE|DROP) ROLE (?:IF EXISTS )?"([^"]+)"', statement).groups()
        if verb == "CREATE" and name in self.comments:
            return failure("002002", f"Object '{name}' already exists.")
        if verb == "CREATE":
            self.comments[name] = statement.partition("COMMENT='")[2].rstrip("'")
        else:
            self.comments.pop(name, None)
        if self.lose:
            self.lose -= 1
            return failure("000604", "SQL execution canceled")
        return DONE


@pytest.fixture
def roles(server):
    return Roles(server)


@pytest.fixture
def invocations(server):
    clock = TurnedClock()
    return Invocations(lambda deadline, clock, store: vendor(server, clock), clock, MemorySecrets())


def role(invocations, **given):
    return Resource(invocations, "snowflake_role", "Reader", **given)


def test_a_role_comes_stays_and_goes(roles, invocations):
    reader = role(invocations)
    name = reader.create()["name"]
    assert re.fullmatch(r"LAKEFERRY_TEST_EU_WEST_1_READER_[0-9A-F]{8}", name)
    assert list(roles.comments) == [name]
    assert roles.comments[name] == "lakeferry " + name.lower().replace("_", "-")
    reader.update()
    reader.delete()
    assert roles.comments == {}
    assert [one.split()[0] for one in written(roles.server)] == ["CREATE", "DROP"]


def test_a_create_whose_answer_is_lost_is_found_again(roles, invocations):
    roles.lose = 1
    role(invocations).create()
    assert len(roles.comments) == 1
    assert len(written(roles.server)) == 1


def test_two_stacks_never_share_a_role(roles, invocations):
    first, second = role(invocations), role(invocations, stack="other")
    assert first.create() != second.create()
    first.delete()
    assert list(roles.comments) == [second.outputs["name"]]


def test_somebody_else_s_role_ends_the_deployment_and_outlives_its_removal(roles, invocations):
    roles.comments["ANALYST"] = "of the data team"
    reader = role(invocations, name="analyst")
    event = reader.event("Create")
    with pytest.raises(Refused, match="SNF-FOREIGN"):
        reader.run(event)
    reader.physical_id = invocations.on_event(event)["PhysicalResourceId"]
    reader.delete()
    assert roles.comments == {"ANALYST": "of the data team"}
    assert written(roles.server) == []


def test_another_stack_s_role_of_the_same_chosen_name_is_somebody_else_s(roles, invocations):
    role(invocations, name="analyst").create()
    with pytest.raises(Refused, match="SNF-FOREIGN"):
        role(invocations, stack="other", name="analyst").create()
    assert len(roles.comments) == 1


def test_a_new_name_is_a_new_role_and_the_old_one_goes(roles, invocations):
    reader = role(invocations, name="one")
    reader.create()
    reader.update(name="two")
    assert list(roles.comments) == ["TWO"]


def test_one_that_is_there_and_can_t_be_seen_is_reported_in_the_end(server, invocations):
    script(server, CREATE=failure("002002", "Object 'X' already exists."))
    with pytest.raises(TimedOut, match="SNF-EXISTS"):
        role(invocations).create()


PLACE = '{"STORAGE_AWS_IAM_USER_ARN": "%s", "STORAGE_AWS_EXTERNAL_ID": "id", "STORAGE_AWS_ROLE_ARN": "r", "STORAGE_BASE_URL": "s3://b/"}'


def test_a_new_role_that_aws_doesn_t_know_everywhere_yet_is_waited_for(server, invocations):
    refusal = {"success": False, "awsRoleArnValidationResult": "FAILED not authorized to perform: sts:AssumeRole"}
    script(
        server,
        **{
            "DESC EXTERNAL VOLUME": result({"property": "STORAGE_LOCATION_1", "property_value": PLACE % IAM_USER}),
            "DESC CATALOG": result({"property": "API_AWS_IAM_USER_ARN", "property_value": IAM_USER}),
            "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME": [value(refusal)] * 5 + [value({"success": True})],
            "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION": value({"errorCode": ""}),
        },
    )
    proof = Resource(invocations, "snowflake_trust", "Proof", volume="V", integration="C")
    assert proof.create() == {"volume": "V", "integration": "C"}
    proof.update(volume="V2")
    proof.delete()
    assert all(statement.startswith(READS) for statement in sent(server))
    script(server, **{"DESC": result(columns=("property",)), "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME": value(refusal)})
    begun = invocations.clock.now
    with pytest.raises(TimedOut, match="SNF-TRUST-ROLE"):
        proof.create()
    assert 600 <= invocations.clock.now - begun < 660


def test_a_replaced_volume_presents_the_external_id_that_the_role_trusts(server, invocations):
    """Another stack's never does."""

    def living(request):
        names = [(one.split()[0], re.search(r'"([^"]+)"', one)[1]) for one in written(server)]
        there = [name for verb, name in names if verb == "CREATE" and ("DROP", name) not in names]
        rows = [{"name": name, "comment": "lakeferry " + name.lower().replace("_", "-")} for name in there]
        return result(*rows, columns=("name", "comment"))

    answer = {"property": "STORAGE_LOCATION_1", "property_value": PLACE % IAM_USER}
    script(server, **{"SHOW EXTERNAL": living, "SHOW ICEBERG": result(columns=("name",)), "DESC": result(answer)})
    given = {"base_url": "s3://bucket-1/", "role_arn": ROLE_ARN}
    ours, other = (Resource(invocations, "snowflake_external_volume", "Volume", stack=one, **given) for one in ("lake", "other"))
    ours.create()
    ours.update(base_url="s3://bucket-2/")
    other.create()
    made = [one for one in written(server) if one.startswith("CREATE EXTERNAL VOLUME")]
    first, second, foreign = (re.search(r"STORAGE_AWS_EXTERNAL_ID='([^']+)'", one)[1] for one in made)
    assert first == second != foreign
    assert len({re.search(r'"([^"]+)"', one)[1] for one in made}) == 3, "three volumes"
