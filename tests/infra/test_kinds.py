"""What the templates declare is what the functions behind them accept: each resource is read by its own kind, strictly."""

from __future__ import annotations

import copy

import pytest
from policies import Reader

from lambdas import contract
from lambdas.core.errors import BadProperties
from lambdas.core.properties import parse
from lambdas.resources import registry

#: What CloudFormation will have made of a reference, where a kind looks at the value's form.
SAMPLES = {"iam_user_arn": "arn:aws:iam::111122223333:user/x", "full_name": "SALES.PUBLIC", "name": "SALES"}


def given(assembly):
    """(where, kind, properties as CloudFormation sends them: all plain values are text)."""
    reader = Reader(assembly)
    for part, template in assembly.templates.items():
        for logical_id, body in template["Resources"].items():
            if body["Type"].startswith("Custom::Lakeferry") and body["Type"] != contract.PURGE_TYPE:
                yield f"{part}.{logical_id}", body["Properties"]["kind"], _sent(reader.text(body["Properties"], part))


def _sent(value):
    if isinstance(value, dict):
        return {name: _sent(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_sent(one) for one in value]
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    for bucket in ("<data.TableflowBucket", "<data.LakeBucket"):
        if bucket in text:
            return text[: text.index(bucket)] + "a-bucket" + text[text.index(">") + 1 :]
    attribute = text.strip("<>").rpartition(".")[2] if text.startswith("<") else ""
    return SAMPLES.get(attribute, text)


def test_each_kind_accepts_what_it_is_given(assembly):
    seen = 0
    for where, kind, properties in given(assembly):
        try:
            parse(registry.find(kind).kind.Spec, properties, strict=True)
        except BadProperties as bad:
            pytest.fail(f"{where}: {bad}")
        seen += 1
    assert seen > 40


def test_a_wrong_value_is_seen(dev):
    _, kind, properties = next(one for one in given(dev) if one[1] == "tableflow_topic")
    wrong = copy.deepcopy(properties)
    wrong["retention_ms"] = "1"
    with pytest.raises(BadProperties, match="less than 1 days"):
        parse(registry.find(kind).kind.Spec, wrong, strict=True)


def test_one_update_makes_nothing_anew_that_holds_data(dev):
    """What users change day by day is none of the values for which a topic, a table or a cluster is made anew."""
    harmless = {
        "topic": {"partitions", "config"},
        "tableflow_topic": {"retention_ms", "error_handling", "table_formats"},
        "kafka_cluster": {"type", "max_ecku", "deletion_protection"},
        "connector": {"max_interval_ms"},
    }
    for kind, changes in harmless.items():
        assert not changes & set(registry.find(kind).kind.REPLACE_ON)
