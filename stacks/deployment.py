"""A deployment's stacks, in the order in which they need one another."""

from __future__ import annotations

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from deployments.check import Plan
from stacks.confluent.stack import ConfluentStack
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.operations import OperationsStack
from stacks.snowflake import SnowflakeStack


def compose(app: App, plan: Plan) -> None:
    """What the rule pack finds and nobody has acknowledged ends the synthesis."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    data = DataStack(app, plan=plan)
    confluent = ConfluentStack(app, plan=plan, data=data)
    snowflake = SnowflakeStack(app, plan=plan, data=data, confluent=confluent) if plan.deployment.uses_snowflake else None
    exports = ExportsStack(app, plan=plan, data=data, confluent=confluent)
    OperationsStack(app, plan=plan, data=data, confluent=confluent, snowflake=snowflake, exports=exports)
