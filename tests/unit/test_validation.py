"""Values that AWS, Confluent or Snowflake would refuse during a deployment are refused in the deployment
file.
"""

from __future__ import annotations

import boto3
import pytest

from config.deployments import validation

GOOD = {
    validation.topic_name: ["a", "0", "Stock_Trades.v2-x", "a" * 249],
    validation.new_topic_name: ["a", "0", "stock_trades.v2-x", "a" * 249],
    validation.bucket_name: ["abc", "a-1", "a" * 63],
    validation.mail_address: ["a@b.de", "first.last+tag@mail.example.com", f"{'a' * 64}@example.com"],
    validation.tag_value: ["x", "Müller: a/b=c+d@e_f-g.h", "x" * 256],
    validation.datagen: ["schema", "STOCK_TRADES", "USERS_"],
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
    validation.datagen: ["", "stock_trades", "STOCK"],
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
    ],
)
def test_a_name_is_one_that_every_vendor_takes(form, good, bad):
    assert not any(form.problem(name) for name in good)
    assert all(form.problem(name) for name in bad)
