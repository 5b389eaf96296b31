"""Confluent Cloud: the Cloud key, what it may do, and whether there is place for a deployment."""

from __future__ import annotations

from typing import Final

from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.credentials import confluent as proving
from lakeferry.credentials.confluent import Owner
from lakeferry.deployment.context import Ground
from lakeferry.health import stack_outputs as parts
from lakeferry.health.model import Check, Group
from lambdas.confluent.client import CLOUD, Confluent, RestClient, text
from lambdas.shared.errors import Denied, LakeferryError, NotFound

GROUP: Final = Group("Confluent")
KEY: Final = "Cloud key"
SCOPE: Final = "Cloud key's owner"
ENVIRONMENT: Final = "environment"
FLINK: Final = "Flink's region"
TABLEFLOW: Final = "Tableflow's region"
INTEGRATIONS: Final = "provider integrations"
#: Of an organization, unless Confluent raised it.
_INTEGRATIONS: Final = 100


def look(here: Ground) -> list[Check]:
    """Everything is asked with the one key; without it, nothing is."""
    secret = here.deployment.confluent.cloud_key_secret
    again = f"Run `lakeferry secrets set confluent --stage {here.stage}`"
    rest = [ENVIRONMENT, FLINK, TABLEFLOW, INTEGRATIONS]
    try:
        vendor = here.confluent()
    except CommandFailed as failure:
        return [GROUP.fail(KEY, failure.message, failure.hint), *GROUP.all_none([SCOPE, *rest], "not asked: there is no key")]
    key = vendor.cloud.key
    try:
        owner = proving.prove(Voice(quiet=True), here, key, 0)
    except CommandFailed as failure:
        told = f"{failure.message}. {failure.why}".rstrip(". ")
        name, fix = (SCOPE, failure.hint) if failure.code == "SECRETS-SCOPE" else (KEY, f"{again} with a Cloud key that works")
        accepted = [GROUP.ok(KEY, f"{key.id}, in {secret}")] if name == SCOPE else []
        beside = [] if name == SCOPE else [SCOPE]
        why = "not asked: the key may do too little" if name == SCOPE else "not asked: the key doesn't work"
        return [*accepted, GROUP.fail(name, told, fix), *GROUP.all_none([*beside, *rest], why)]
    return [GROUP.ok(KEY, f"{key.id}, in {secret}"), _owner(owner), *_places(here, vendor)]


def _owner(owner: Owner) -> Check:
    if owner.is_person:
        fix = "Make a key of a service account: docs/how-to/prepare-confluent.md"
        return GROUP.warn(SCOPE, f"{owner.id} is a person, and the key dies with the person's account", fix)
    return GROUP.ok(SCOPE, f"{owner.id}: {', '.join(owner.roles)}")


def _places(here: Ground, vendor: Confluent) -> list[Check]:
    """Each by itself: one that can't be asked hides no other."""
    looks = {ENVIRONMENT: environment, FLINK: flink, TABLEFLOW: tableflow, INTEGRATIONS: integrations}
    found = []
    for name, look_at in looks.items():
        try:
            found.append(look_at(here, vendor))
        except LakeferryError as error:
            found.append(GROUP.fail(name, f"{error.row.code}: {error.what}", error.row.remedy))
    return found


def environment(here: Ground, vendor: Confluent) -> Check:
    given = here.deployment.confluent
    if not given.environment_id:
        return GROUP.ok(ENVIRONMENT, "a new one is made")
    known = {text(one, "id"): text(one, "display_name") for one in vendor.cloud.pages("/org/v2/environments")}
    name, fix = (
        known.get(given.environment_id),
        "Correct `confluent.environment_id` and `environment_name` in the deployment file",
    )
    if name is None:
        told = (
            f"the organization has no {given.environment_id}; it has {', '.join(f'{id} ({name})' for id, name in known.items())}"
        )
        return GROUP.fail(ENVIRONMENT, told, fix)
    if name != given.environment_name:
        return GROUP.fail(
            ENVIRONMENT, f"{given.environment_id} is called {name}", fix, f"{given.environment_name}, as the file says"
        )
    return GROUP.ok(ENVIRONMENT, f"{given.environment_id}, {name}")


def flink(here: Ground, vendor: Confluent) -> Check:
    try:
        found = vendor.flink_region(here.region)
    except NotFound:
        return GROUP.fail(
            FLINK, f"Confluent has no Flink in {CLOUD} {here.region}", "Choose another `aws.region` in the deployment file"
        )
    return GROUP.ok(FLINK, text(found, "id"))


def tableflow(here: Ground, vendor: Confluent) -> Check:
    """It answers to Tableflow's keys. There is one after the deployment; before, Confluent may refuse the Cloud key."""
    regions = _regions(_tableflow(here, vendor))
    if regions is None:
        return GROUP.none(TABLEFLOW, "not asked: only a Tableflow key may, and the deployment makes that")
    if here.region in regions:
        return GROUP.ok(TABLEFLOW, here.region)
    fix = "Choose another `aws.region` in the deployment file"
    return GROUP.fail(TABLEFLOW, f"Tableflow isn't in {here.region}; it is in {', '.join(sorted(regions))}", fix)


def _tableflow(here: Ground, vendor: Confluent) -> RestClient:
    try:
        return vendor.tableflow(here.secrets.read_key(parts.tableflow_secret(here)))
    except NotFound:
        return vendor.tableflow(vendor.cloud.key)


def _regions(plane: RestClient) -> set[str] | None:
    try:
        return {text(one, "region") for one in plane.pages("/tableflow/v1/regions", cloud=CLOUD)}
    except Denied:
        return None


def integrations(here: Ground, vendor: Confluent) -> Check:
    """Counted over all environments; which number is allowed, Confluent tells nobody."""
    places = [text(one, "id") for one in vendor.cloud.pages("/org/v2/environments")]
    found = [one for place in places for one in vendor.cloud.pages("/pim/v1/integrations", environment=place)]
    told = f"{len(found)} of {_INTEGRATIONS}, unless Confluent raised it"
    role = parts.role_arn(here, "tableflow")
    if len(found) < _INTEGRATIONS or any(text(one, "config", "customer_iam_role_arn") == role for one in found):
        return GROUP.ok(INTEGRATIONS, told)
    return GROUP.warn(INTEGRATIONS, told, "Remove integrations that nobody uses, or ask Confluent for more")
