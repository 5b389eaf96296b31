"""Findings of the rule packs that are as they should be, each with the reason that a reviewer gets."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """`rules` are ids as a rule pack tells them: AwsSolutions-IAM5[Resource::*]."""
    Validations.of(construct).acknowledge(*[Acknowledgment(id=rule, reason=reason) for rule in rules])
