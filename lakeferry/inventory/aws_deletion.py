"""How AWS resources are deleted that CloudFormation doesn't delete.

All functions raise ClientError, BotoCoreError and LakeferryError. One that returns False has to be called
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.model import Item
from lambdas.custom_resources.cleanup import Cleaner


def call(service: str, operation: str, **parameters: Any) -> Callable[[DeploymentContext, Item], Any]:
    """Return a function that deletes an item by one call.

    It fills in {id}, {name}, {parent} and {account} in the parameters.
    """

    def delete(ctx: DeploymentContext, item: Item) -> None:
        values = {
            "id": item.id,
            "name": item.name,
            "parent": "".join(item.parents[:1]),
            "account": ctx.account,
        }
        arguments = {}
        for name, value in parameters.items():
            arguments[name] = value.format(**values) if isinstance(value, str) else value
        getattr(ctx.client(service), operation)(**arguments)

    return delete


def delete_event_rule(ctx: DeploymentContext, item: Item) -> None:
    events = ctx.client("events")
    targets = events.list_targets_by_rule(Rule=item.name)["Targets"]
    if ids := [target["Id"] for target in targets]:
        events.remove_targets(Rule=item.name, Ids=ids)
    events.delete_rule(Name=item.name)


def delete_bucket(ctx: DeploymentContext, item: Item) -> bool:
    # A policy of the deployment lets only Tableflow delete objects.
    if not Cleaner(ctx.client, ctx.account, ctx.deadline).bucket(item.name, delete_policy=True):
        return False
    ctx.client("s3").delete_bucket(Bucket=item.name, ExpectedBucketOwner=ctx.account)
    return True


def delete_role(ctx: DeploymentContext, item: Item) -> None:
    iam = ctx.client("iam")
    for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=item.name):
        for policy in page["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=item.name, PolicyArn=policy["PolicyArn"])
    for page in iam.get_paginator("list_role_policies").paginate(RoleName=item.name):
        for name in page["PolicyNames"]:
            iam.delete_role_policy(RoleName=item.name, PolicyName=name)
    iam.delete_role(RoleName=item.name)
