"""The templates of a deployment whose mails have links that open, and whose exports have readers."""

from __future__ import annotations

import json

import pytest

from config.deployments import deployment_file, validation
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from lambdas import contract
from tests.support import assembly_kit, findings, shipped

RECIPIENTS = 'recipients = ["analysts@example.com"]'
ANALYSTS = "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Analysts_*"
ANN = "arn:aws:iam::444455556666:user/people/ann"
LINKED = f"""recipients = ["ann@example.com", "ben@example.com"]
link_days = 14
readers = ["{ANALYSTS}", "{ANN}"]"""


def parse(text):
    return deployment_file.parse(text, name="linked.toml", judge=NOT_JUDGED)


def write(stage="dev", added=LINKED):
    text = shipped.read(stage)
    assert RECIPIENTS in text
    return text.replace(RECIPIENTS, added, 1)


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Return the assembly of the shipped dev deployment with links for two recipients, and with readers."""
    made = assembly_kit.synthesise(parse(write()), tmp_path_factory.mktemp("linked"))
    assert not made.failure, made.failure
    return made


def read_filters(assembly):
    return {
        subscription["Endpoint"]: subscription.get("FilterPolicy")
        for subscription in assembly.resources("AWS::SNS::Subscription").values()
    }


def find(assembly, kind, begins):
    """Return the properties of the one resource of exports whose logical id begins so."""
    (found,) = [
        body["Properties"]
        for name, body in assembly.templates["exports"]["Resources"].items()
        if body["Type"] == kind and name.startswith(begins)
    ]
    return found


def list_statements(role):
    return {statement["Sid"]: statement for statement in role["Policies"][0]["PolicyDocument"]["Statement"]}


def test_each_recipient_gets_only_mails_of_their_own(linked):
    filters = read_filters(linked)
    assert filters.pop("engineers@example.com") is None
    assert filters == {
        address: {contract.RECIPIENT: [contract.build_recipient_id("lakeferry-dev", "daily_trades", address)]}
        for address in ("ann@example.com", "ben@example.com")
    }


def test_without_links_all_recipients_get_the_same_mail_and_nothing_opens(dev):
    assert set(read_filters(dev).values()) == {None}
    assert not dev.resources("AWS::ApiGatewayV2::Api")
    assert "links" not in json.dumps(dev.templates["exports"])


def test_no_policy_allows_too_much(linked):
    assert findings.lint(linked) == []


def test_the_api_has_two_routes_and_limits(linked):
    routes = {route["RouteKey"] for route in linked.resources("AWS::ApiGatewayV2::Route").values()}
    assert routes == {"GET /open/{token}", "POST /open/{token}"}
    (stage,) = linked.resources("AWS::ApiGatewayV2::Stage").values()
    limits = stage["DefaultRouteSettings"]
    assert (limits["ThrottlingRateLimit"], limits["ThrottlingBurstLimit"]) == (20, 40)


def test_the_access_log_has_no_path_because_it_contains_the_token(linked):
    (stage,) = linked.resources("AWS::ApiGatewayV2::Stage").values()
    fields = set(json.loads(stage["AccessLogSettings"]["Format"]).values())
    assert "$context.routeKey" in fields
    assert not [field for field in fields if "path" in field.lower() or "query" in field.lower()]


def test_only_the_api_s_two_routes_may_invoke_the_function(linked):
    permission = find(linked, "AWS::Lambda::Permission", "LinksPermission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert json.dumps(permission["SourceArn"]).endswith('/$default/*/open/{token}"]]}')
    assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}


def test_the_function_reads_published_files_of_exports_with_links_and_counts(linked):
    statements = list_statements(find(linked, "AWS::IAM::Role", "LinksOpenRole"))
    assert set(statements) == {
        "WriteOwnLog", "SendTraces", "ReadPublished", "CountDownloads", "FindCounts", "ReadSettings",
        "ReadLinkKey", "DecryptSecrets",
    }  # fmt: skip
    read = json.dumps(statements["ReadPublished"]["Resource"])
    assert [part in read for part in ("/data/*", "/manifests/*", "/runs/*")] == [True] * 3
    assert read.count("exports/daily_trades/") == 3
    assert statements["ReadPublished"]["Action"] == "s3:GetObject"
    assert "links/*" in json.dumps(statements["CountDownloads"]["Resource"])


def test_the_key_of_links_rotates_and_is_watched(linked):
    schedule = find(linked, "AWS::SecretsManager::RotationSchedule", "LinksRotation")
    assert schedule["RotationRules"]["ScheduleExpression"] == "rate(30 days)"
    assert (
        find(linked, "AWS::Lambda::Function", "LinksRotationFunction")["Environment"]["Variables"][
            contract.LINK_DAYS
        ]
        == "14"
    )
    assert "links/signing_key" in json.dumps(linked.templates["operations"])


def test_engineers_hear_of_many_refused_links(linked):
    alarm = find(linked, "AWS::CloudWatch::Alarm", "LinksRefusedAlarm")
    assert (alarm["MetricName"], alarm["Threshold"]) == (contract.LINKS_REFUSED, 20)
    assert alarm["Dimensions"] == [{"Name": "Deployment", "Value": "lakeferry-dev"}]


def test_links_over_tables_that_exist_have_a_key_that_is_watched(tmp_path):
    text = (shipped.ROOT / "tests" / "data" / "existing.toml").read_text()
    text = text.replace(
        RECIPIENTS, f'{RECIPIENTS}\nlink_days = 7\nlink_keeps = ["customer_region", "country"]', 1
    )
    made = assembly_kit.synthesise(parse(text), tmp_path)
    assert not made.failure, made.failure
    alarms = {alarm["MetricName"] for alarm in made.resources("AWS::CloudWatch::Alarm").values()}
    assert {"KeyAgeDays", "RotationOverdueDays"} <= alarms
    watch = next(
        body["Properties"]
        for name, body in made.templates["operations"]["Resources"].items()
        if body["Type"] == "AWS::IAM::Role" and name.startswith("WatchRole")
    )
    assert "links/signing_key" in json.dumps(list_statements(watch)["ReadAgesOfKeys"]["Resource"])


def test_readers_read_one_export_and_nothing_else(linked):
    role = find(linked, "AWS::IAM::Role", "DailyTradesReaders")
    statements = list_statements(role)
    assert set(statements) == {"ReadFiles", "ListFiles"}
    assert json.dumps(statements["ReadFiles"]["Resource"]).count("exports/daily_trades/") == 2
    assert statements["ListFiles"]["Condition"] == {"StringLike": {"s3:prefix": ["exports/daily_trades/*"]}}


def test_only_readers_may_assume_their_role(linked):
    """A permission set whose name only begins with that of the group's has another length."""
    role = find(linked, "AWS::IAM::Role", "DailyTradesReaders")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert json.dumps(trust["Principal"]).count(":root") == 2
    pattern = ANALYSTS.removesuffix("*") + "?" * 16
    assert trust["Condition"] == {"ArnLike": {"aws:PrincipalArn": [pattern, ANN]}}


@pytest.mark.parametrize(
    ("arn", "part"),
    [
        ("analysts", "is not the ARN"),
        ("arn:aws:iam::111122223333:group/analysts", "is not the ARN"),
        ("arn:aws:iam::111122223333:root", "is not the ARN"),
        ("arn:aws:iam::111122223333:role/*", "could match roles"),
        ("arn:aws:iam::111122223333:role/ana*", "could match roles"),
        ("arn:aws:iam::111122223333:role/AWSReservedSSO_Analysts_*", "could match roles"),
        (ANALYSTS.replace("Analysts", "*"), "could match roles"),
        ("arn:aws:sts::111122223333:assumed-role/analysts/ann", "is a session"),
        ("arn:aws:iam::*:role/analysts", "could match roles"),
        ("arn:aws:iam::1111:role/analysts", "is not the ARN"),
    ],
)
def test_a_reader_that_nobody_or_anybody_could_be_is_refused(arn, part):
    assert part in validation.explain_bad_reader(arn)


@pytest.mark.parametrize(
    "arn", [ANALYSTS, ANN, "arn:aws:iam::111122223333:role/analysts", ANALYSTS.replace("eu-west-1/", "")]
)
def test_readers_are_roles_and_users(arn):
    assert validation.explain_bad_reader(arn) is None


def list_mistakes(text):
    with pytest.raises(BadFile) as raised:
        parse(text)
    return [(problem.key, problem.message) for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("keeps", "key", "part"),
    [
        ("", "link_days", "keeps personal data in region, customer_since"),
        ('link_keeps = ["region"]', "link_days", "keeps personal data in customer_since,"),
        (
            'link_keeps = ["region", "customer_since", "city"]',
            "link_keeps",
            "city is no column of weekly_store_orders that keeps its values",
        ),
    ],
)
def test_personal_data_is_opened_by_links_only_where_the_file_says_so(keeps, key, part):
    text = shipped.read("orders")
    lines = [keeps if line.startswith("link_keeps") else line for line in text.splitlines()]
    ((where, message),) = list_mistakes("\n".join(lines))
    assert where == f"exports[0].{key}"
    assert part in message


def test_more_recipients_than_sns_filters_are_refused():
    addresses = json.dumps([f"p{number}@example.com" for number in range(101)])
    ((where, message),) = list_mistakes(write(added=f"recipients = {addresses}\nlink_days = 7"))
    assert where == "exports[0].recipients"
    assert "an export can have 100" in message
