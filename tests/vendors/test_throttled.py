"""Two hundred resources at once, against a vendor that accepts few calls a minute, succeed with few
retries.
"""

from __future__ import annotations

import pytest

from tests.support.confluent_environment import Organization

RESOURCES = 200
EVERY = 5
#: Calls of one service account without a limit: list, three to find out whether the login has to own it (the
#: organization, the owner of the key, the owner's roles), create, read.
MINIMUM = 6


@pytest.mark.slow
@pytest.mark.parametrize("headers", [True, False])
def test_all_resources_are_created_with_few_extra_calls(headers):
    org = Organization()
    org.simulation.limit.calls = 120
    org.simulation.limit.seconds = 60.0
    org.simulation.limit.headers = headers
    waiting = [org.resource("service_account", f"Account{number}") for number in range(RESOURCES)]
    events = []
    for thread in waiting:
        event = thread.event("Create")
        events.append({**event, **org.invocations.on_event(event)})
    rounds = 0
    while events:
        rounds += 1
        assert rounds < 200
        events = [event for event in events if not org.invocations.is_complete(event)["IsComplete"]]
        org.clock.sleep(EVERY)
    assert len(org.simulation.organization.service_accounts) == RESOURCES
    assert len(org.wire.calls) <= 1.5 * MINIMUM * RESOURCES, len(org.wire.calls)
    org.close()
