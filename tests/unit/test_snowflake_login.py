"""The login at Snowflake: whose it is, what its role sees, and how long its tokens and clocks are trusted."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from authlib.jose import jwt as other_jwt

from lambdas.shared.errors import Denied, LakeferryError, Transient
from lambdas.snowflake import sql
from lambdas.snowflake.client import (
    Login,
    Snowflake,
    build_account_url,
    require_account,
    to_account_claim,
)
from tests.support.resource_environment import ManualClock
from tests.support.snowflake_context import DONE, MISSING, POST, failure, pair, result, script, vendor

SHOW = sql.statement("SHOW ROLES")
HANDLE = "01b2-q"
POLL = f"GET /api/v2/statements/{HANDLE}"
UNKNOWN = failure("390144", "JWT token is invalid.", 401)


def claims(sent):
    return other_jwt.decode(sent.headers["authorization"].removeprefix("Bearer "), pair().public_pem)


# --- whose it is


def test_who_the_login_is(server):
    client = vendor(script(server))
    assert (client.creator, client.principal) == ("DEPLOYER", "deployer in role DEPLOYER")
    assert (client.host, client.url) == ("127.0.0.1", server.url)
    assert client.NAMES_ARE_UNIQUE is True
    wrong = client.wrong_tenant("CD1.AWS_EU_WEST_1")
    message = "it is in account CD1.AWS_EU_WEST_1, and myorg-acct is account AB12345.AWS_EU_WEST_1"
    assert wrong.what == message
    assert len(server.sent) == 1, "an account doesn't change its locator"


@pytest.mark.parametrize("shown", [{"LOCATOR": "A", "REGION": None}, {"LOCATOR": "", "REGION": "R"}])
def test_half_a_tenant_is_none(server, shown):
    script(server, **{"SELECT CURRENT_ACCOUNT()": result(shown)})
    with pytest.raises(Transient, match="SNF-UNEXPECTED  Snowflake doesn't say which account this is"):
        _ = vendor(server).tenant


def test_the_address_follows_from_the_account_unless_it_is_given():
    assert Snowflake(None, None, Login("Org.acct", "u", "R"), pair()).url == (
        "https://org-acct.snowflakecomputing.com"
    )
    given = Snowflake(None, None, Login("a", "u", "R"), pair(), "https://proxy.box/")
    assert (given.url, given.host) == ("https://proxy.box", "proxy.box")


@pytest.mark.parametrize(
    ("account", "claim", "host"),
    [
        ("A", "A", "a"),
        ("xy1.aws", "XY1", "xy1.aws"),
        ("xy1.AZURE", "XY1", "xy1.azure"),
        ("xy1.gcp", "XY1", "xy1.gcp"),
        ("myorg.acct.privatelink", "MYORG-ACCT", "myorg-acct.privatelink"),
        ("my_org.acct.eu-west-1.aws", "MY_ORG-ACCT", "my-org-acct.eu-west-1.aws"),
        ("acct-ext1-2.global", "ACCT", "acct-ext1-2.global"),
        ("acct.global", "ACCT", "acct.global"),
    ],
)
def test_accounts_with_and_without_a_location(account, claim, host):
    assert require_account(account) == account
    assert to_account_claim(account) == claim
    assert build_account_url(account) == f"https://{host}.snowflakecomputing.com"


def test_a_text_that_is_no_account_is_shown():
    with pytest.raises(LakeferryError, match="NET-ADDRESS  'a/b' is not the name of a Snowflake account"):
        require_account("a/b")


# --- what its role sees


def grants(*rows):
    return result(*rows, columns=("privilege", "granted_on", "name"))


def granted(privilege, granted_on="ROLE", name="A"):
    return {"privilege": privilege, "granted_on": granted_on, "name": name}


MANAGES = granted("MANAGE GRANTS", "ACCOUNT", "ACCT")


@pytest.mark.parametrize(
    ("of_deployer", "sees"),
    [
        (grants(granted("USAGE")), True),
        (grants(granted("USAGE", name='"a"'), granted("USAGE")), True),
        (grants(granted("USAGE", name="B"), granted("USAGE")), True),
        (grants(granted("USAGE"), granted("USAGE", name="B")), True),
        (grants(granted("USAGE"), granted("USAGE", name='"a"')), True),
        (grants(granted("OWNERSHIP")), False),
        (grants(granted("USAGE", "WAREHOUSE")), False),
        (grants(granted("MANAGE GRANTS", "ROLE", "B")), False),
        (grants(granted("USAGE", "ACCOUNT", "B")), False),
        (grants(granted("CREATE DATABASE", "ACCOUNT", "B")), False),
        (grants(granted("MANAGE GRANTS", "A", "B")), False),
        (grants(granted("USAGE", "DATABASE")), False),
        (grants(granted("WRITE")), False),
        (MISSING, False),
        (failure("003001", "Insufficient privileges"), False),
    ],
)
def test_only_membership_leads_to_the_rights_of_another_role(server, of_deployer, sees):
    """Role A manages grants; the grants of role B can't be read."""
    script(
        server,
        **{
            'SHOW GRANTS TO ROLE "DEPLOYER"': of_deployer,
            'SHOW GRANTS TO ROLE "A"': grants(MANAGES),
            'SHOW GRANTS TO ROLE "B"': MISSING,
            'SHOW GRANTS TO ROLE "a"': failure("003001", "Insufficient privileges"),
        },
    )
    client = vendor(server)
    for _ in range(2):
        if sees:
            client.require_sight(None)
            continue
        with pytest.raises(Denied) as unseen:
            client.require_sight(None)
        reason = "role DEPLOYER sees only what it owns or has privileges on"
        assert unseen.value.what == f"whether it still exists can't be told: {reason}"
        assert (unseen.value.kind.code, unseen.value.patience) == ("SNF-UNSEEN", 0.0)
    statements = [sent.body["statement"] for sent in server.sent]
    assert len(statements) == len(set(statements)), "grants are read once"


def test_roles_that_contain_each_other_are_read_once(server):
    members = grants(granted("USAGE", name="A"), granted("USAGE", name="DEPLOYER"))
    script(server, **{"SHOW GRANTS": members})
    with pytest.raises(Denied):
        vendor(server).require_sight(None)
    assert len(server.sent) == 2


def test_a_failure_is_no_missing_right(server):
    script(server, **{"SHOW GRANTS": failure("000604", "cancelled")})
    with pytest.raises(Transient):
        vendor(server).require_sight(None)


# --- statements


def test_the_namespace_of_a_login_is_that_of_its_statements(server):
    server.answers[POST] = DONE
    for namespace in ((), ("D",), ("D", "S")):
        vendor(server, namespace=namespace, warehouse="").run(SHOW)
    named = [{name: sent.body.get(name) for name in ("database", "schema")} for sent in server.sent]
    assert named == [
        {"database": None, "schema": None},
        {"database": "D", "schema": None},
        {"database": "D", "schema": "S"},
    ]
    assert "warehouse" not in server.sent[0].body


def test_a_poll_has_no_body_and_no_parameters(server):
    server.answers[POST] = (202, {"statementHandle": HANDLE})
    server.answers[POLL] = [(503, None), result({"a": "1"})]
    assert vendor(server).run(SHOW) == [{"a": "1"}]
    assert [(sent.body, sent.query) for sent in server.sent[1:]] == [(None, {})] * 2


def test_partitions_after_the_first_are_asked_for_by_number(server):
    status, body = result({"n": "0"})
    body["resultSetMetaData"] |= {"partitionInfo": [{}, {}, {}], "numRows": 3}
    server.answers[POST] = (status, body)
    server.answers[POLL] = [(200, {"data": [["1"]]}), (200, {"data": [["2"]]})]
    assert [row["n"] for row in vendor(server).run(SHOW)] == ["0", "1", "2"]
    assert [sent.query for sent in server.sent[1:]] == [{"partition": "1"}, {"partition": "2"}]


@pytest.mark.parametrize("data", [[["1", "2"]], [["1"]], [["1", "2", "3"]]])
def test_a_row_has_the_columns_that_have_a_value(server, data):
    status, body = result({"A": "", "B": ""})
    server.answers[POST] = (status, {**body, "data": data})
    assert vendor(server).run(SHOW) == [dict(zip(("a", "b"), data[0], strict=False))]


def test_a_row_that_is_no_list_is_missing(server):
    status, body = result({"A": "1"})
    server.answers[POST] = (status, {**body, "data": ["1"]})
    message = r"SHOW ROLES: HTTP 200, .* \(query id 01b2-q\): an answer without all of its rows"
    with pytest.raises(Transient, match=message):
        vendor(server).run(SHOW)


def test_values_that_are_no_text_become_text(server):
    server.answers[POST] = result({"A": 7, "B": True, "C": None})
    assert vendor(server).run(SHOW) == [{"a": "7", "b": "True", "c": ""}]
    assert vendor(server).value(SHOW) == "7"


@pytest.mark.parametrize("code", ["391907", "391909", ""])
def test_an_answer_with_another_code_is_whole(server, code):
    server.answers[POST] = result({"A": "1"}, code=code)
    assert vendor(server).run(SHOW) == [{"a": "1"}]


def test_an_answer_without_a_handle_is_named(server):
    server.answers[POST] = (202, {})
    with pytest.raises(Transient, match="SNF-UNEXPECTED  SHOW ROLES: an answer without a statement handle"):
        vendor(server).run(SHOW)


def test_a_document_that_is_not_there_is_none(server):
    server.answers[POST] = result(columns=("RESULT",))
    assert vendor(server).document(SHOW) is None


# --- tokens and clocks


@pytest.mark.parametrize(("seconds", "is_new"), [(30, False), (31, True), (-30, False), (-31, True)])
def test_a_token_is_renewed_after_half_a_minute_in_either_direction(server, seconds, is_new):
    server.answers[POST] = DONE
    clock = ManualClock()
    client = vendor(server, clock, left=900)
    client.run(SHOW)
    clock.now += seconds
    client.run(SHOW)
    first, second = map(claims, server.sent)
    assert (second["iat"] - first["iat"]) == (seconds if is_new else 0)
    assert {token["exp"] - token["iat"] for token in (first, second)} == {600}


def at(seconds, answer=UNKNOWN):
    """Return an answer of a server at this time."""
    return (*answer, {"Date": formatdate(seconds, usegmt=True)})


@pytest.mark.parametrize(
    ("ahead", "correction"), [(0, None), (0.9, None), (1, "+1"), (-1, "-1"), (-0.9, None), (300, "+300")]
)
def test_a_clock_that_differs_by_a_second_or_more_is_corrected(server, ahead, correction):
    clock = ManualClock()
    theirs = clock.now
    clock.now -= ahead
    server.answers[POST] = at(theirs)
    with pytest.raises(Denied) as denied:
        vendor(server, clock).run(SHOW)
    first, *others = [claims(sent)["iat"] for sent in server.sent]
    assert first == int(clock.now)
    if correction is None:
        assert others == []
        assert "clock" not in denied.value.what
        return
    assert others == [int(theirs)]
    assert denied.value.what.endswith(f"; Snowflake's clock is {correction} s from the function's")
    assert server.sent[1].query == {**server.sent[0].query, "retry": "true"}


@pytest.mark.parametrize("status", [403, 422])
def test_the_clocks_are_named_only_where_they_may_be_the_reason(server, status):
    clock = ManualClock()
    refused = failure("003001", "Insufficient privileges", status)
    server.answers[POST] = [at(clock.now + 300), refused]
    with pytest.raises(Denied) as denied:
        vendor(server, clock).run(SHOW)
    assert ("Snowflake's clock is +300 s" in denied.value.what) is (status == 403)


def test_a_second_user_of_the_account_knows_the_difference_of_the_clocks(server):
    clock = ManualClock()
    server.answers[POST] = [at(clock.now + 300), DONE]
    client = vendor(server, clock)
    client.run(SHOW)
    other = client.logged_in("OTHER", pair(), "R")
    other.run(SHOW)
    last = claims(server.sent[-1])
    assert (len(server.sent), last["iat"] - int(clock.now)) == (3, 300)
    assert (other.login, other.url) == (Login("myorg-acct", "OTHER", "R"), server.url)
    server.answers[POST] = at(clock.now + 300)
    with pytest.raises(Denied, match=r"Snowflake's clock is \+300 s from the function's"):
        other.run(SHOW)
    assert len(server.sent) == 4, "a token of the right time is not made again"


@pytest.mark.parametrize("status", [400, 403, 422])
def test_only_a_token_that_is_refused_is_made_again(server, status):
    clock = ManualClock()
    server.answers[POST] = at(clock.now + 300, failure("", "no", status))
    with pytest.raises(LakeferryError):
        vendor(server, clock).run(SHOW)
    assert len(server.sent) == 1


@pytest.mark.parametrize("date", ["", "soon"])
def test_an_answer_without_a_time_corrects_nothing(server, date):
    server.answers[POST] = (*UNKNOWN, {"Date": date})
    with pytest.raises(Denied):
        vendor(server).run(SHOW)
    assert len(server.sent) == 1
