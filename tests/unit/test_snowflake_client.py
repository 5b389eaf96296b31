"""The client of the SQL API: requests, responses, lost responses, and clocks that differ."""

from __future__ import annotations

import gzip
import json
import re
from email.utils import formatdate

import pytest
from authlib.jose import jwt as other_jwt
from hypothesis import given
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter

from lambdas.shared.clock import Deadline
from lambdas.shared.errors import (
    Conflict,
    Denied,
    LakeferryError,
    NotFound,
    OutOfTime,
    RateLimited,
    Refused,
    Transient,
)
from lambdas.shared.http import Response, Session
from lambdas.snowflake import sql
from lambdas.snowflake.client import Login, Snowflake, build_account_url, to_account_claim
from tests.support.resource_environment import ManualClock
from tests.support.scripted_server import cut_short, reset
from tests.support.snowflake_context import DONE, POST, failure, pair, result, script, vendor

SHOW = sql.statement("SHOW ROLES")
HANDLE = "01b2-q"
POLL = f"GET /api/v2/statements/{HANDLE}"
RUNNING = (202, {"code": "333334", "message": "running", "statementHandle": HANDLE})


def bearer(sent):
    return sent.headers["authorization"].removeprefix("Bearer ")


def claims(sent, key=None):
    return other_jwt.decode(bearer(sent), (key or pair()).public_pem)


class Waits(HTTPAdapter):
    """Records for how many seconds each call would wait for its answer."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def send(self, *given, timeout=None, **more):
        self.seconds.append(timeout[1])
        return super().send(*given, timeout=timeout, **more)


def test_a_call_waits_longer_than_snowflake_holds_a_statement(server):
    server.answers[POST] = DONE
    clock = ManualClock()
    waits = Waits()
    session = Session(Deadline(clock, clock.time() + 90), adapter=waits)
    Snowflake(session, clock, Login("myorg-acct", "u", "R"), pair(), server.url).run(SHOW)
    assert waits.seconds == [50.0]
    assert session.call("GET", server.url + "/other").status == 404
    assert waits.seconds == [50.0, 30.0]


MANAGES = {"privilege": "MANAGE GRANTS", "granted_on": "ACCOUNT", "name": "ACCT"}
ON_ANOTHER = {"privilege": "MANAGE GRANTS", "granted_on": "ROLE", "name": "ACCT"}


def member(role):
    return {"privilege": "USAGE", "granted_on": "ROLE", "name": role}


@pytest.mark.parametrize(
    ("grants", "sees"),
    [
        ({"DEPLOYER": [MANAGES]}, True),
        ({"DEPLOYER": [member("SECURITYADMIN")], "SECURITYADMIN": [MANAGES]}, True),
        ({"DEPLOYER": [member("A")], "A": [member("DEPLOYER"), member('"b c"')], "b c": [MANAGES]}, True),
        ({"DEPLOYER": []}, False),
        ({"DEPLOYER": [ON_ANOTHER]}, False),
        ({"DEPLOYER": [member("A")], "A": [member("DEPLOYER")]}, False),
        ({"DEPLOYER": [], "OTHER": [MANAGES]}, False),
    ],
)
def test_a_role_sees_everything_only_with_manage_grants(server, grants, sees):
    answers = {
        f'SHOW GRANTS TO ROLE "{role}"': result(*rows, columns=("privilege", "granted_on", "name"))
        for role, rows in grants.items()
    }
    client = vendor(script(server, **answers))
    if sees:
        client.require_sight(None)
        return
    with pytest.raises(Denied, match=r"SNF-UNSEEN .*role DEPLOYER sees only"):
        client.require_sight(None)


def test_the_tenant_is_locator_and_region_not_a_name(server):
    found = result({"LOCATOR": "AB12345", "REGION": "AWS_EU_WEST_1"})
    client = vendor(script(server, **{"SELECT CURRENT_ACCOUNT()": found}))
    assert client.tenant == "AB12345.AWS_EU_WEST_1"
    assert client.creator == "DEPLOYER"
    assert "SNF-OTHER-ACCOUNT" in str(client.wrong_tenant("CD1.AWS_EU_WEST_1"))


def test_a_tenant_that_snowflake_does_not_name_is_no_tenant(server):
    with pytest.raises(Transient):
        _ = vendor(
            script(server, **{"SELECT CURRENT_ACCOUNT()": result(columns=("LOCATOR", "REGION"))})
        ).tenant


def test_a_statement_is_sent_alone_with_role_and_warehouse(server):
    server.answers[POST] = DONE
    vendor(server).run(SHOW)
    (sent,) = server.sent
    assert sent.body == {
        "statement": "SHOW ROLES",
        "timeout": 600,
        "role": "DEPLOYER",
        "warehouse": "DEPLOYING",
        "parameters": {"MULTI_STATEMENT_COUNT": "1"},
    }
    assert sent.query == {"requestId": sent.query["requestId"], "async": "false", "nullable": "true"}
    assert sent.headers["x-snowflake-authorization-token-type"] == "KEYPAIR_JWT"
    assert sent.headers["user-agent"].startswith("Lakeferry/")
    assert (sent.headers["content-type"], sent.headers["accept"]) == ("application/json", "application/json")


def test_the_token_names_account_user_and_key(server):
    server.answers[POST] = DONE
    clock = ManualClock()
    vendor(server, clock, account="xy12345.us-east-2.aws", user="some.user").run(SHOW)
    result = claims(server.sent[0])
    assert result["iss"] == f"XY12345.SOME.USER.{pair().fingerprint}"
    assert result["sub"] == "XY12345.SOME.USER"
    assert result["iat"] == int(clock.now)
    assert 0 < result["exp"] - result["iat"] <= 3600


def test_a_token_is_used_for_half_a_minute_at_most(server):
    server.answers[POST] = DONE
    clock = ManualClock()
    client = vendor(server, clock, left=900)
    for _ in range(3):
        client.run(SHOW)
        clock.now += 20
    assert [claims(sent)["iat"] - server_start(server) for sent in server.sent] == [0, 0, 40]


def server_start(server):
    return claims(server.sent[0])["iat"]


def test_rows_are_read_by_column_names(server):
    server.answers[POST] = result({"NAME": "A", "comment": None}, {"NAME": "B", "comment": "x"})
    assert vendor(server).run(SHOW) == [{"name": "A", "comment": ""}, {"name": "B", "comment": "x"}]


def test_a_value_and_a_document(server):
    script(
        server,
        **{
            "SELECT 1": result({"RESULT": '{"a": [1]}'}),
            "SELECT 2": result(columns=("RESULT",)),
            "SELECT 3": result({"R": "x"}),
        },
    )
    client = vendor(server)
    assert client.document(sql.statement("SELECT 1")) == {"a": [1]}
    assert client.value(sql.statement("SELECT 2")) == ""
    assert client.document(sql.statement("SELECT 3")) is None


def test_a_long_statement_is_polled_with_growing_waits(server):
    server.answers[POST] = RUNNING
    server.answers[POLL] = [RUNNING, RUNNING, RUNNING, RUNNING, RUNNING, result({"a": "1"})]
    clock = ManualClock()
    assert vendor(server, clock).run(SHOW) == [{"a": "1"}]
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_polled_statement_that_fails_is_reported_with_its_code(server):
    server.answers[POST] = RUNNING
    server.answers[POLL] = [RUNNING, failure("002003", "gone")]
    with pytest.raises(NotFound, match=r"SHOW ROLES: HTTP 422, 002003 gone \(query id 01b2-failed\)"):
        vendor(server).run(SHOW)


def test_polling_ends_with_the_invocation(server):
    server.answers[POST] = RUNNING
    server.answers[POLL] = RUNNING
    with pytest.raises(OutOfTime):
        vendor(server, left=60).run(SHOW)


@pytest.mark.parametrize("handle", [None, "", ".", "..", {}, 7])
def test_a_handle_never_changes_the_path(server, handle):
    server.answers[POST] = (202, {"statementHandle": handle})
    with pytest.raises((Transient, NotFound)):
        vendor(server).run(SHOW)
    assert all(
        route.startswith(("POST /api/v2/statements", "GET /api/v2/statements/7")) for route in server.routes
    )


def test_a_handle_stays_one_segment_of_the_path(server):
    server.answers[POST] = (202, {"statementHandle": "../../evil?x=1"})
    with pytest.raises(NotFound):
        vendor(server).run(SHOW)
    assert server.routes[1:] == ["GET /api/v2/statements/..%2F..%2Fevil%3Fx%3D1"]


def test_all_partitions_are_read_in_order_and_unpacked(server):
    status, body = result({"n": "0"})
    body["resultSetMetaData"]["partitionInfo"] = [{"rowCount": 1}] * 3
    body["resultSetMetaData"]["numRows"] = 3
    server.answers[POST] = (status, body)
    packed = {number: gzip.compress(json.dumps({"data": [[number]]}).encode()) for number in ("1", "2")}
    server.answers[POLL] = lambda sent: (200, packed[sent.query["partition"]])
    assert vendor(server).run(SHOW) == [{"n": "0"}, {"n": "1"}, {"n": "2"}]


@pytest.mark.parametrize("lost", [reset, cut_short, (503, None), (200, b"<html>")])
def test_a_statement_whose_answer_is_lost_is_sent_again_under_its_own_id(server, lost):
    server.answers[POST] = [lost, DONE]
    vendor(server).run(SHOW)
    first, second = server.sent
    assert "retry" not in first.query
    assert second.query == {**first.query, "retry": "true"}
    assert first.body == second.body


def test_each_statement_has_an_id_of_its_own(server):
    server.answers[POST] = DONE
    client = vendor(server)
    client.run(SHOW)
    client.run(SHOW)
    assert len({sent.query["requestId"] for sent in server.sent}) == 2


def test_a_refused_statement_is_not_sent_again(server):
    server.answers[POST] = failure("001003", "syntax error")
    with pytest.raises(Refused):
        vendor(server).run(SHOW)
    assert len(server.sent) == 1


@pytest.mark.parametrize(("length", "shown"), [(80, "S" * 80), (81, "S" * 79 + "…")])
def test_an_error_names_the_beginning_of_its_statement(server, length, shown):
    server.answers[POST] = failure("001003", "syntax error")
    with pytest.raises(Refused) as refused:
        vendor(server).run(sql.Sql("S" * length))
    assert re.search("S+…?", refused.value.what)[0] == shown


def test_a_throttled_statement_is_repeated_after_the_wait(server):
    server.answers[POST] = [(429, None, {"Retry-After": "7"}), DONE]
    clock = ManualClock()
    vendor(server, clock).run(SHOW)
    assert 7 <= clock.slept[0] <= 8


@pytest.mark.parametrize(
    ("status", "code", "kind", "row"),
    [
        (422, "002003", NotFound, "SNF-MISSING"),
        (422, "002043", NotFound, "SNF-MISSING"),
        (422, "002002", Conflict, "SNF-EXISTS"),
        (422, "003001", Denied, "SNF-PRIVILEGE"),
        (422, "001003", Refused, "SNF-INVALID"),
        (422, "000606", Refused, "SNF-WAREHOUSE"),
        (422, "091968", Refused, "SNF-EQUALITY-DELETES"),
        (422, "000604", Transient, "SNF-UNAVAILABLE"),
        (422, "390189", Denied, "SNF-ROLE"),
        (401, "390144", Denied, "SNF-AUTH"),
        (403, "390422", Refused, "SNF-NETWORK-POLICY"),
        (403, "", Denied, "SNF-AUTH"),
        (400, "", Refused, "SNF-INVALID"),
        (404, "", NotFound, "SNF-MISSING"),
        (405, "", Refused, "SNF-UNEXPECTED"),
        (408, "", Transient, "SNF-UNAVAILABLE"),
        (429, "", RateLimited, "SNF-RATE"),
        (500, "", Transient, "SNF-UNAVAILABLE"),
        (501, "", Refused, "SNF-UNEXPECTED"),
    ],
)
def test_each_refusal_has_its_error(server, status, code, kind, row):
    server.answers[POST] = failure(code, "words  of\nSnowflake", status)
    with pytest.raises(LakeferryError) as refused:
        vendor(server).run(SHOW)
    assert type(refused.value) is kind
    assert refused.value.kind.code == row
    assert "SHOW ROLES: HTTP" in refused.value.what
    assert "words of Snowflake (query id 01b2-failed)" in refused.value.what
    assert code in refused.value.what


def test_dropping_an_object_in_use_is_reported(server):
    server.answers[POST] = failure("009999", "Cannot drop V because it is used by 1 table(s).")
    with pytest.raises(Conflict) as refused:
        vendor(server).run(sql.statement("DROP EXTERNAL VOLUME IF EXISTS V"))
    assert refused.value.kind.code == "SNF-IN-USE"
    with pytest.raises(Refused) as refused:
        vendor(server).run(sql.statement("ALTER EXTERNAL VOLUME V"))
    assert refused.value.kind.code == "SNF-INVALID"


@pytest.mark.parametrize(
    "incomplete",
    [
        {},
        [],
        {"data": []},
        {"resultSetMetaData": {"numRows": 0, "rowType": []}, "data": []},
        {"resultSetMetaData": {"numRows": 2, "rowType": [{"name": "name"}]}, "data": [["A"]]},
        {"resultSetMetaData": {"numRows": 1, "rowType": [{"name": "name"}]}, "data": None},
        {"resultSetMetaData": {"rowType": [{"name": "name"}]}, "data": []},
    ],
)
def test_an_answer_without_all_of_its_rows_is_never_a_short_list(server, incomplete):
    """Otherwise objects would seem to be gone."""
    server.answers[POST] = (200, incomplete)
    with pytest.raises(Transient) as broken:
        vendor(server).run(SHOW)
    assert broken.value.kind.code == "SNF-UNEXPECTED"


def test_a_truncated_result_is_an_error_and_no_short_list(server):
    server.answers[POST] = result({"name": "A"}, code="391908")
    with pytest.raises(Refused) as refused:
        vendor(server).run(SHOW)
    assert refused.value.kind.code == "SNF-TRUNCATED"
    assert HANDLE in refused.value.what


class TokenServer:
    """A server with a clock of its own, which accepts tokens made in the last minute with `key` only."""

    def __init__(self, clock, ahead, key=None, date=True):
        self.clock = clock
        self.ahead = ahead
        self.key = key or pair()
        self.date = date

    def __call__(self, sent):
        now = self.clock.time() + self.ahead
        headers = {"Date": formatdate(now, usegmt=True)} if self.date else {"Date": "no date"}
        try:
            result = claims(sent, self.key)
        except Exception:
            return (401, {"code": "394304", "message": "fingerprint mismatch"}, headers)
        if not now - 60 <= result["iat"] <= now + 60:
            return (401, {"code": "390144", "message": "JWT token is invalid."}, headers)
        return (*DONE, headers)


@pytest.mark.parametrize(
    "ahead", [sign * seconds for seconds in (1, 30, 59, 61, 300, 3599, 3601, 7200) for sign in (1, -1)]
)
def test_a_clock_difference_is_measured_and_applied(server, ahead):
    clock = ManualClock()
    server.answers[POST] = TokenServer(clock, ahead)
    client = vendor(server, clock)
    client.run(SHOW)
    calls = 1 if abs(ahead) < 60 else 2
    assert len(server.sent) == calls
    assert len({sent.query["requestId"] for sent in server.sent}) == 1
    client.run(SHOW)
    assert len(server.sent) == calls + 1, "the second statement knows the difference"


def test_a_clock_is_corrected_once_and_then_the_error_names_the_difference(server):
    clock = ManualClock()
    server.answers[POST] = TokenServer(clock, 300, key=pair(2))
    client = vendor(server, clock)
    with pytest.raises(Denied, match=r"Snowflake's clock is \+300 s from the function's"):
        client.run(SHOW)
    assert len(server.sent) == 2
    server.answers[POST].ahead = 600
    with pytest.raises(Denied):
        client.run(SHOW)
    assert len(server.sent) == 3


@pytest.mark.parametrize("date", [True, False])
def test_a_wrong_key_is_not_tried_again(server, date):
    clock = ManualClock()
    server.answers[POST] = TokenServer(clock, 0, key=pair(2), date=date)
    with pytest.raises(Denied, match="394304 fingerprint mismatch") as denied:
        vendor(server, clock).run(SHOW)
    assert len(server.sent) == 1
    assert "clock" not in denied.value.what


def test_another_user_logs_in_with_his_own_key_and_role(server):
    server.answers[POST] = DONE
    vendor(server).logged_in("READER", pair(2), "PUBLIC").run(SHOW)
    (sent,) = server.sent
    assert claims(sent, pair(2))["sub"] == "MYORG-ACCT.READER"
    assert sent.body["role"] == "PUBLIC"
    assert "warehouse" not in sent.body


def test_no_error_holds_token_or_key(server):
    token = []
    server.answers[POST] = lambda sent: (
        token.append(bearer(sent)) or failure("001003", f"near {bearer(sent)} {pair().private_pem.reveal()}")
    )
    with pytest.raises(Refused) as refused:
        vendor(server).run(SHOW)
    assert token[0] not in str(refused.value)
    assert pair().private_pem.reveal().splitlines()[3] not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "claim", "host"),
    [
        ("myorg-acct", "MYORG-ACCT", "myorg-acct"),
        ("MyOrg-my_acct", "MYORG-MY_ACCT", "myorg-my-acct"),
        ("xy12345", "XY12345", "xy12345"),
        ("xy12345.us-east-2", "XY12345", "xy12345.us-east-2"),
        ("xy12345.us-east-2.aws", "XY12345", "xy12345.us-east-2.aws"),
        ("xy12345.us-gov-west-1.fhplus.aws", "XY12345", "xy12345.us-gov-west-1.fhplus.aws"),
        ("xy12345.west-europe.azure", "XY12345", "xy12345.west-europe.azure"),
        ("xy12345.us-east-2.privatelink", "XY12345", "xy12345.us-east-2.privatelink"),
        ("myorg-acct.privatelink", "MYORG-ACCT", "myorg-acct.privatelink"),
        ("myorg.acct", "MYORG-ACCT", "myorg-acct"),
        ("myorg.my_acct", "MYORG-MY_ACCT", "myorg-my-acct"),
        ("acct-ext123.global", "ACCT", "acct-ext123.global"),
    ],
)
def test_accounts_in_the_forms_that_users_write(given, claim, host):
    assert to_account_claim(given) == claim
    assert build_account_url(given) == f"https://{host}.snowflakecomputing.com"


@pytest.mark.parametrize(
    "given", ["", "a b", "evil.example/#", "a@evil.example", "a..b", ".a", "a.", "a:1", "ü", "a\nb", "-a"]
)
def test_a_text_that_could_lead_to_another_host_is_no_account(given):
    for read in (to_account_claim, build_account_url):
        with pytest.raises(LakeferryError):
            read(given)


@given(st.text(max_size=30))
def test_every_account_leads_to_a_host_of_the_vendor(text):
    try:
        url = build_account_url(text)
    except LakeferryError:
        return
    host = url.removeprefix("https://")
    assert host.endswith(".snowflakecomputing.com")
    assert not set(host) & set("/@:#?\\ ")
    assert "." not in to_account_claim(text)


@pytest.mark.parametrize(
    "url",
    ["http://acct.snowflakecomputing.com", "http://localhost:1", "ftp://127.0.0.1", "https://u:p@127.0.0.1"],
)
def test_no_key_is_sent_to_an_unsafe_address(url):
    with pytest.raises(LakeferryError) as refused:
        Snowflake(None, None, Login("a", "u", "R"), pair(), url)
    assert refused.value.kind.code == "NET-ADDRESS"


NAMES = st.sampled_from(
    ["code", "data", "resultSetMetaData", "rowType", "name", "partitionInfo", "statementHandle"]
)
BODIES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(NAMES, children),
    max_leaves=8,
)


@given(BODIES)
def test_any_answer_is_rows_or_an_error_of_ours(body):
    class Wire(Session):
        """Answers the statement with `body`, and every further call with no more rows."""

        def call(self, method, url, **given):
            return Response(200, {}, body if method == "POST" else {"data": []})

    clock = ManualClock()
    client = Snowflake(Wire(Deadline(clock, clock.now + 90)), clock, Login("a", "u", "R"), pair())
    try:
        rows = client.run(SHOW)
    except LakeferryError:
        return
    assert all(isinstance(value, str) for row in rows for value in row.values())
