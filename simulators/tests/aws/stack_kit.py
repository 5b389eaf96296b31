"""A stack of one resource in an embedded AWS."""

import itertools
import json

from tests.support.waiting import until

_numbers = itertools.count(1)
_PATIENCE = 30.0


class Stack:
    """A stack of one resource of this type; `resource` is its physical id, empty if none was created."""

    def __init__(self, aws, resource_type, **properties):
        self._stacks = aws.client("cloudformation")
        self.name = f"one-resource-{next(_numbers)}"
        self._type = resource_type
        self._stacks.create_stack(
            StackName=self.name, TemplateBody=self._template(properties), Capabilities=["CAPABILITY_IAM"]
        )
        settled = self._settled(self.name)
        self._id = settled["StackId"]
        self.status = settled["StackStatus"]
        created = self._stacks.describe_stack_resources(StackName=self._id)["StackResources"]
        self.resource = created[0]["PhysicalResourceId"] if created else ""

    def update(self, **properties):
        """The stack's status afterwards."""
        self._stacks.update_stack(StackName=self.name, TemplateBody=self._template(properties))
        return self._settled(self._id)["StackStatus"]

    def delete(self):
        """The stack's status afterwards."""
        self._stacks.delete_stack(StackName=self.name)
        return self._settled(self._id)["StackStatus"]

    def _settled(self, name):
        until(lambda: not self._described(name)["StackStatus"].endswith("_IN_PROGRESS"), _PATIENCE)
        return self._described(name)

    def _described(self, name):
        return self._stacks.describe_stacks(StackName=name)["Stacks"][0]

    def _template(self, properties):
        return json.dumps({"Resources": {"It": {"Type": self._type, "Properties": properties}}})


def begin_stack(aws, resource_type, others=None, outputs=None, *, change_set=False, **properties):
    """Begin to create a stack of this resource and others. Return its name."""
    name = f"to-fail-{next(_numbers)}"
    resources = {"It": {"Type": resource_type, "Properties": properties}, **(others or {})}
    template = {"Resources": resources, "Outputs": outputs or {}}
    stacks = aws.client("cloudformation")
    if change_set:
        stacks.create_change_set(
            StackName=name, ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=json.dumps(template)
        )
        stacks.get_waiter("change_set_create_complete").wait(StackName=name, ChangeSetName="first")
        stacks.execute_change_set(StackName=name, ChangeSetName="first")
    else:
        stacks.create_stack(StackName=name, TemplateBody=json.dumps(template))
    return name


def settled_events(aws, name):
    """Return status and physical id of each event, the oldest first, once the stack is settled; its own
    events have its name.
    """
    stacks = aws.client("cloudformation")
    stack_id = next(
        summary["StackId"]
        for summary in stacks.list_stacks()["StackSummaries"]
        if summary["StackName"] == name
    )

    def events():
        listed = stacks.describe_stack_events(StackName=stack_id)["StackEvents"]
        return [
            (
                event["ResourceStatus"],
                name if event["LogicalResourceId"] == name else event["PhysicalResourceId"],
            )
            for event in reversed(listed)
        ]

    def is_settled():
        return next(status for status, resource in reversed(events()) if resource == name).endswith(
            ("_COMPLETE", "_FAILED")
        )

    until(is_settled, _PATIENCE)
    return events()


def status_of(aws, resource_type, **properties):
    """Return the status of a new stack of this resource once it is settled."""
    name = begin_stack(aws, resource_type, **properties)
    return next(status for status, resource in reversed(settled_events(aws, name)) if resource == name)
