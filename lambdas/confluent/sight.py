"""What the owner of an API key sees.

Confluent answers 403 for an object that is gone, and for one that the key's owner may not see; lists leave
such objects out. So what is missing is gone only if the owner has a role with which it would see the object.
Roles are read from the API: the key's owner, and the owner's role bindings. A person's roles that come from a
group mapping aren't among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import attrs

from lambdas.confluent import crn
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.crn import CrnScope
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, InProgress, NotFound

#: Seconds after which a new role binding is effective everywhere. Before, the API shows a role that doesn't
#: work yet.
EFFECTIVE_AFTER: Final = 600.0
#: Seconds for which a missing role is waited for, because it may have been granted moments ago.
_PATIENCE: Final = 120.0


@attrs.frozen
class Container:
    """The ids of what contains an object; "" for an object that the organization itself contains, such as an
    environment. A service account contains its API keys, and the roles that others have on it.
    """

    environment_id: str = ""
    cluster_id: str = ""
    service_account_id: str = ""


ORGANIZATION: Final = Container()


@attrs.frozen
class Sight:
    """What the owners of keys see.

    `owner_of` returns the owner of the key with an id, and `bindings_of` the owner's role bindings.
    """

    clock: Clock
    organization_id: Callable[[], str]
    owner_of: Callable[[str], str]
    bindings_of: Callable[[str], Iterable[dict[str, Any]]]

    def require(self, key_id: str, container: Container) -> None:
        """Return if the key's owner sees all that `container` contains.

        Raises Denied if it has no such role, and InProgress if the role is so new that it may not be
        effective yet.
        """
        try:
            owner = self.owner_of(key_id)
            bindings = list(self.bindings_of(owner))
        except (Denied, NotFound) as error:
            raise build_unseen_error(
                f"the roles of the owner of key {key_id} can't be read: {error.what}"
            ) from None
        sufficient_roles = _list_roles(self.organization_id(), container)
        ages = [self._measure_age(binding) for binding in bindings if _is_one_of(binding, sufficient_roles)]
        if not ages:
            names = " or ".join(role for role, _ in sufficient_roles)
            raise build_unseen_error(f"{owner}, who owns key {key_id}, is not {names} of what contains it")
        if max(ages) < EFFECTIVE_AFTER:
            message = f"the role of {owner}, who owns key {key_id}, is {max(ages):.0f} s old"
            raise InProgress(confluent_errors.UNSEEN, f"{message}, and counts after {EFFECTIVE_AFTER:.0f} s")

    def _measure_age(self, binding: dict[str, Any]) -> float:
        """Return the seconds since the role was bound. A binding that doesn't say when counts as old."""
        metadata = binding.get("metadata")
        if not isinstance(metadata, dict):
            return EFFECTIVE_AFTER
        try:
            created = datetime.fromisoformat(str(metadata.get("created_at")))
            return self.clock.time() - created.timestamp()
        except ValueError:
            return EFFECTIVE_AFTER


def build_unseen_error(why: str) -> Denied:
    return Denied(
        confluent_errors.UNSEEN, f"whether it still exists can't be told: {why}", patience=_PATIENCE
    )


def _list_roles(organization_id: str, container: Container) -> list[tuple[str, str]]:
    """Return the roles that see all of the container, each with the resource name at which it must be
    bound.
    """
    scope = CrnScope(organization_id, container.environment_id, container.cluster_id)
    roles = [("OrganizationAdmin", crn.build_organization_crn(scope))]
    if container.service_account_id:
        of_account = CrnScope(organization_id, name=container.service_account_id)
        roles.append(("ResourceOwner", crn.SCOPES["service_account"](of_account)))
    if container.environment_id:
        roles.append(("EnvironmentAdmin", crn.build_environment_crn(scope)))
    if container.cluster_id:
        roles.append(("CloudClusterAdmin", crn.build_cluster_crn(scope)))
    return roles


def _is_one_of(binding: dict[str, Any], sufficient_roles: list[tuple[str, str]]) -> bool:
    pattern = str(binding.get("crn_pattern", ""))
    return any(
        binding.get("role_name") == role and crn.is_same(pattern, where) for role, where in sufficient_roles
    )
