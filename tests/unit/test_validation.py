"""Values that AWS, Confluent or Snowflake would refuse during a deployment are refused in the deployment
file.
"""

from __future__ import annotations

import re

import boto3
import pytest

from config.deployments import validation

_IAM = "arn:aws:iam::"
_KMS = "arn:aws:kms:eu-west-1:111122223333:key"
_SNS = "arn:aws:sns:eu-west-1:111122223333:"
_CATALOG = (
    "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog/organizations/"
    "9bb441c4-edef-46ac-8a41-c49e44a3fd9a/environments/env-abc123"
)
GOOD = {
    validation.topic_name: ["a", "0", "Stock_Trades.v2-x", "a" * 249],
    validation.new_topic_name: ["a", "0", "stock_trades.v2-x", "a" * 249],
    validation.bucket_name: ["abc", "a-1", "a" * 63],
    validation.mail_address: ["a@b.de", "first.last+tag@mail.example.com", f"{'a' * 64}@example.com"],
    validation.tag_value: ["x", "Müller: a/b=c+d@e_f-g.h", "x" * 256],
    validation.tag_name: ["x", "Müller: a/b=c+d@e_f-g.h", "x" * 128],
    validation.datagen: ["schema", "STOCK_TRADES", "USERS_"],
    validation.explain_bad_sender: ["a@b.de", "A. B_&+-9 <a@b.de>", f"{'a' * 60} <a@b.de>"],
    validation.explain_bad_identity: ["b.de", "a@b.de", f"{'a' * 63}.{'b' * 63}"],
}
BAD = {
    validation.topic_name: ["", "_hidden", "a b", "a" * 250],
    validation.new_topic_name: ["", "Stock", "_hidden", "a b", "a" * 250],
    validation.bucket_name: ["ab", "-ab", "ab-", "a.b", "A-b", "a" * 64, "xn--abc", "abc-s3alias"],
    validation.mail_address: [
        "",
        "a",
        "@b.de",
        "a@b",
        "a b@c.de",
        f"{'a' * 65}@example.com",
        "a@-b.de",
        "a@b.d",
    ],
    validation.tag_value: ["", "a;b", "x" * 257],
    validation.tag_name: ["", "a;b", "x" * 129],
    validation.datagen: ["", "stock_trades", "STOCK"],
    validation.explain_bad_sender: ["", "a", "<a@b.de>", "Ä <a@b.de>", "A <a@b>", f"{'a' * 61} <a@b.de>"],
    validation.explain_bad_identity: ["", "b", "-a.de", "a@b", f"{'a' * 64}.de", f"a.{'b' * 64}"],
}


@pytest.mark.parametrize(
    ("check", "value"), [(check, value) for check, values in GOOD.items() for value in values]
)
def test_a_valid_value_is_accepted(check, value):
    assert check(value) is None


@pytest.mark.parametrize(
    ("check", "value"), [(check, value) for check, values in BAD.items() for value in values]
)
def test_a_value_that_would_be_refused_later_is_refused(check, value):
    assert repr(value[:40])[:-1] in check(value)


def test_a_deployment_may_be_in_any_region_in_which_aws_has_glue():
    assert set(validation.REGIONS) == set(boto3.Session().get_available_regions("glue"))
    assert [validation.region(name) for name in validation.REGIONS] == [None] * len(validation.REGIONS)
    assert "Did you mean eu-west-1?" in validation.region("eu-west-11")
    assert set(validation.REGIONS) > validation.NO_BUDGETS


@pytest.mark.parametrize("stage", ["dev", "p2", "abcdefghijkl"])
def test_a_stage_is_short_and_has_no_hyphen(stage):
    assert validation.is_stage(stage)
    assert not any(
        map(
            validation.is_stage,
            [stage.upper(), f"{stage[0]}-{stage[1:]}", f"1{stage}", stage[0], "abcdefghijklm"],
        )
    )


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (validation.NAME, ["ab", "lake-ferry-2", "a" * 20], ["a", "a" * 21, "a--b", "a-", "2a", "A2"]),
        (validation.SECRET_NAME, ["a", "lake/ferry_x+=.@-9", "a" * 200], ["", "a b", "a" * 201]),
        (validation.SNOWFLAKE_NAME, ["A", "_a1", "a" * 201], ["", "1a", "a-b", "a" * 202]),
        (validation.LOG_TOPIC, ["a", "log_of-errors2", "a" * 249], ["", "Log", "a.b", "a" * 250]),
        (
            validation.SNOWFLAKE_GRANTEE,
            ["A", "4", "ann.b+x@c.de", "A B$", "a" * 255],
            ["", "a b ", ".a", 'a"b', "a" * 256],
        ),
        (validation.SNOWFLAKE_ACCOUNT, ["a", "org-acc_2.x"], ["", "-a", "a-", "a..b", "a/b"]),
        (validation.ENVIRONMENT_ID, ["env-abc123"], ["env-", "env-A", "lkc-a", "xenv-a"]),
        (validation.CLUSTER_ID, ["lkc-abc123"], ["lkc-", "lkc-A", "env-a", "xlkc-a"]),
        (
            validation.CATALOG_URI,
            [_CATALOG],
            [f"{_CATALOG}/", _CATALOG.replace("https", "http"), _CATALOG.replace("/env-", "/lkc-")],
        ),
        (
            validation.REGISTRY_URL,
            ["https://psrc-1.confluent.cloud", "https://psrc-1.eu-west-1.aws.confluent.cloud"],
            [
                "http://a.confluent.cloud",
                "https://confluent.cloud",
                "https://aconfluent.cloud",
                "https://a.confluent.cloud/",
            ],
        ),
        (validation.CLUSTER_TYPE, ["Standard"], ["", "standard", "Basic", "Standard2"]),
        (validation.ACCOUNT_ID, ["0" * 12], ["0" * 11, "0" * 13, "a" * 12]),
        (
            validation.POLICY_ARN,
            [f"{_IAM}111122223333:policy/a/b", f"{_IAM}aws:policy/A", f"{_IAM}aws:policy/{'a' * 512}"],
            [f"{_IAM}aws:policy/", f"{_IAM}1:policy/a", f"{_IAM}aws:role/a", f"{_IAM}aws:policy/{'a' * 513}"],
        ),
        (
            validation.PRINCIPAL_ARN,
            [f"{_IAM}111122223333:role/a/b", f"{_IAM}111122223333:user/{'a' * 512}"],
            [f"{_IAM}aws:role/a", f"{_IAM}111122223333:group/a", f"{_IAM}111122223333:user/{'a' * 513}"],
        ),
        (
            validation.KMS_KEY,
            [f"{_KMS}/1234abcd-1", f"{_KMS}/{'a' * 64}"],
            [f"{_KMS}/", f"{_KMS}/{'a' * 65}", _KMS.replace("key", "alias") + "/a", f"{_KMS}/a/b"],
        ),
        (
            validation.PROXY,
            ["http://a:80", "http://proxy.example-1.com:31280"],
            [
                "https://a:80",
                "http://a",
                "http://a:8",
                "http://a:312800",
                "http://a-:80",
                "http://me:pw@a:80",
            ],
        ),
        (
            validation.KEY_PREFIX,
            ["a/", "team/x-1!_.'()/", "a" * 199 + "/"],
            ["/", "a", "/a/", "a//", "a/.b/", "a*/", "a" * 200 + "/"],
        ),
        (
            validation.SNS_TOPIC,
            [f"{_SNS}a", f"{_SNS}{'a' * 256}", f"{_SNS}a.fifo"],
            [_SNS, f"{_SNS}{'a' * 257}", f"{_SNS}a:b", f"{_SNS}a".replace("sns", "sqs")],
        ),
        (
            validation.SUBNET,
            [f"subnet-{'0a' * 4}", f"subnet-{'0' * 17}"],
            ["subnet-0a1b2c3", f"subnet-{'0' * 18}", "subnet-0a1b2c3g"],
        ),
        (
            validation.SECURITY_GROUP,
            [f"sg-{'0a' * 4}", f"sg-{'0' * 17}"],
            ["sg-0a1b2c3", f"sg-{'0' * 18}", "sg-0a1b2c3g"],
        ),
        (
            validation.ZONE,
            ["eu-west-1a", "us-gov-west-1b"],
            ["eu-west-1", "eu-1a", "eu-west-1ab", "EU-west-1a"],
        ),
        (validation.GLUE_DATABASE, ["a", "lkc-abc_1", "a" * 255], ["", "A", "a.b", "a" * 256]),
        (
            validation.IAM_PATH,
            ["/a/", "/team/a+=,.@_-9/", f"/{'a' * 198}/"],
            ["", "/", "//", "/a", "a/", "/a//", f"/{'a' * 199}/"],
        ),
        (validation.QUALIFIER, ["a", "a1b2c3d4e5"], ["", "A", "a-b", "a1b2c3d4e5f"]),
    ],
)
def test_a_name_is_one_that_every_vendor_takes(form, good, bad):
    assert [name for name in good if form.problem(name)] == []
    assert [name for name in bad if not form.problem(name)] == []


def test_names_that_could_be_secrets_are_not_repeated():
    for form in (validation.SECRET_NAME, validation.PROXY):
        assert "me:pw" not in form.problem("http://me:pw@proxy$")
    assert "'a b'" in validation.NAME.problem("a b")


READERS = ["user/a", "role/a", "role/of/a+=,.@-_9", f"role/{'a' * 64}"]


def test_readers_are_roles_users_and_permission_sets():
    account = f"{_IAM}111122223333:"
    sso = f"{account}role/aws-reserved/sso.amazonaws.com/"
    good = [
        *(account + reader for reader in READERS),
        f"{sso}AWSReservedSSO_Analysts_*",
        f"{sso}eu-west-1/AWSReservedSSO_{'a' * 32}_*",
    ]
    assert [validation.explain_bad_reader(arn) for arn in good] == [None] * len(good)
    session = f"{_IAM.replace('iam', 'sts')}111122223333:assumed-role/a/*"
    assert validation.explain_bad_reader(session) == (
        f"{session} is a session, which ends. Name its role: arn:aws:iam::<account>:role/<path and name>"
    )
    for arn in (f"{account}role/*", f"{sso}AWSReservedSSO_{'a' * 33}_*", f"{sso}AWSReservedSSO_A*"):
        assert "could match roles that you don't know" in validation.explain_bad_reader(arn)
    for arn in ("", f"{account}role/{'a' * 65}", f"{account}group/a", f"{account}role/ä", f"{_IAM}1:user/a"):
        assert "is not the ARN of an IAM role or user" in validation.explain_bad_reader(arn)


def test_every_message_says_what_is_wrong_and_what_is_right():
    long = "#" * 300
    assert {
        validation.topic_name: validation.topic_name("#"),
        validation.new_topic_name: validation.new_topic_name("aB"),
        validation.bucket_name: validation.bucket_name("A-b"),
        "dot": validation.bucket_name("a.b"),
        validation.mail_address: validation.mail_address(long),
        validation.explain_bad_sender: validation.explain_bad_sender(long),
        validation.explain_bad_identity: validation.explain_bad_identity(long),
        validation.tag_value: validation.tag_value(long),
        validation.tag_name: validation.tag_name(long),
        validation.region: validation.region(long),
    } == {
        validation.topic_name: (
            "'#' is not a valid name of a topic: letters, digits, dots, hyphens, underscores; at most 249"
        ),
        validation.new_topic_name: (
            "'aB' has upper-case letters, and names in Glue and Athena are lower case: two topics could become "
            "one table"
        ),
        validation.bucket_name: (
            "'A-b' is not a valid name of a bucket: 3 to 63 lower-case letters, digits and hyphens, none of "
            "them at the ends"
        ),
        "dot": "'a.b' has a dot, and neither Snowflake nor TLS by host name supports such a bucket",
        validation.mail_address: f"'{'#' * 60}' is not a mail address",
        validation.explain_bad_sender: (
            f"'{'#' * 80}' is no sender: write an address, or a name of ASCII letters, digits, blanks and "
            "._&+- before an address in < and >"
        ),
        validation.explain_bad_identity: f"'{'#' * 60}' is neither a domain nor a mail address",
        validation.tag_value: (
            f"'{'#' * 60}' can't be the value of a tag: letters, digits, blanks and . : / = + @ _ -"
        ),
        validation.tag_name: (
            f"'{'#' * 60}' can't be the name of a tag: 1 to 128 letters, digits, blanks and . : / = + @ _ -"
        ),
        validation.region: f"'{'#' * 40}' is not an AWS region with Glue",
    }


def test_data_of_an_unknown_name_is_answered_with_the_known_ones():
    message = validation.datagen(f"stok_trades{'x' * 40}")
    assert message.startswith(
        f"'stok_trades{'x' * 29}' is not a quickstart of the Datagen connector. Use \"schema\" or one of CAMPAIGN_"
    )
    assert message.endswith(", USERS, USERS_")
    assert validation.datagen("stok_trades").endswith(", USERS_. Did you mean STOCK_TRADES?")
    assert [name for name in validation.QUICKSTARTS if not re.fullmatch("[A-Z_]+", name)] == []
    assert list(validation.QUICKSTARTS) == sorted(set(validation.QUICKSTARTS))
