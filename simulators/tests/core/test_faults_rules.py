"""Which calls a rule hits. No server."""

import pytest

from simulators.core.fault_rules import SHAPES, Call, Rule

CALL = Call("PUT", "/bucket/a/b.csv", "uploadId=u&partNumber=12", {"x-amz-target": "AWSGlue.UpdateTable"})


@pytest.mark.parametrize(
    ("given", "matches"),
    [
        ({}, True),
        ({"method": "PUT", "path": "/bucket/*"}, True),
        ({"method": "P*"}, True),
        ({"method": "GET"}, False),
        ({"path": "/bucket"}, False),
        ({"path": "/Bucket/*"}, False),
        ({"query": {"partNumber": "12", "uploadId": "*"}}, True),
        ({"query": {"partNumber": "1"}}, False),
        ({"query": {"versionId": "*"}}, False),
        ({"headers": {"X-Amz-Target": "*.UpdateTable"}}, True),
        ({"headers": {"x-amz-target": "*.GetTable"}}, False),
        ({"headers": {"authorization": "?*"}}, False),
    ],
)
def test_a_rule_matches_by_method_path_query_and_headers(given, matches):
    assert Rule("error", **given).matches(CALL) is matches


@pytest.mark.parametrize(
    ("given", "hits"),
    [
        ({}, [1]),
        ({"nth": 3}, [3]),
        ({"nth": 2, "times": 3}, [2, 3, 4]),
        ({"nth": 1, "every": 2, "times": 3}, [1, 3, 5]),
        ({"nth": 7, "every": 2, "times": 0}, [7, 9]),
    ],
)
def test_a_rule_hits_the_calls_it_counts_out(given, hits):
    rule = Rule("error", **given)
    assert [number for number in range(1, 11) if rule.count()] == hits
    assert (rule.seen, rule.hits) == (10, len(hits))


def test_an_answer_is_given_as_it_is_or_made_from_its_shape():
    given = Rule("error", status=409, body="{}", reply_headers={"Content-Type": "application/problem+json"})
    assert given.answer() == (409, {"content-type": "application/problem+json", "content-length": "2"}, b"{}")
    assert b"<Code>A&lt;B</Code>" in Rule("error", shape="s3", code="A<B").answer()[2]
    assert {Rule("error", shape=shape).answer()[1]["content-type"] for shape in SHAPES} == {
        "application/json",
        "application/x-amz-json-1.1",
        "application/xml",
        "text/html",
    }
