"""Fault runs: which faults a seed gives, and (deep) that thirty runs come through and leave nothing."""

from __future__ import annotations

import json

import pytest

from dev.benchmarks import faults as benchmark
from lakeferry.output import Output
from lakeferry.rehearsal import faults, run, subject
from simulators.core.faults import read_rules

CALLS = {"AWS": 1500, "Confluent": 250, "Snowflake": 80}


def test_a_seed_always_gives_the_same_faults():
    assert (
        faults.plan(7, "deploy", CALLS) == faults.plan(7, "deploy", CALLS) != faults.plan(8, "deploy", CALLS)
    )
    assert faults.plan(7, "deploy", CALLS) != faults.plan(7, "update", CALLS)


def test_the_simulators_accept_every_fault():
    for seed in range(50):
        for rules in faults.plan(seed, "deploy", CALLS).rules.values():
            assert len(read_rules(json.dumps({"rules": rules}).encode())) == len(rules)


def test_each_vendor_is_down_in_some_runs():
    down = {
        faults.plan(seed, step, CALLS).outage
        for seed in range(30)
        for step in ("deploy", "update", "destroy")
    }
    assert down == {"AWS", "Confluent", "Snowflake", ""}


@pytest.mark.deep
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize("first", [0, 10, 20])
def test_thirty_runs_come_through_and_leave_nothing(first, tmp_path):
    document = run.run_fault_campaign(
        Output(), subject.load_example(), range(first, first + 10), out=tmp_path
    )
    assert len(document["runs"]) == 10
    assert all(count > 10 for count in document["hits"].values())
    assert "0 orphans" in benchmark.page(document)
