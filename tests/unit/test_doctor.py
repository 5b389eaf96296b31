"""The parts of `doctor` that need no stand-ins: the runner, tools, and the reading of a role's trust."""

from __future__ import annotations

import json
import threading

import attrs
import pytest

from config.deployments import deployment_file
from config.deployments.snowflake_model import Snowflake
from config.exports.check import NOT_JUDGED
from lakeferry.cli import doctor
from lakeferry.deployment.node import Node, NoNode
from lakeferry.errors import CommandFailed
from lakeferry.health import runner, snowflake, storage, tools, trust
from lakeferry.health.model import Check, Group, Result, mark_consequences
from lakeferry.health.runner import Probe
from lakeferry.health.trust import Principal, Role
from lakeferry.local.java import FoundJava
from lakeferry.output import Output
from lambdas import contract
from tests.support.snowflake_context import MISSING, result, script, vendor

G = Group("group")
ARN = "arn:aws:iam::111122223333:role/lake"
CONFLUENT = "arn:aws:iam::999988887777:role/confluent"


def test_probes_run_at_once_and_are_reported_in_order():
    """Each probe waits until all have started. One after the other, none would end."""
    barrier = threading.Barrier(3, timeout=30)

    def look(name):
        barrier.wait()
        return [G.ok(name, "well")]

    found = runner.run([Probe(G, name, lambda name=name: look(name)) for name in "cab"])
    assert [check.name for check in found] == ["c", "a", "b"]


def test_a_probe_without_checks_has_answered():
    assert runner.run([Probe(Group("G"), "nothing to check", list)]) == []


def test_a_hanging_probe_is_reported_and_stops_no_other():
    never = threading.Event()
    probes = [
        Probe(G, "hangs", lambda: never.wait(60) and []),
        Probe(G, "answers", lambda: [G.ok("answers", "well")]),
    ]
    hangs, answers = runner.run(probes, patience=0.2)
    never.set()
    assert (hangs.result, hangs.name, "no answer" in hangs.message) == (Result.FAIL, "hangs", True)
    assert answers.result is Result.OK


def test_a_probe_that_raises_is_reported_and_stops_no_other():
    def mistaken():
        raise KeyError("oh")

    def refused():
        raise CommandFailed("NO-CDK", "there is none", "Get one")

    probes = [
        Probe(G, "mistaken", mistaken),
        Probe(G, "refused", refused),
        Probe(G, "well", lambda: [G.ok("well", "")]),
    ]
    mistake, refusal, well = runner.run(probes)
    assert (mistake.result, "UNEXPECTED" in mistake.message, bool(mistake.fix)) == (Result.FAIL, True, True)
    assert (refusal.message, refusal.fix) == ("NO-CDK: there is none", "Get one")
    assert well.result is Result.OK


def test_a_consequence_of_an_earlier_failure_names_it():
    chain = [
        G.ok("a", ""),
        G.fail("b", "", "fix b"),
        G.fail("c", "", "fix c"),
        G.fail("d", "", "fix d"),
        G.fail("e", "", ""),
    ]
    checks = mark_consequences(chain, {"c": (), "d": ("a",), "e": ("d",)}, "Then look again")
    assert [check.caused_by for check in checks] == ["", "", "b", "", "d"]
    assert checks[2].fix == "Caused by “b”: fix that first. Then look again"
    assert [check.name for check in checks if check.is_root] == ["b", "d"]


def test_without_an_earlier_failure_nothing_is_a_consequence():
    chain = [G.ok("a", ""), G.warn("b", ""), G.skip_unseen("c"), G.fail("d", "", "fix d")]
    assert mark_consequences(chain, {"d": ()}, "") == chain


@pytest.mark.parametrize(
    ("version", "result"), [((3, 11, 9), Result.OK), ((3, 12, 1), Result.FAIL), ((3, 10, 4), Result.FAIL)]
)
def test_python(version, result):
    found = tools.check_python(version)
    assert found.result is result
    assert (result is Result.OK) == (found.fix == "")


def npm(folder, text, code=0):
    """Create a script that answers like npm."""
    folder.mkdir(exist_ok=True)
    script = folder / "npm"
    script.write_text(f"#!/bin/sh\necho '{text}'\nexit {code}\n")
    script.chmod(0o755)
    return Node(folder / "node", (str(script),), 24)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "package.json").write_text(json.dumps({"devDependencies": {"aws-cdk": "2.5.0"}}))
    return tmp_path


def brought(root, version):
    folder = root / "node_modules" / "aws-cdk"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"version": version}))


def test_an_installed_pinned_command_line_passes(root):
    brought(root, "2.5.0")
    assert tools.check_cdk_cli(npm(root / "bin", "", 1), root).result is Result.OK


@pytest.mark.parametrize("here", ["", "3.0.0"])
def test_without_the_pinned_command_line_a_download_must_be_possible(root, here):
    if here:
        brought(root, here)
    found = tools.check_cdk_cli(npm(root / "bin", "2.5.0"), root)
    assert (found.result, "2.5.0 can be fetched" in found.message, (here or "none") in found.message) == (
        Result.OK,
        True,
        True,
    )


@pytest.mark.parametrize(("text", "code"), [("no route to host", 1), ("2.4.0", 0)])
def test_a_failed_download_is_reported_with_npms_message(root, text, code):
    found = tools.check_cdk_cli(npm(root / "bin", text, code), root)
    assert (found.result, found.needed) == (Result.FAIL, "2.5.0")
    assert text in found.message


def test_without_node_the_command_line_is_not_checked(root):
    def none():
        raise NoNode("there is no Node on this machine")

    node, cli = tools.with_node(none, root)
    assert (node.result, cli.result) == (Result.FAIL, Result.SKIPPED)
    assert "make setup" in node.fix


def test_how_node_was_found_is_reported(root):
    brought(root, "2.5.0")
    own, _ = tools.with_node(lambda: Node(root / "node", (str(root / "npm"),), 22), root)
    packaged, _ = tools.with_node(
        lambda: Node(root / "node", ("node", "/x/lib/node_modules/npm/bin/npm-cli.js"), 24), root
    )
    assert (own.message, packaged.message) == ("22, this machine's own", "24, came with the Python packages")


def test_java_is_only_for_runs_on_this_machine(tmp_path):
    assert tools.check_java(lambda: FoundJava(tmp_path, ())).result is Result.OK
    missing = tools.check_java(lambda: FoundJava(None, ("Java 21 at /opt",)))
    assert (missing.result, "Java 21 at /opt" in missing.message) == (Result.WARN, True)


def test_uv_is_needed_for_the_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.check_uv(tmp_path / "python").result is Result.FAIL
    (tmp_path / "uv").touch()
    assert tools.check_uv(tmp_path / "python").message == str(tmp_path / "uv")


FILE = """
[deployment]
name = "lake"
stage = "test"
owner = "a team"
[aws]
region = "eu-west-1"
[confluent]
cloud_key_secret = "key"
[[topics]]
name = "orders"
tableflow = {}
[alerts]
engineers = ["engineers@example.com"]
"""


@pytest.mark.parametrize(("field", "result"), [("orderId", Result.WARN), ("order_id", Result.OK)])
def test_fields_with_capitals_are_reported(tmp_path, field, result):
    (tmp_path / "topics").mkdir()
    schema = {"type": "record", "name": "Order", "fields": [{"name": field, "type": "string"}]}
    (tmp_path / "topics" / "orders.avsc").write_text(json.dumps(schema))
    found = tools.check_field_names(
        deployment_file.parse(FILE, name="test.toml", root=tmp_path, judge=NOT_JUDGED)
    )
    assert found.result is result
    assert (f"orders.{field}" in found.message) == (result is Result.WARN)


def statement(**changed):
    condition = {"StringEquals": {"sts:ExternalId": "our-id"}}
    allow = {
        "Effect": "Allow",
        "Principal": {"AWS": CONFLUENT},
        "Action": "sts:AssumeRole",
        "Condition": condition,
    }
    return {**allow, **changed}


@pytest.mark.parametrize(
    ("statements", "expected_message"),
    [
        ([statement()], ""),
        ([statement(Principal={"AWS": [CONFLUENT, ARN]}, Action=["sts:AssumeRole", "sts:TagSession"])], ""),
        ([statement(Condition={"StringEquals": {"sts:externalid": ["another", "our-id"]}})], ""),
        ([statement(Condition={"StringEquals": {"sts:ExternalId": "another"}}), statement()], ""),
        ([], "nobody"),
        ([statement(Principal={"Service": "glue.amazonaws.com"})], "nobody"),
        ([statement(Principal={"AWS": "AROAEXAMPLEEXAMPLE"})], "AROAEXAMPLEEXAMPLE (deleted since)"),
        ([statement(Principal="*")], "trusts *"),
        ([statement(Action="sts:TagSession")], "nobody"),
        ([statement(Condition={})], "takes any"),
        ([statement(), statement(Condition={})], "takes any"),
        ([statement(Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}})], "takes any"),
        ([statement(Condition={"StringEquals": {"sts:ExternalId": "another"}})], "external id another"),
        ([statement(), statement(Effect="Deny", Condition={})], "denies sts:AssumeRole"),
        (
            [statement(), statement(Effect="Deny", Principal="*", Action="sts:*", Condition={})],
            "denies sts:AssumeRole",
        ),
        ([statement(), statement(Effect="Deny")], ""),
        ([statement(), statement(Effect="Deny", Action="sts:TagSession", Condition={})], ""),
        ([statement(Effect="Deny", Condition={})], "denies sts:AssumeRole"),
    ],
)
def test_a_trust_is_compared_by_value(statements, expected_message):
    found = trust.check_trust(
        G, Role(ARN, statements), Principal("trust", "sts:AssumeRole", CONFLUENT, "our-id"), "put it back"
    )
    assert found.result is (Result.FAIL if expected_message else Result.OK)
    if expected_message:
        assert expected_message in found.message
        assert "our-id" in found.needed
        assert found.fix == "put it back"


def test_tags_carry_no_external_id():
    tags = Principal("tags", "sts:TagSession", CONFLUENT)
    allowed = {"Effect": "Allow", "Principal": {"AWS": CONFLUENT}, "Action": "sts:TagSession"}
    assert trust.check_trust(G, Role(ARN, [allowed]), tags, "").result is Result.OK
    assert trust.check_trust(G, Role(ARN, [statement()]), tags, "").result is Result.FAIL


@pytest.mark.parametrize(
    ("key", "is_ours"),
    [
        ("0001010/11110000/org/env-1/lkc-1/v1/5f1c/metadata/00001.metadata.json", True),
        ("/1010/1111/org/env-1/lkc-1/v1/5f1c/data/part.parquet", True),
        ("reports/2026.csv", False),
        ("v1/5f1c/data/part.parquet", False),
        ("a/v1/notes.txt", False),
    ],
)
def test_files_of_tables_are_distinguished_from_others(key, is_ours):
    assert storage.is_of_table(key) is is_ours


WANTED = Snowflake(account="a-b", key_secret="deployer")


@pytest.mark.parametrize(
    ("kind", "password", "fix"),
    [
        ("SERVICE", "null", ""),
        ("null", "null", "ALTER USER LAKEFERRY SET TYPE=SERVICE;"),
        (
            "LEGACY_SERVICE",
            "********",
            "ALTER USER LAKEFERRY UNSET PASSWORD; ALTER USER LAKEFERRY SET TYPE=SERVICE;",
        ),
        ("SERVICE", "********", "ALTER USER LAKEFERRY UNSET PASSWORD;"),
    ],
)
def test_a_password_is_reported_with_the_way_to_remove_it(server, kind, password, fix):
    rows = ({"property": "TYPE", "value": kind}, {"property": "PASSWORD", "value": password})
    found = snowflake.check_user(vendor(script(server, DESC=result(*rows))), WANTED)
    assert found.result is (Result.WARN if fix else Result.OK)
    assert found.fix.endswith(fix)


def test_a_user_without_access_to_itself_is_no_failure(server):
    found = snowflake.check_user(vendor(script(server, DESC=MISSING)), WANTED)
    assert (found.result, "DESC USER" in found.fix) == (Result.WARN, True)


@pytest.mark.parametrize(
    ("granted", "result_"),
    [
        ([("CREATE ROLE", "ACCOUNT", "A")], Result.FAIL),
        ([(name, "ACCOUNT", "A") for name in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES], Result.OK),
        ([(name, "DATABASE", "A") for name in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES], Result.FAIL),
    ],
)
def test_privileges_count_on_the_account_only(granted, result_):
    rows = [{"privilege": privilege, "granted_on": on, "name": name} for privilege, on, name in granted]
    found = snowflake.check_privileges(rows, WANTED)
    assert found.result is result_
    assert ("GRANT CREATE WAREHOUSE ON ACCOUNT TO ROLE LAKEFERRY;" in found.fix) == (result_ is Result.FAIL)


def test_an_admin_s_role_is_more_than_is_needed():
    assert snowflake.check_privileges([], attrs.evolve(WANTED, role="ACCOUNTADMIN")).result is Result.WARN


CHECKS = [
    Check("tools", "Python", Result.OK, "3.11.9"),
    Check("AWS", "bootstrap", Result.FAIL, "version 5", "8 at least", "Run it again"),
    Check("AWS", "quota", Result.WARN, "10"),
    Check("hops", "one", Result.SKIPPED, "not deployed"),
    Check("hops", "two", Result.SKIPPED, "not deployed"),
    Check("more", "three", Result.FAIL, "no", caused_by="bootstrap"),
]


def test_results_are_marks_on_a_terminal_and_words_elsewhere(capsys):
    assert doctor.format_lines(CHECKS[0], marks=True) == ["  ✓ Python: 3.11.9"]
    assert [doctor.format_lines(check, marks=True)[0][2] for check in CHECKS[1:4]] == ["✗", "!", "–"]
    doctor.show(Output(), CHECKS)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "tools", "  ok   Python: 3.11.9", "AWS", "  fail bootstrap: version 5", "      needed: 8 at least",
        "      → Run it again", "  warn quota: 10", "hops", "  skip 2 checks: not deployed", "more",
        "  fail three: no", "1 ok, 1 with warnings, 2 failed",
    ]  # fmt: skip


def test_the_summary_names_root_causes_only():
    with pytest.raises(CommandFailed) as failed:
        doctor.require_healthy(CHECKS, {"checks": []})
    assert (failed.value.exit_code, failed.value.code, failed.value.hint) == (3, "DOCTOR", "Run it again")
    assert failed.value.message == "failed: AWS: bootstrap"
    doctor.require_healthy([CHECKS[0], CHECKS[2], CHECKS[3]], {})
