"""The clock of a simulator: how fast its time passes can change while it runs."""

import pytest

from simulators.core.clock import Clock


def test_a_clock_that_stands_still_goes_on_where_it_stopped():
    clock = Clock(scale=1000.0, start=0.0)
    clock.set_scale(0)
    stopped = clock.now()
    assert clock.now() == stopped
    clock.advance(5)
    assert clock.now() == stopped + 5
    clock.set_scale(1000.0)
    assert clock.now() >= stopped + 5


def test_time_never_runs_backwards():
    with pytest.raises(ValueError, match="backwards"):
        Clock().set_scale(-1)
