"""Where stock MiniStack is laxer than AWS, or slower than our work can bear: one module each.

Of two amendments on one function the later one in the list stands in front. A later piece of work adds a module and a
line here, and a probe to tests/contract/test_amendments.py, which also says when stock MiniStack has caught up.
"""

from __future__ import annotations

from typing import Final

from simulators.aws.amendments import (
    glue_catalog,
    glue_permissions,
    lambda_interpreter,
    s3_bodies,
    s3_limits,
    s3_missing_key,
    s3_multipart,
    secrets_rotation,
    secrets_versions,
    secure_transport,
)
from simulators.aws.hooks import Amendment

AMENDMENTS: Final[tuple[Amendment, ...]] = (
    s3_bodies.AMENDMENT,
    s3_multipart.AMENDMENT,
    s3_limits.AMENDMENT,
    s3_missing_key.AMENDMENT,
    secure_transport.AMENDMENT,
    glue_catalog.AMENDMENT,
    glue_permissions.AMENDMENT,
    secrets_versions.AMENDMENT,
    secrets_rotation.AMENDMENT,
    lambda_interpreter.AMENDMENT,
)
