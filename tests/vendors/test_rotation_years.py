"""Some months of rotation with readers of all ages; `python -m dev.benchmarks.rotation` simulates three
years.
"""

from __future__ import annotations

from tests.vendors.rotation_years import NAMES, Years


def test_no_reader_that_respects_the_grace_is_refused():
    result = Years(readers=30, every_hours=12).live(months=4)
    assert result.rotations == 4 * len(NAMES)
    assert result.logins > 8_000
    assert result.signed > 20
    assert result.oldest > 6.5
    assert result.most == 2
    assert result.failures == 0


def test_a_key_that_is_revoked_too_early_is_noticed():
    result = Years(readers=30, every_hours=12, revoke_early=True).live(months=2)
    assert result.failures > 0
