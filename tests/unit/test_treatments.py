"""Every treatment of personal data is known wherever it matters."""

from __future__ import annotations

from typing import get_args

import pytest

from config.exports import personal_rules
from config.exports.contract import Generalisation, Personal, Treatment
from dev.docs import toml_files
from glue_jobs.delivery.report import values

TREATMENTS = get_args(Treatment)
GENERALISATIONS = get_args(Generalisation)


def test_the_rules_know_what_each_treatment_needs_and_leaves():
    assert personal_rules.KEYS_OF_TREATMENTS.keys() == set(TREATMENTS)
    assert personal_rules.TYPES_AFTER.keys() == set(GENERALISATIONS)


def test_the_page_about_contracts_describes_each_treatment():
    described = [(row[0], row[1]) for row in toml_files.TREATMENTS]
    assert {name for name, _ in described} == set(TREATMENTS)
    ways = [keys for name, keys in described if name == "generalise"]
    assert len(ways) == len(GENERALISATIONS)
    for way in GENERALISATIONS:
        assert any(f'`to = "{way}"`' in keys for keys in ways)


@pytest.mark.parametrize("treatment", [name for name in TREATMENTS if name not in ("drop", "generalise")])
def test_the_report_says_what_each_treatment_does(treatment):
    personal = Personal(treatment=treatment, reason="Needed for delivery.", visible=2)
    assert len(values.treatment(personal, 1000)) > 10


def test_each_way_to_generalise_has_its_own_words_in_the_report():
    words = {
        values.treatment(Personal(treatment="generalise", to=way, size=3), 1000) for way in GENERALISATIONS
    }
    assert len(words) == len(GENERALISATIONS)


@pytest.mark.parametrize(
    "personal",
    [Personal(treatment="drop"), Personal(treatment="generalise"), Personal(treatment="blur")],
    ids=str,
)
def test_a_treatment_that_is_not_known_is_never_described_as_another_one(personal):
    with pytest.raises((ValueError, AssertionError)):
        values.treatment(personal, 1000)
