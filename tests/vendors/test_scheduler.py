"""CloudFormation's calls in random order: stacks are created, changed, rolled back, cancelled and deleted.

Events come twice, late, reordered and with invented ids. Two stacks share an account and an organization.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lambdas.shared.errors import LakeferryError
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import kafka
from tests.support.resource_environment import ACCOUNT, Resource

STACKS = ("lake", "pond")
LOGICAL = {
    "Account": "service_account",
    "Topic": "topic",
    "Link": "provider_integration",
    "Pool": "flink_compute_pool",
}
EVERY = 20
stacks = st.sampled_from(STACKS)
names = st.sampled_from(sorted(LOGICAL))
values = st.integers(0, 3)


@functools.cache
def shared():
    """Return what both stacks' resources need. It is the same for every run of the machine."""
    org = Organization()
    return org, kafka(org)[0], org.freeze()


class StackStates:
    """The states that CloudFormation returns."""

    def __init__(self):
        self.back = set()
        self.creating = set()

    def is_forward(self, stack_id):
        return stack_id not in self.back

    def is_rolling_back(self, stack_id):
        return stack_id in self.back

    def is_creating(self, stack_id, logical_id):
        return (stack_id, logical_id) in self.creating


class Scheduler(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.org, self.where, frozen = shared()
        self.org.thaw(frozen)
        self.base = self.org.objects()
        self.org.invocations.stacks = self.result = StackStates()
        self.live = {}  # the wanted Resources by (stack, logical id)
        self.ids = {}
        self.history = []

    # --- CloudFormation's calls

    @rule(stack=stacks, name=names, value=values, twice=st.booleans())
    @precondition(lambda self: len(self.live) < len(STACKS) * len(LOGICAL))
    def create(self, stack, name, value, twice):
        one = self.fresh(stack, name, value)
        if one is None:
            return
        event = self.asked(one, one.event("Create"))
        with self.waited_for(one):
            one.physical_id = self.run(one, event)
            if twice:
                assert self.run(one, event) == one.physical_id
        self.live[stack, name] = one
        self.note(stack, name)

    @rule(stack=stacks, name=names, value=values, polls=st.integers(0, 6), invented=st.booleans())
    def cancel_a_create(self, stack, name, value, polls, invented):
        """CloudFormation stops waiting, and deletes the object by the id that it got, or by one that it made
        up.
        """
        one = self.fresh(stack, name, value)
        if one is None:
            return
        event = self.asked(one, one.event("Create"))
        with self.waited_for(one):
            given = self.start_and_abandon(event, polls)
        one.physical_id = f"{stack}-{name}-1ABCDEF" if invented else given
        self.run(one, self.asked(one, one.event("Delete")))

    @rule(stack=stacks, name=names, value=values, invented=st.booleans())
    def deliver_a_create_after_its_delete(self, stack, name, value, invented):
        one = self.fresh(stack, name, value)
        if one is None:
            return
        late = self.asked(one, one.event("Create"))
        one.physical_id = "never-heard-of" if invented else ""
        self.run(one, self.asked(one, one.event("Delete")))
        self.deliver(late)

    @rule(stack=stacks, name=names, value=values)
    def update(self, stack, name, value):
        one = self.live.get((stack, name))
        if one is None:
            return
        old = one.properties
        one.properties = self.properties(stack, name, value)
        before = one.physical_id
        with self.waited_for(one):
            one.physical_id = self.run(one, self.asked(one, one.event("Update", old)))
        self.clean_up(one, before, old)
        self.note(stack, name)

    @rule(stack=stacks, name=names, value=values, polls=st.integers(0, 6))
    def cancel_an_update(self, stack, name, value, polls):
        """CloudFormation rolls back before it gets the update's result."""
        one = self.live.get((stack, name))
        if one is None:
            return
        old = one.properties
        new = self.properties(stack, name, value)
        one.properties = new
        with self.waited_for(one):
            self.start_and_abandon(self.asked(one, one.event("Update", old)), polls)
        self.roll_back(one, one.physical_id, old, new)
        self.note(stack, name)

    @rule(stack=stacks, name=names, value=values)
    def roll_a_finished_update_back(self, stack, name, value):
        """Another resource of the stack fails after this update."""
        one = self.live.get((stack, name))
        if one is None:
            return
        old = one.properties
        new = self.properties(stack, name, value)
        before = one.physical_id
        one.properties = new
        with self.waited_for(one):
            done = one.physical_id = self.run(one, self.asked(one, one.event("Update", old)))
        self.roll_back(one, done, old, new)
        assert one.physical_id == before
        self.clean_up(one, done, new)
        self.note(stack, name)

    @rule(stack=stacks, name=names)
    def delete(self, stack, name):
        one = self.live.pop((stack, name), None)
        if one is not None:
            self.ids.pop((stack, name))
            self.run(one, self.asked(one, one.event("Delete")))

    @rule(stack=stacks)
    def delete_a_stack(self, stack):
        for name in LOGICAL:
            self.delete(stack, name)

    # --- repeated and late delivery

    @rule(which=st.integers(0, 1000), only_complete=st.booleans())
    @precondition(lambda self: self.history)
    def deliver_again(self, which, only_complete):
        event = self.history[which % len(self.history)]
        self.deliver(event, only_complete=only_complete)

    @rule(hours=st.sampled_from([0.1, 1, 7]))
    def wait(self, hours):
        self.org.clock.sleep(hours * 3600)

    # --- the invariant

    @invariant()
    def objects_are_the_wanted_ones(self):
        if not hasattr(self, "live"):
            return
        self.org.settle()
        new = self.org.objects() - self.base
        kinds = [LOGICAL[name] for _, name in self.live]
        assert len(new) == len(kinds), (sorted(new), sorted(self.live))
        assert self.base <= self.org.objects()
        wanted = sorted(_expected(name, value.properties) for (_, name), value in self.live.items())
        assert sorted(self.found(new)) == wanted
        assert not self.org.leaks()

    def found(self, new):
        env = self.org.simulation.organization
        (cluster,) = env.clusters.values()
        for kind, new_object in new:
            if kind == "topics":
                topic = cluster.topics[new_object.partition("/")[2]]
                yield "Topic", topic.name, topic.settings["retention.ms"]
            elif kind == "service_accounts":
                yield "Account", env.service_accounts[new_object].description
            elif kind == "provider_integrations":
                yield "Link", env.provider_integrations[new_object].role_arn
            elif kind == "compute_pools":
                yield "Pool", str(env.compute_pools[new_object].max_cfu)
            else:
                yield kind, new_object

    def teardown(self):
        if not hasattr(self, "live"):
            return
        for stack in STACKS:
            self.delete_a_stack(stack)
            self.objects_are_the_wanted_ones()
        assert self.org.objects() == self.base

    # --- helpers

    @contextmanager
    def waited_for(self, one):
        """Make CloudFormation show the resource as being created or updated."""
        self.result.creating.add((one.stack_id, one.logical_id))
        try:
            yield
        finally:
            self.result.creating.discard((one.stack_id, one.logical_id))

    def fresh(self, stack, name, value):
        if (stack, name) in self.live:
            return None
        return Resource(
            self.org.invocations, LOGICAL[name], name, stack, **self.properties(stack, name, value)
        )

    def properties(self, stack, name, value):
        env = {"environment_id": self.where["environment_id"]}
        return {
            "Account": {"description": f"{stack} {value}"},
            "Topic": {
                **self.where,
                "topic": f"{stack}-{value % 2}",
                "config": {"retention.ms": str(86_400_000 * (1 + value // 2))},
            },
            "Link": {**env, "role_arn": f"arn:aws:iam::{ACCOUNT}:role/{stack}-{value}"},
            "Pool": {**env, "region": "eu-west-1", "max_cfu": (5, 10)[stack == "pond"]},
        }[name]

    def asked(self, one, event):
        self.history.append(event)
        return event

    def run(self, one, event):
        physical_id = one.run(event, every=EVERY)
        if event in self.history:  # else it comes again, and is known with its id
            self.history[self.history.index(event)] = {**event, "PhysicalResourceId": physical_id}
        return physical_id

    def start_and_abandon(self, event, polls):
        answer = self.org.invocations.on_event(event)
        known = {**event, **answer}
        for _ in range(polls):
            if self.org.invocations.is_complete(known)["IsComplete"]:
                break
            self.org.clock.sleep(EVERY)
        return answer["PhysicalResourceId"]

    def roll_back(self, one, known, old, new):
        self.result.back.add(one.stack_id)
        one.properties = old
        with self.waited_for(one):
            one.physical_id = self.run(
                one, self.asked(one, one.event("Update", new, PhysicalResourceId=known))
            )
        self.result.back.discard(one.stack_id)

    def clean_up(self, one, before, properties):
        """Delete a replaced object, or one that a rollback made superfluous, as CloudFormation does."""
        if before != one.physical_id:
            goes = {**one.event("Delete", PhysicalResourceId=before)}
            goes["ResourceProperties"] = {"kind": one.kind, **properties}
            self.run(one, self.asked(one, goes))

    def deliver(self, event, *, only_complete=False):
        """Deliver an event again, or late. It may fail, and must change nothing."""
        try:
            answer = event if only_complete else self.org.invocations.on_event(event)
            self.org.invocations.is_complete({"PhysicalResourceId": "", **event, **answer})
        except LakeferryError:
            pass

    def note(self, stack, name):
        """Check that the ids of all other objects are unchanged, and remember them."""
        for (other, logical), value in self.live.items():
            object_id = (
                self.org.invocations.lifecycle()
                .states.read(f"{value.stack_id}|{value.physical_id}")
                .facts.object_id
            )
            if (other, logical) != (stack, name):
                assert self.ids[other, logical] == object_id
            self.ids[other, logical] = object_id


def _expected(name, properties):
    """Return a resource's properties in the form of `found`."""
    if name == "Topic":
        return name, properties["topic"], properties["config"]["retention.ms"]
    return name, str(properties[{"Account": "description", "Link": "role_arn", "Pool": "max_cfu"}[name]])


TestScheduler = Scheduler.TestCase
TestScheduler.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
