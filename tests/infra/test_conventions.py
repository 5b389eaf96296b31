"""What an organization asks of every deployment in its accounts: a boundary and a path of roles, its own
bootstrap, no budgets.

The shipped files get these keys, and nothing else of them changes.
"""

from __future__ import annotations

import json

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from config.deployments import deployment_file, validation
from config.exports.check import NOT_JUDGED
from config.project import PROJECT
from config.toml_model import BadFile
from tests.support import assembly_kit

BOUNDARY = "arn:aws:iam::111122223333:policy/team/boundary"
KEYS = f"""[aws]
permissions_boundary = "{BOUNDARY}"
iam_path = "/team/data/"
bootstrap_qualifier = "teamdata1"
"""


@pytest.fixture(scope="module", params=["dev", "prod"])
def strict(request, tmp_path_factory):
    """Return a shipped deployment with the keys of a strict organization, and without budget and
    dashboard.
    """
    text = (PROJECT / "deployments" / f"{request.param}.toml").read_text().replace("[aws]\n", KEYS, 1)
    text = text.replace("[alerts]\n", "[alerts]\nbudget = false\ndashboard = false\n", 1)
    plan = deployment_file.parse(text, name="strict.toml", judge=NOT_JUDGED)
    made = assembly_kit.synthesise(plan, tmp_path_factory.mktemp(f"strict-{request.param}"))
    assert not made.failure
    return made


def types(assembly):
    return {
        body["Type"] for template in assembly.templates.values() for body in template["Resources"].values()
    }


@pytest.mark.sampled(1)
def test_every_role_has_the_boundary_and_the_path(strict, assemblies):
    roles = strict.resources("AWS::IAM::Role")
    assert (
        roles.keys() == assemblies[strict.plan.deployment.identity.stage].resources("AWS::IAM::Role").keys()
    )
    assert len(roles) > 15
    assert {role.get("PermissionsBoundary") for role in roles.values()} == {BOUNDARY}
    assert {role.get("Path") for role in roles.values()} == {"/team/data/"}


def test_vendors_are_told_the_role_s_arn_with_its_path(strict):
    """The role doesn't exist yet then, so the ARN is built from its parts."""
    told = [
        json.dumps(properties["role_arn"])
        for kind in ("ProviderIntegration", "SnowflakeExternalVolume", "SnowflakeCatalogIntegration")
        for properties in strict.resources(f"Custom::Lakeferry{kind}").values()
    ]
    assert told
    prefix = strict.plan.deployment.regional_prefix
    assert all(f":role/team/data/{prefix}-" in arn for arn in told)


def test_every_template_and_asset_belongs_to_the_own_bootstrap(strict):
    for part, template in strict.templates.items():
        assert template["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/teamdata1/version"
        assert "hnb659fds" not in json.dumps(template), part
    for file in strict.folder.glob("*.assets.json"):
        assert "hnb659fds" not in file.read_text()


def test_alarms_stay_without_budget_and_dashboard(strict, assemblies):
    shipped = assemblies[strict.plan.deployment.identity.stage]
    kinds = (
        "AWS::CloudWatch::Alarm",
        "AWS::SNS::Topic",
        "AWS::SNS::Subscription",
        "AWS::Scheduler::Schedule",
    )
    for kind in kinds:
        assert strict.resources(kind).keys() == shipped.resources(kind).keys()
    assert types(shipped) - types(strict) == {"AWS::Budgets::Budget", "AWS::CloudWatch::Dashboard"}
    assert "DashboardPage" not in strict.templates["operations"].get("Outputs", {})


def test_nothing_else_changes(strict, assemblies):
    """Without the keys, roles have CDK's defaults, so a deployment of an earlier version isn't changed."""
    shipped = assemblies[strict.plan.deployment.identity.stage]
    for part, template in shipped.templates.items():
        own = {id for id, body in template["Resources"].items() if body["Type"] in types(strict)}
        assert own == strict.templates[part]["Resources"].keys()
    assert not any(
        {"Path", "PermissionsBoundary"} & set(role) for role in shipped.resources("AWS::IAM::Role").values()
    )


def deployment(region, alerts=""):
    text = (PROJECT / "deployments" / "dev.toml").read_text().replace("eu-west-1", region)
    return deployment_file.parse(
        text.replace("[alerts]\n", f"[alerts]\n{alerts}\n"), name="x", judge=NOT_JUDGED
    ).deployment


@pytest.mark.parametrize("region", validation.REGIONS)
def test_every_region_has_the_types_that_its_deployment_uses(region, assemblies):
    """The templates of all regions have the types of the shipped ones, but for the budget."""
    used = {kind for assembly in assemblies.values() for kind in types(assembly) if kind.startswith("AWS::")}
    if not deployment(region).has_budget:
        used.remove("AWS::Budgets::Budget")
    assert len(used) > 20
    assert used - set(PROVIDER_SCHEMA_MANAGER.get_resource_types(region)) == set()


def test_a_region_is_without_budgets_only_as_long_as_cloudformation_has_none():
    lacking = {
        region
        for region in validation.REGIONS
        if "AWS::Budgets::Budget" not in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)
    }
    assert lacking == validation.NO_BUDGETS


def test_a_region_without_budgets_is_synthesised_with_its_alarms(tmp_path):
    region = "eu-north-1"
    text = (PROJECT / "deployments" / "dev.toml").read_text().replace("eu-west-1", region)
    made = assembly_kit.synthesise(deployment_file.parse(text, name="north.toml", judge=NOT_JUDGED), tmp_path)
    assert not made.failure
    assert types(made) & {"AWS::Budgets::Budget"} == set()
    assert len(made.resources("AWS::CloudWatch::Alarm", "operations")) > 10
    assert {kind for kind in types(made) if kind.startswith("AWS::")} <= set(
        PROVIDER_SCHEMA_MANAGER.get_resource_types(region)
    )


BUDGETS = [
    ("eu-west-1", "", True),
    ("eu-west-1", "budget = false", False),
    ("eu-west-1", "budget = true", True),
    ("eu-north-1", "", False),
    ("eu-north-1", "budget = false", False),
]


@pytest.mark.parametrize(("region", "alerts", "has"), BUDGETS)
def test_a_budget_exists_where_it_can_and_is_wanted(region, alerts, has):
    assert deployment(region, alerts).has_budget is has


#: A table of the file, the line that is added to it, the key that is reported, words of the message.
REFUSED = [
    ("alerts", "budget = true", "alerts.budget", "no budgets in eu-north-1"),
    ("aws", 'permissions_boundary = "boundary"', "aws.permissions_boundary", "the ARN of a managed policy"),
    (
        "aws",
        f'permissions_boundary = "{BOUNDARY.replace("policy", "role")}"',
        "aws.permissions_boundary",
        "the ARN",
    ),
    ("aws", 'iam_path = "team/"', "aws.iam_path", "a slash at both ends"),
    ("aws", 'iam_path = "/team"', "aws.iam_path", "a slash at both ends"),
    ("aws", 'iam_path = "//"', "aws.iam_path", "a slash at both ends"),
    ("aws", 'bootstrap_qualifier = "Team_1"', "aws.bootstrap_qualifier", "lower-case"),
    ("aws", 'bootstrap_qualifier = "elevenchars"', "aws.bootstrap_qualifier", "1 to 10"),
    (
        "aws",
        f'account = "444455556666"\npermissions_boundary = "{BOUNDARY}"',
        "aws.permissions_boundary",
        "another account",
    ),
]


@pytest.mark.parametrize(("table", "line", "key", "words"), REFUSED)
def test_a_value_that_aws_would_refuse_is_refused_in_the_file(table, line, key, words):
    text = (PROJECT / "deployments" / "dev.toml").read_text().replace("eu-west-1", "eu-north-1")
    text = text.replace(f"[{table}]\n", f"[{table}]\n{line}\n", 1)
    with pytest.raises(BadFile) as raised:
        deployment_file.parse(text, name="x", judge=NOT_JUDGED)
    assert [
        problem.message
        for problem in raised.value.problems
        if problem.key == key and words in problem.message
    ]
