"""`deploy` and `status` say how people log in, what to ask first, and which tables they don't see."""

from __future__ import annotations

import attrs

from lakeferry.deployment import people
from lakeferry.deployment.context import DeploymentContext

OUTPUTS = {"ViewsSchemaName": "LAKE.VIEWS", "PeopleRoleName": "LAKE_PEOPLE", "WarehouseName": "LAKE"}


def described(ctx, outputs=OUTPUTS, **snowflake):
    settings = attrs.evolve(ctx.deployment.snowflake, **snowflake)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, snowflake=settings))
    return list(people.describe(DeploymentContext(loaded, ctx.addresses, clock=ctx.clock), outputs))


def test_people_get_a_login_a_role_and_a_query(ctx):
    lines = "\n".join(described(ctx))
    assert "https://app.snowflake.com/" in lines
    assert "role: LAKE_PEOPLE; warehouse: LAKE" in lines
    assert "SELECT * FROM LAKE.VIEWS.STOCK_TRADES LIMIT 10" in lines
    assert "nobody has the role yet" in lines
    assert "nobody has the role yet" not in "\n".join(described(ctx, grant_to_users=["ANNA"]))


def test_a_table_without_a_view_is_named_with_the_reason(ctx):
    (topic,) = ctx.deployment.topics
    unknown = attrs.evolve(topic, name="elsewhere", datagen=None)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, topics=[unknown]))
    lines = list(people.describe(DeploymentContext(loaded, ctx.addresses, clock=ctx.clock), OUTPUTS))
    assert any("no view of STOCK_TRADES: it has no schema file" in line for line in lines)
    assert not any("first query" in line for line in lines)


def test_a_deployment_without_views_says_nothing(ctx):
    assert described(ctx, {}) == []
    assert described(ctx, enabled=False) == []
