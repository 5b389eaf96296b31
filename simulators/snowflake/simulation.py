"""One simulated account, the options that it was started with, its administrator's key, and its reset."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from simulators.core.clock import Clock
from simulators.snowflake import keys, trust
from simulators.snowflake.account import ADMIN, ORGANIZATION, Account
from simulators.snowflake.lake import Lake
from simulators.snowflake.model import Membership, User
from simulators.snowflake.sql_api import Statements

REGION: Final = "eu-west-1"
_USER: Final = "ADMIN"
_KEY_FILE: Final = "admin_key.p8"


class Simulation:
    """`reset` replaces `account` and `statements`.

    The options and the administrator's private key in `folder` stay the same.
    """

    def __init__(
        self,
        folder: Path,
        *,
        time_scale: float = 1.0,
        start: float | None = None,
        seed: int | None = None,
        region: str = REGION,
        aws: Lake | None = None,
        name: str = "",
    ) -> None:
        """`name` is the account identifier, ORGANIZATION-ACCOUNT.

        If it is empty, each reset generates another one.
        """
        self._name = name
        self._time_scale = time_scale
        self._start = start
        self._region = region
        self._lake = aws
        # Not reset, so that names are never reused. Keys don't use it.
        self._random = random.Random(seed)  # noqa: S311
        self._key_file = folder / _KEY_FILE
        self._public = self._create_key()
        self.account: Account
        self._begin()

    def reset(self) -> None:
        trust.forget(self.account)
        self._begin()

    @property
    def clock(self) -> Clock:
        return self.account.clock

    def state(self) -> dict[str, Any]:
        """Return the time, and the names of all objects by type, without the predefined ones."""
        self.clock.run_due()
        return {"now": self.clock.format_time(), "objects": self.account.objects()}

    @property
    def credentials(self) -> dict[str, str]:
        """Return what a client needs. The key is only valid for this simulator."""
        return {
            "account": self.account.identifier,
            "user": _USER,
            "role": ADMIN,
            "private_key_file": str(self._key_file),
        }

    def _begin(self) -> None:
        """Start with an account that has one user: an administrator with a public key."""
        generated = "".join(self._random.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2)) + str(
            self._random.randint(10_000, 99_999)
        )
        organization, _, name = self._name.upper().partition("-")
        if not name:
            organization = ORGANIZATION
        clock = Clock(self._time_scale, self._start)
        self.account = Account(
            name or generated,
            clock,
            self._random,
            self._lake,
            region=self._region,
            organization=organization,
        )
        self.statements = Statements(self.account)
        now = clock.now()
        user = User(
            name=(_USER,),
            owner=ADMIN,
            created=now,
            login_name=_USER,
            default_role=ADMIN,
            secondary_roles=False,
        )
        user.keys[1] = keys.read(self._public, now)
        self.account.add(user)
        self.account.memberships.append(Membership(ADMIN, user.key, "", now))

    def _create_key(self) -> str:
        """Write a new private key, which only the file's owner can read, and return the public key as SQL
        takes it.
        """
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key_file.touch(mode=0o600)
        self._key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return base64.b64encode(
            key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        ).decode()
