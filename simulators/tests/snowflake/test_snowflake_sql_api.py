"""The SQL API over real HTTP: who gets in, how answers come, and what happens to a statement that takes its
time.
"""

import json
import subprocess
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from simulators.snowflake.server import Snowflake
from simulators.tests.snowflake.snowflake_kit import (
    PATH,
    START,
    Client,
    fingerprint,
    new_key,
    signed,
    sql_key,
)

# --- who gets in


def test_the_printed_user_logs_in_and_sees_its_name(admin):
    row = admin.rows(
        "SELECT CURRENT_USER() AS U, CURRENT_ROLE() AS R, CURRENT_ACCOUNT() AS A, CURRENT_VERSION() AS V"
    )
    assert row == [
        {"U": "ADMIN", "R": "ACCOUNTADMIN", "A": admin.account.partition("-")[2], "V": row[0]["V"]}
    ]


def test_the_fingerprint_is_what_openssl_says(admin):
    shown = admin.properties("DESC USER ADMIN")["RSA_PUBLIC_KEY_FP"]
    public = [
        "openssl",
        "rsa",
        "-in",
        admin.snowflake.credentials["private_key_file"],
        "-pubout",
        "-outform",
        "DER",
    ]
    public_key = subprocess.run(public, capture_output=True, check=True, timeout=60).stdout
    digest = subprocess.run(
        ["openssl", "dgst", "-sha256", "-binary"],
        input=public_key,
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    coded = subprocess.run(
        ["openssl", "base64"], input=digest, capture_output=True, check=True, timeout=60
    ).stdout
    assert shown == f"SHA256:{coded.decode().strip()}"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sub": "NOBODY"}, "JWT_TOKEN_INVALID_ACCOUNT_IN_ISSUER"),
        ({"iss": "OTHER.ADMIN.SHA256:x"}, "JWT_TOKEN_INVALID_SUBJECT_ISSUER_MISMATCH"),
        ({"iss": None}, "JWT_TOKEN_INVALID_SUBJECT_ISSUER_MISMATCH"),
        ({"iat": None}, "JWT_TOKEN_INVALID"),
        ({"exp": None}, "JWT_TOKEN_INVALID"),
        ({"exp": START - 1}, "JWT_TOKEN_EXPIRED"),
        ({"exp": START}, "JWT_TOKEN_EXPIRED"),
        ({"iat": START - 3600, "exp": START + 9999}, "JWT_TOKEN_EXPIRED"),
        ({"iat": START + 61}, "JWT_TOKEN_INVALID_ISSUE_TIME"),
    ],
)
def test_a_token_that_is_wrong_is_refused_and_an_admin_can_ask_why(admin, changed, reason):
    answer = admin.call(body={"statement": "SELECT 1"}, token=admin.token(**changed))
    assert (answer.status_code, answer.json()["code"]) == (401, "390144")
    result = answer.json()["message"].partition("[")[2].rstrip("]")
    assert admin.result(f"SELECT SYSTEM$GET_LOGIN_FAILURE_DETAILS('{result}')")["errorCode"] == reason


@pytest.mark.parametrize(
    "changed", [{}, {"iat": START - 3599}, {"iat": START + 60}, {"iat": START * 1000}, {"aud": "x"}]
)
def test_a_token_that_is_right_is_taken(admin, changed):
    assert admin.call(body={"statement": "SELECT 1"}, token=admin.token(**changed)).status_code == 200


def test_a_token_signed_with_another_key_or_for_an_unknown_user_is_refused(admin):
    for token in (
        signed(new_key(), admin.claims()),
        Client(admin.snowflake, "ADMIN", new_key()).token(),
        Client(admin.snowflake, "NOBODY", new_key()).token(),
        admin.token()[:-6] + "AAAAAA",
        "not.a.token",
        signed(admin.key, admin.claims(), algorithm="none"),
    ):
        assert admin.call(body={"statement": "SELECT 1"}, token=token).status_code == 401


@pytest.mark.parametrize(
    ("account", "user", "status"),
    [
        (str, str, 200),
        (lambda name: name.partition("-")[2], str, 200),
        (str.lower, str, 401),
        (str, str.lower, 401),
    ],
)
def test_account_and_user_are_in_upper_case_and_the_organization_may_be_left_out(
    admin, account, user, status
):
    admin.account, admin.user = account(admin.account), user(admin.user)
    assert admin.post("SELECT CURRENT_USER()").status_code == status


def test_both_slots_open_and_an_unset_one_does_not(admin):
    first = new_key("one")
    second = new_key("two")
    admin.run(f"CREATE USER U TYPE=SERVICE RSA_PUBLIC_KEY='{sql_key(first)}'")
    clients = [Client(admin.snowflake, "U", key) for key in (first, second)]
    assert [client.post("SELECT 1").status_code for client in clients] == [200, 401]
    admin.run(f"ALTER USER U SET RSA_PUBLIC_KEY_2='{sql_key(second)}'")
    assert [client.post("SELECT 1").status_code for client in clients] == [200, 200]
    shown = admin.properties("DESC USER U")
    assert (shown["RSA_PUBLIC_KEY_FP"], shown["RSA_PUBLIC_KEY_2_FP"]) == (
        fingerprint(first),
        fingerprint(second),
    )
    admin.run("ALTER USER U UNSET RSA_PUBLIC_KEY")
    assert [client.post("SELECT 1").status_code for client in clients] == [401, 200]
    assert admin.properties("DESC USER U")["RSA_PUBLIC_KEY_FP"] == "null"


def test_a_user_with_dots_and_one_with_an_elliptic_key(admin):
    key = new_key("one")
    admin.run(f"CREATE USER \"A.B.C\" RSA_PUBLIC_KEY='{sql_key(key)}'")
    assert Client(admin.snowflake, "A.B.C", key).one("SELECT CURRENT_USER()") == "A.B.C"
    curve = ec.generate_private_key(ec.SECP256R1())
    admin.run(f"CREATE USER E RSA_PUBLIC_KEY='{sql_key(curve)}'")
    other = Client(admin.snowflake, "E", curve)
    token = signed(curve, other.claims(), algorithm="ES256")
    assert other.call(body={"statement": "SELECT 1"}, token=token).status_code == 200


def test_a_weak_or_broken_key_is_refused(admin):
    weak = sql_key(rsa.generate_private_key(public_exponent=65537, key_size=1024))
    for text in (weak, "MIIB", "-----BEGIN PUBLIC KEY-----", sql_key(new_key())[:-8]):
        assert "Invalid public key" in admin.refused(f"CREATE USER U RSA_PUBLIC_KEY='{text}'", "003544")
    assert admin.snowflake.objects()["USER"] == ["ADMIN"]


def test_a_disabled_user_stays_out(admin):
    key = new_key("one")
    admin.run(f"CREATE USER U RSA_PUBLIC_KEY='{sql_key(key)}' DISABLED=TRUE")
    answer = Client(admin.snowflake, "U", key).post("SELECT 1")
    assert (answer.status_code, answer.json()["code"]) == (401, "390101")


@pytest.mark.parametrize("skew", [-7200, -61, 0, 59, 61, 7200])
def test_the_date_header_tells_the_accounts_time_so_that_a_client_can_correct_its_own(skew):
    with Snowflake(start=START + skew) as snowflake:
        client = Client(snowflake)
        answer = client.call(body={"statement": "SELECT 1"}, token=client.token(iat=START, exp=START + 600))
        shown = parsedate_to_datetime(answer.headers["Date"]).timestamp()
        assert shown == START + skew
        assert answer.status_code == (200 if -60 <= skew < 600 else 401)


# --- calls that are none


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Accept": "text/html"}, 400, "391902"),
        ({"User-Agent": ""}, 400, "391903"),
        ({"Authorization": "Basic x"}, 401, "390103"),
        ({"X-Snowflake-Authorization-Token-Type": "OAUTH"}, 401, "390101"),
        ({"Content-Type": "text/plain"}, 415, "391901"),
    ],
)
def test_headers_that_are_refused(admin, headers, status, code):
    answer = admin.call(body={"statement": "SELECT 1"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_paths_and_methods_that_are_not_there(admin):
    assert admin.call("GET").status_code == 405
    assert admin.call("GET", "/00000000-0000-4000-8000-000000000000").status_code == 404
    assert admin.call("POST", "/a/b/c").status_code == 404
    assert admin.call(body={"no": "statement"}).status_code == 400
    assert requests.get(admin.snowflake.url + "/_simulator/none", timeout=5).status_code == 404


def test_a_statement_is_only_its_users(admin):
    admin.run(f"CREATE USER U RSA_PUBLIC_KEY='{sql_key(new_key())}'")
    handle = admin.run("SELECT 1")["statementHandle"]
    assert admin.call("GET", f"/{handle}").status_code == 200
    assert Client(admin.snowflake, "U", new_key()).call("GET", f"/{handle}").status_code == 404


# --- how answers come


def test_an_answer_has_the_vendors_form(admin):
    answer = admin.run("SELECT 1 AS A, NULL AS B")
    assert (answer["code"], answer["sqlState"]) == ("090001", "00000")
    assert answer["data"] == [["1", None]]
    assert [column["name"] for column in answer["resultSetMetaData"]["rowType"]] == ["A", "B"]
    assert answer["resultSetMetaData"] | {"rowType": 0, "partitionInfo": 0} == {
        "numRows": 1,
        "format": "jsonv2",
        "rowType": 0,
        "partitionInfo": 0,
    }
    assert answer["createdOn"] == START * 1000
    assert answer["statementStatusUrl"].startswith(f"{PATH}/{answer['statementHandle']}")
    assert admin.run("SELECT NULL AS B", query={"nullable": "false"})["data"] == [["null"]]


def test_an_error_has_the_vendors_form(admin):
    answer = admin.post("DROP DATABASE NONE_SUCH")
    assert answer.status_code == 422
    body = answer.json()
    assert body["code"] == "002003"
    assert body["sqlState"] == "02000"
    assert body["message"] == "SQL compilation error:\nDatabase 'NONE_SUCH' does not exist or not authorized."
    assert admin.call("GET", f"/{body['statementHandle']}").status_code == 422


def test_rows_come_in_partitions(admin):
    for number in range(5):
        admin.run(f"CREATE ROLE R{number}")
    admin.snowflake.behave(partition_rows=2)
    first = admin.post("SHOW ROLES LIKE 'R_'")
    assert [partition["rowCount"] for partition in first.json()["resultSetMetaData"]["partitionInfo"]] == [
        2,
        2,
        1,
    ]
    assert 'rel="next"' in first.headers["Link"]
    handle = first.json()["statementHandle"]
    rows = list(first.json()["data"])
    for number in (1, 2):
        part = admin.call("GET", f"/{handle}", partition=number)
        assert part.headers["Content-Encoding"] == "gzip"
        rows += part.json()["data"]
    assert [row[1] for row in rows] == [f"R{number}" for number in range(5)]
    assert admin.call("GET", f"/{handle}", partition=3).status_code == 400


def test_a_result_that_is_too_large_says_so_in_a_success(admin):
    for number in range(3):
        admin.run(f"CREATE ROLE R{number}")
    admin.snowflake.behave(most_rows=2)
    answer = admin.run("SHOW ROLES LIKE 'R_'")
    assert (answer["code"], len(answer["data"])) == ("391908", 2)


@pytest.mark.parametrize(
    ("expression", "value", "type_"),
    [
        ("40 + 2", "42", "fixed"),
        ("1.50", "1.50", "fixed"),
        ("1 = 1", "true", "boolean"),
        ("1e0 / 2", "0.5", "real"),
        ("'it''s'", "it's", "text"),
        ("DATE '1970-02-01'", "31", "date"),
        ("'1970-01-01 00:00:01.5'::TIMESTAMP_NTZ", "1.500000000", "timestamp_ntz"),
        ("'00:01:00'::TIME", "60.000000000", "time"),
        ("ARRAY_CONSTRUCT(1, 2)", "[1, 2]", "array"),
        ("OBJECT_CONSTRUCT('a', 1)", '{"a": 1}', "object"),
        ("TO_BINARY('AB', 'HEX')", "AB", "binary"),
        ("NULL", None, "text"),
    ],
)
def test_values_are_text_in_the_vendors_form(admin, expression, value, type_):
    answer = admin.run(f"SELECT {expression} AS V")
    assert answer["data"] == [[value]]
    assert answer["resultSetMetaData"]["rowType"][0]["type"] == type_


def test_bindings_take_the_place_of_question_marks(admin):
    given = {"1": {"type": "TEXT", "value": "it's"}, "2": {"type": "FIXED", "value": "7"}}
    assert admin.run("SELECT ?, ? + 1", bindings=given)["data"] == [["it's", "8"]]
    admin.refused("SELECT ?", "002049")


# --- statements that take their time, and statements that are sent twice


def test_a_statement_that_takes_long_is_polled(admin):
    admin.snowflake.behave(slow=[{"statement": "^CREATE", "seconds": 50}])
    answer = admin.post("CREATE ROLE R")
    assert (answer.status_code, answer.json()["code"]) == (202, "333334")
    handle = answer.json()["statementHandle"]
    assert admin.call("GET", f"/{handle}").status_code == 202
    assert "R" not in admin.snowflake.objects()["ROLE"]
    admin.snowflake.advance(50)
    done = admin.call("GET", f"/{handle}")
    assert (done.status_code, done.json()["data"]) == (200, [["Role R successfully created."]])
    assert admin.snowflake.objects()["ROLE"] == ["R"]


def test_an_asynchronous_call_gets_a_handle(admin):
    answer = admin.post("CREATE ROLE R", query={"async": "true"})
    assert answer.status_code == 202
    assert admin.call("GET", f"/{answer.json()['statementHandle']}").json()["code"] == "090001"


def test_a_cancelled_statement_has_no_effect(admin):
    admin.snowflake.behave(slow=[{"statement": "ROLE", "seconds": 50}])
    handle = admin.post("CREATE ROLE R").json()["statementHandle"]
    assert admin.call("POST", f"/{handle}/cancel").json()["code"] == "000604"
    admin.snowflake.advance(100)
    answer = admin.call("GET", f"/{handle}")
    assert (answer.status_code, answer.json()["code"]) == (422, "000604")
    assert admin.snowflake.objects()["ROLE"] == []
    assert admin.call("POST", f"/{handle}/cancel").status_code == 422


def test_a_statement_ends_at_its_timeout(admin):
    admin.snowflake.behave(slow=[{"statement": "ROLE", "seconds": 50}])
    handle = admin.post("CREATE ROLE R", timeout=10).json()["statementHandle"]
    admin.snowflake.advance(11)
    answer = admin.call("GET", f"/{handle}")
    assert (answer.status_code, answer.json()["code"]) == (408, "000630")
    admin.snowflake.advance(100)
    assert admin.snowflake.objects()["ROLE"] == []


def test_a_resend_with_the_same_id_is_not_run_again(admin):
    first = admin.post("CREATE ROLE R", query={"requestId": "one"}).json()
    again = admin.post("CREATE ROLE R", query={"requestId": "one", "retry": "true"})
    assert (again.status_code, again.json()["statementHandle"]) == (200, first["statementHandle"])
    assert admin.post("CREATE ROLE R", query={"requestId": "one"}).json()["code"] == "002002"
    assert admin.post("CREATE ROLE S", query={"requestId": "two", "retry": "true"}).status_code == 200


def test_an_answer_that_is_lost_is_found_by_the_resend(admin):
    admin.snowflake.faults.rule({"fault": "effect_then_reset", "path": PATH})
    with pytest.raises(requests.ConnectionError):
        admin.post("CREATE ROLE R", query={"requestId": "one"})
    assert admin.post("CREATE ROLE R", query={"requestId": "one", "retry": "true"}).status_code == 200
    admin.snowflake.faults.rule({"fault": "error", "path": PATH, "status": 429})
    assert admin.post("CREATE ROLE S").status_code == 429
    assert admin.snowflake.objects()["ROLE"] == ["R"]


def test_several_statements_in_one_call_are_refused(admin):
    assert "Actual statement count 2" in admin.refused("CREATE ROLE R; CREATE ROLE S", "000008")
    assert "not simulated" in admin.refused(
        "CREATE ROLE R; CREATE ROLE S", "000000", parameters={"MULTI_STATEMENT_COUNT": "2"}
    )
    admin.refused(" ; ", "000900")
    admin.run("CREATE ROLE R;")
    assert admin.snowflake.objects()["ROLE"] == ["R"]


def test_what_opens_a_session_is_refused(admin):
    for statement in ("USE ROLE SYSADMIN", "BEGIN", "SET A = 1", "PUT file://x @y"):
        admin.refused(statement, "000002")


def test_a_role_that_is_not_there_or_not_the_users(admin):
    key = new_key("one")
    admin.run(f"CREATE USER U DEFAULT_ROLE=SYSADMIN RSA_PUBLIC_KEY='{sql_key(key)}'")
    user = Client(admin.snowflake, "U", key)
    user.refused("SELECT 1", "390186")
    user.refused("SELECT 1", "390189", role="NONE_SUCH")
    user.refused("SELECT 1", "390189", role="public")
    assert user.one("SELECT CURRENT_ROLE()", role="PUBLIC") == "PUBLIC"


def test_a_reset_makes_a_new_account(admin):
    admin.run("CREATE ROLE R")
    before = admin.account
    result = admin.snowflake.reset()
    assert result["account"] != before
    assert admin.post("SELECT 1").status_code == 401
    assert Client(admin.snowflake).snowflake.objects()["ROLE"] == []


def test_the_same_seed_makes_the_same_account_and_the_key_file_goes_with_the_run():
    with Snowflake(seed=9) as one, Snowflake(seed=9) as two:
        assert one.credentials["account"] == two.credentials["account"]
        file = Path(one.credentials["private_key_file"])
        assert file.exists()
    assert not file.exists()


def test_no_private_key_is_ever_answered(admin):
    text = Path(admin.snowflake.credentials["private_key_file"]).read_text().splitlines()[1]
    answers = [
        admin.post("DESC USER ADMIN").text,
        json.dumps(admin.snowflake.objects()),
        json.dumps(admin.snowflake.credentials),
    ]
    assert not any(text in answer for answer in answers)
