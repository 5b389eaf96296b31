"""The functions' settings: which variables each function needs and may have."""

from __future__ import annotations

import attrs
import pytest

from lambdas.shared import settings
from lambdas.shared.errors import LakeferryError
from lambdas.shared.settings import FunctionSettings

VARIABLES = {
    "ResourceSettings": ("PROJECT STAGE STATE_TABLE", ""),
    "ConfluentSettings": ("CONFLUENT_SECRET", "PROXY CONFLUENT_URL TABLEFLOW_CATALOG_URL"),
    "SnowflakeSettings": (
        "SNOWFLAKE_ACCOUNT SNOWFLAKE_USER SNOWFLAKE_ROLE SNOWFLAKE_WAREHOUSE SNOWFLAKE_SECRET",
        "PROXY SNOWFLAKE_URL",
    ),
    "RotationSettings": (
        "",
        "ROTATION_KEEP LINK_DAYS ROTATION_GRACE_DAYS PROXY STATE_TABLE CONFLUENT_SECRET CONFLUENT_URL "
        "TABLEFLOW_CATALOG_URL SNOWFLAKE_URL",
    ),
    "NotificationSettings": (
        "PROJECT STAGE BUCKET PREFIX NOTICES_PREFIX SETTINGS AWS_REGION",
        "TOPIC_ARNS MAIL_SENDER MAIL_CONFIGURATION_SET ALARM_TOPIC LINK_SECRET LINK_URL DEPLOYMENT",
    ),
    "LinkSettings": ("BUCKET PREFIX LINKS_PREFIX SETTINGS LINK_SECRET DEPLOYMENT", ""),
    "MonitoringSettings": (
        "PROJECT STAGE BUCKET PREFIX SETTINGS",
        "CLUSTER TOPIC_ARNS PROXY CONFLUENT_SECRET CONFLUENT_URL TABLEFLOW_SECRET TABLE_READER_SECRET "
        "CATALOG_URI CATALOG_CLUSTER STATE_TABLE SNOWFLAKE_SCHEMA SNOWFLAKE_SECRET SNOWFLAKE_URL "
        "SNOWFLAKE_STATE_TABLE",
    ),
}


def list_variables(words):
    """Return the variables' whole names. Lambda sets AWS_REGION."""
    return [word if word.startswith("AWS_") else f"LAKEFERRY_{word}" for word in words.split()]


@pytest.fixture(params=VARIABLES)
def function(request):
    required, optional = VARIABLES[request.param]
    return getattr(settings, request.param), list_variables(required), list_variables(optional)


def test_the_settings_of_every_function_are_listed():
    assert {kind.__name__ for kind in FunctionSettings.__subclasses__()} == VARIABLES.keys()


def test_each_variable_sets_one_field_and_is_written_again(function):
    kind, required, optional = function
    every = {name: f"value of {name}" for name in [*required, *optional]}
    given = kind.from_environment({**every, "OTHER": "x"})
    assert list(attrs.asdict(given).values()) == list(every.values())
    every.pop("AWS_REGION", None)
    assert given.to_environment() == every


def test_what_is_required_is_missing_while_it_is_empty(function):
    kind, required, optional = function
    every = {name: "x" for name in [*required, *optional]}
    for missing in required:
        without = {name: "x" for name in every if name != missing}
        for variables in (without, without | {missing: ""}):
            with pytest.raises(LakeferryError, match=f"LF-SETTINGS  {missing} not set"):
                kind.from_environment(variables)
    if required:
        with pytest.raises(LakeferryError, match=f"LF-SETTINGS  {', '.join(required)} not set"):
            kind.from_environment({})


def test_what_is_optional_is_an_empty_text(function):
    kind, required, optional = function
    given = kind.from_environment({**dict.fromkeys(required, "x"), **dict.fromkeys(optional, "")})
    assert list(attrs.asdict(given).values()) == ["x"] * len(required) + [""] * len(optional)
    assert given.to_environment() == {name: "x" for name in required if name != "AWS_REGION"}


def test_values_are_given_by_name(function):
    kind, required, optional = function
    with pytest.raises(TypeError):
        kind(*["x" for _ in [*required, *optional]])
