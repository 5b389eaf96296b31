"""What every stack of a deployment has: its name, its tags, and where it looks things up."""

from __future__ import annotations

import attrs
from aws_cdk import App, CfnOutput, Environment, Stack, Tags

from deployments.check import Plan
from deployments.model import Deployment


@attrs.frozen
class Surroundings:
    """What differs between AWS and a rehearsal: addresses of APIs ("" means the vendor's own), and where functions run.

    `repairs` are resources, as stack/logical id, whose missing object shall be created again; `repair` is a value that no
    deployment before had.
    """

    confluent_url: str = ""
    catalog_url: str = ""
    snowflake_url: str = ""
    functions_here: bool = False
    repair: str = ""
    repairs: frozenset[str] = frozenset()

    @classmethod
    def read(cls, app: App) -> Surroundings:
        """From the app's context, that is `-c` on the command line."""
        names = ("confluent_url", "catalog_url", "snowflake_url")
        given = {name: str(app.node.try_get_context(name) or "") for name in names}
        repair, _, listed = str(app.node.try_get_context("repair") or "").partition(":")
        return cls(
            **given,
            functions_here=app.node.try_get_context("functions") == "here",
            repair=repair,
            repairs=frozenset(filter(None, listed.split(","))),
        )


class LakeferryStack(Stack):
    """`part` is the stack's name within the deployment, `purpose` a sentence for CloudFormation's console."""

    def __init__(self, app: App, part: str, plan: Plan, surroundings: Surroundings, *, purpose: str) -> None:
        deployment = plan.deployment
        super().__init__(
            app,
            f"{deployment.prefix}-{part}",
            description=f"Lakeferry {deployment.prefix}: {purpose}",
            env=Environment(account=deployment.aws.account, region=deployment.aws.region),
            termination_protection=deployment.keeps_data,
        )
        self.plan = plan
        self.surroundings = surroundings
        for name, value in {**_own_tags(deployment), **deployment.deployment.tags}.items():
            Tags.of(self).add(name, value)

    @property
    def deployment(self) -> Deployment:
        return self.plan.deployment

    def own_arn(self, service: str, resource: str, *, region: bool = True) -> str:
        """The ARN of something in this account, and in this region unless the service knows none."""
        return f"arn:{self.partition}:{service}:{self.region if region else ''}:{self.account}:{resource}"

    def offer(self, value: str) -> str:
        """What other stacks take instead of `value`. It is exported whether or not one takes it: a stack that gives up taking
        is deployed after this one, which until then may not stop giving."""
        offered: str = self.export_value(value)
        return offered

    def tell(self, name: str, value: str, what: str) -> None:
        """An id or address that a user needs, among the stack's outputs."""
        CfnOutput(self, name, value=value, description=what)


def _own_tags(deployment: Deployment) -> dict[str, str]:
    told = deployment.deployment
    return {"project": told.name, "stage": told.stage, "owner": told.owner}


def words(name: str) -> str:
    """For ids of constructs: stock_trades.v1 is StockTradesV1."""
    return "".join(
        part[:1].upper() + part[1:] for part in name.replace("-", "_").replace(".", "_").replace("*", "All").split("_")
    )
