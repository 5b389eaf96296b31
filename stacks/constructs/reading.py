"""Permissions to read, for the roles, users and functions that an app gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from stacks.constructs.runtime import BadProps
from stacks.constructs.statements import Statement, acknowledge_policy


def grant_statements(scope: Construct, grantee: iam.IGrantable, statements: Sequence[Statement]) -> iam.Grant:
    """Grant all statements on what `scope` has. Raises BadProps for a grantee of another account, whose
    policies CDK leaves as they are without a word.
    """
    principal = find_principal(grantee)
    account = Stack.of(scope).account
    theirs = grantee.grant_principal.principal_account or account
    is_known = not Token.is_unresolved(theirs) and not Token.is_unresolved(account)
    if is_known and theirs != account:
        raise BadProps(
            f"grantee: {principal.node.path} is of account {theirs}, whose policies this app can't change. "
            f"Create a role in account {account} that it may assume"
        )
    granted = [
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(statement.actions),
            resource_arns=list(statement.resources),
            conditions=dict(statement.conditions or {}),
        )
        for statement in statements
    ]
    acknowledge_policy(principal, statements)
    combined = granted[0]
    for grant in granted[1:]:
        combined = combined.combine(grant)
    return combined


def find_principal(grantee: iam.IGrantable) -> IConstruct:
    """Return the role or user of the grantee. Raises BadProps if it has none: it would get no policy."""
    principal = cast("IConstruct", grantee.grant_principal)
    if not find_principal_arn(principal):
        raise BadProps(
            "grantee: it is no role, user or function, so there is nothing that could get a policy. Give a "
            "role of this account, which others may assume"
        )
    return principal


def find_principal_arn(principal: IConstruct) -> str:
    """Return the ARN of a role or user, "" for anything else."""
    return str(getattr(principal, "role_arn", "") or getattr(principal, "user_arn", ""))
