"""The check of the Confluent organization's quotas."""

from __future__ import annotations

import pytest

from lakeferry.health import confluent as health
from tests.support.confluent_context import cloud, listing


@pytest.mark.parametrize(
    ("answer", "result", "words"),
    [
        (
            listing({"id": "a", "display_name": "Environments", "applied_limit": 25, "usage": 25}),
            "warn",
            "Environments: 25 of 25",
        ),
        (
            listing({"id": "a", "applied_limit": 25, "usage": 24}, {"id": "b", "applied_limit": 3}),
            "ok",
            "none of 2",
        ),
        ((403, {"errors": [{"detail": "no"}]}), "skip", "not checked"),
        ((404, {"errors": [{"detail": "no"}]}), "skip", "not checked"),
    ],
)
def test_doctor_names_the_quotas_that_are_used_up(server, answer, result, words):
    server.answers["GET /service-quota/v1/applied-quotas"] = answer
    check = health.check_quotas(None, cloud(server))
    assert (check.result, words in check.message) == (result, True)
    assert server.sent[-1].query["scope"] == "organization"
