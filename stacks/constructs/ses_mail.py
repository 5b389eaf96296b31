"""Mails to recipients over Amazon SES: a configuration set, and a rule for mails that did not arrive."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_events as events
from aws_cdk import aws_ses as ses
from constructs import Construct

from lambdas import contract
from stacks.constructs.runtime import Runtime
from stacks.constructs.statements import Statement, allow
from stacks.constructs.synthesis import build_own_arn

_ANY_IDENTITY: Final = (
    "In the sandbox, SES also asks for the permission on the identity of each recipient. The condition "
    "allows one sender."
)


class SesMail(Construct):
    """`sender` is the whole sender, `address` its address. The identity of the sender exists already."""

    def __init__(self, scope: Construct, id: str, *, runtime: Runtime, sender: str, address: str) -> None:
        super().__init__(scope, id)
        self.sender = sender
        self._address = address
        self.configuration_set = f"{runtime.prefix}-mails"
        made = ses.CfnConfigurationSet(
            self,
            "Set",
            name=self.configuration_set,
            delivery_options=ses.CfnConfigurationSet.DeliveryOptionsProperty(tls_policy="REQUIRE"),
        )
        of = ses.CfnConfigurationSetEventDestination
        destination = of(
            self,
            "Undelivered",
            configuration_set_name=self.configuration_set,
            event_destination=of.EventDestinationProperty(
                name="undelivered",
                enabled=True,
                matching_event_types=["bounce", "complaint", "reject"],
                event_bridge_destination=of.EventBridgeDestinationProperty(
                    event_bus_arn=build_own_arn(self, "events", "event-bus/default")
                ),
            ),
        )
        destination.add_resource_dependency(made)

    def create_rule(self) -> events.Rule:
        """Return the rule that matches mails of this configuration set that did not arrive."""
        return events.Rule(
            self,
            "Rule",
            description="A mail did not arrive, or was reported as spam",
            event_pattern=events.EventPattern(
                source=[contract.SES_SOURCE],
                detail_type=list(contract.UNDELIVERED),
                detail={"mail": {"tags": {"ses:configuration-set": [self.configuration_set]}}},
            ),
        )

    def may_send(self) -> list[Statement]:
        """Allow sending from the one address. Content that is raw needs the second action."""
        resources = ["identity/*", f"configuration-set/{self.configuration_set}"]
        return [
            allow(
                "SendMails",
                ["ses:SendEmail", "ses:SendRawEmail"],
                [build_own_arn(self, "ses", resource) for resource in resources],
                {"StringEquals": {"ses:FromAddress": self._address}},
                why=_ANY_IDENTITY,
            )
        ]
