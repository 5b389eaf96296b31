"""The organization or account of a login, compared with the one that the states of objects name."""

from __future__ import annotations

from collections.abc import Iterable

from lambdas.shared.resource import Vendor


def require_tenant(vendor: Vendor, tenants: Iterable[str]) -> None:
    """Raise OtherTenant if the login is of none of the `tenants` in which the objects are.

    Such a login sees none of the objects, so everything would look as if it were gone. The state of an
    earlier release names no tenant, "": then there is nothing to compare.
    """
    known_tenants = sorted(filter(None, tenants))
    if known_tenants and vendor.tenant not in known_tenants:
        raise vendor.wrong_tenant(known_tenants[0])
