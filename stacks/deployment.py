"""The stacks of a deployment, in the order of their dependencies."""

from __future__ import annotations

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks, ServerlessChecks

from config.deployments.deployment_file import LoadedDeployment
from stacks.confluent.stack import ConfluentStack
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.operations import OperationsStack
from stacks.snowflake import SnowflakeStack


def compose(app: App, loaded: LoadedDeployment) -> None:
    """Create the stacks. A finding of cdk-nag that is not acknowledged stops the synthesis."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app), NIST80053R5Checks(app))
    data = DataStack(app, loaded=loaded)
    confluent = ConfluentStack(app, loaded=loaded, data=data) if loaded.deployment.confluent else None
    exports = ExportsStack(app, loaded=loaded, data=data, confluent=confluent)
    snowflake = None
    if confluent and loaded.deployment.uses_snowflake:
        snowflake = SnowflakeStack(app, loaded=loaded, data=data, confluent=confluent)
        if loaded.deployment.shows_aggregates:
            # It shows tables that the exports stack creates.
            snowflake.add_stack_dependency(exports)
    OperationsStack(app, loaded=loaded, data=data, confluent=confluent, snowflake=snowflake, exports=exports)
