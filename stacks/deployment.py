"""A deployment's stacks, in the order in which they need one another."""

from __future__ import annotations

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from deployments.check import Plan
from stacks.base import Surroundings
from stacks.confluent.stack import ConfluentStack
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.operations import OperationsStack
from stacks.snowflake import SnowflakeStack


def compose(app: App, plan: Plan) -> None:
    """What the rule pack finds and nobody has acknowledged ends the synthesis."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    surroundings = Surroundings.read(app)
    data = DataStack(app, plan, surroundings)
    confluent = ConfluentStack(app, plan, surroundings, data)
    snowflake = SnowflakeStack(app, plan, surroundings, data, confluent) if plan.deployment.uses_snowflake else None
    exports = ExportsStack(app, plan, surroundings, data, confluent)
    OperationsStack(app, plan, surroundings, (data, confluent, snowflake, exports))
