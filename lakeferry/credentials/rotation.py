"""`lakeferry rotate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from deployments.model import Deployment
from lakeferry.cli.output import CommandFailed, Voice, command
from lakeferry.credentials import rotate as turning
from lakeferry.credentials import rotating_secrets as secrets
from lakeferry.credentials.rotating_secrets import Age, Rotating
from lakeferry.deployment import context as ground
from lakeferry.deployment.context import Ground
from lakeferry.plan.durations import spoken

_COLUMNS: Final = ["secret", "age", "next rotation", "live key", "where", "other keys", ""]
_YES: Final = ("y", "yes")
#: Days by which a rotation may be late: Secrets Manager has a window of hours, and tries again what failed.
_LATE: Final = 1.0


def check(voice: Voice, stage: str, chosen: str | None) -> dict[str, Any]:
    """Raises CommandFailed where a key is too old, or a rotation late or stuck."""
    with ground.of(stage) as here:
        with voice.step("Asking for the ages of keys"):
            found = [*secrets.ages(here, secrets.of(here, chosen)), *([] if chosen else secrets.by_hand(here))]
        show(voice, here.deployment, found)
        document = {"stage": stage, "secrets": documents(found), "rotated": [], "revoked": []}
        if wrong := [f"{one.secret}: {trouble}" for one in found for trouble in troubles(here.deployment, one)]:
            raise CommandFailed("KEY-OVERDUE", "; ".join(wrong), details=document)
        return document


def now(voice: Voice, stage: str, chosen: str | None, *, yes: bool) -> dict[str, Any]:
    """One after the other. Raises CommandFailed with the first that fails; then its key of before stays."""
    with ground.of(stage) as here:
        wanted = secrets.of(here, chosen)
        names = ", ".join(one.name for one in wanted)
        _require_agreed(voice, f"Replace the keys in {names}? The previous keys stay valid. Type yes", yes=yes)
        done: list[turning.Turned] = []
        try:
            for one in wanted:
                done.append(_turned(voice, here, one))
        except KeyboardInterrupt:
            raise _stopped(here, wanted[len(done)], "its previous key stays valid", f"rotate {wanted[len(done)].name}") from None
        return {"stage": stage, "secrets": [], "rotated": [attrs.asdict(one) for one in done], "revoked": []}


def revoke(voice: Voice, stage: str, chosen: str | None, *, yes: bool) -> dict[str, Any]:
    """A key has leaked: what was replaced last goes, the current one is replaced, and goes too. Raises CommandFailed."""
    with ground.of(stage) as here:
        wanted = secrets.of(here, chosen) if chosen else []
        if len(wanted) != 1:
            hint = "Name one secret: `lakeferry rotate` lists them"
            raise CommandFailed("ROTATE-UNKNOWN", "--revoke takes the keys of one secret away", hint)
        (secret,) = wanted
        question = f"Readers of {secret.name} that hold an older key fail once, and read the secret again. Type yes to go on"
        _require_agreed(voice, question, yes=yes)
        try:
            first = _revoked(voice, here, secret)
            turned = _turned(voice, here, secret)
            second = _revoked(voice, here, secret)
        except KeyboardInterrupt:
            still = "an older key may still be valid, also one that has leaked"
            raise _stopped(here, secret, still, f"rotate {secret.name} --revoke") from None
        voice.result(f"Now exactly one key is valid: {second.kept}")
        both = [attrs.asdict(one) for one in (first, second)]
        return {"stage": stage, "secrets": [], "rotated": [attrs.asdict(turned)], "revoked": both}


def show(voice: Voice, deployment: Deployment, found: list[Age]) -> None:
    rows = [_row(deployment, one) for one in found]
    voice.table(_COLUMNS, rows)
    for one in found:
        if one.trouble:
            voice.result(f"  ? {one.secret}: not asked: {one.trouble}")


def troubles(deployment: Deployment, age: Age) -> Iterator[str]:
    """What is wrong with a key's age or its rotation."""
    alerts = deployment.alerts
    limit = alerts.deployer_key_age_days if age.by_hand else alerts.key_age_days or deployment.rotation.every_days * 3 // 2
    if age.age_days is not None and age.age_days > limit:
        yield f"its key is {age.age_days:.0f} days old, and {limit} are the limit"
    if age.overdue_days > _LATE:
        yield f"a rotation is {age.overdue_days:.0f} days overdue"
    if age.pending_days > _LATE:
        yield f"a rotation has been under way for {age.pending_days:.0f} days"


def documents(found: Iterable[Age]) -> list[dict[str, Any]]:
    return [attrs.asdict(one) | {"keys": [dict(key) for key in one.keys]} for one in found]


def _row(deployment: Deployment, age: Age) -> list[str]:
    live = next((key["id"] for key in age.keys if key["place"] == age.place), "")
    others = ", ".join(f"{key['id']} ({key['place'] or 'no label'})" for key in age.keys if key["id"] != live)
    days = "" if age.age_days is None else f"{age.age_days:.1f} days"
    hints = ["not asked ?"] if age.trouble else ["made by hand"] if age.by_hand else []
    told = "; ".join([*troubles(deployment, age), *hints])
    due = datetime.fromtimestamp(age.next_rotation, UTC).strftime("%Y-%m-%d") if age.next_rotation else ""
    return [age.secret, days, due, live, age.place, others, told]


def _turned(voice: Voice, here: Ground, secret: Rotating) -> turning.Turned:
    with voice.step(f"Rotating {secret.name}") as tell:
        done = turning.turn(here, secret, tell)
    voice.result(f"{secret.name}: new key active after {spoken(done.seconds)}; the previous key stays valid")
    return done


def _revoked(voice: Voice, here: Ground, secret: Rotating) -> turning.Revoked:
    with voice.step(f"Revoking older keys of {secret.name}"):
        done = turning.revoke(here, secret)
    voice.result(f"{secret.name}: {', '.join(done.revoked) or 'no key'} revoked; {done.kept} stays")
    if done.not_ours:
        voice.warn(f"  not ours, and still valid: {', '.join(done.not_ours)}. Look whose they are, and UNSET them in Snowflake")
    return done


def _stopped(here: Ground, secret: Rotating, still: str, words: str) -> CommandFailed:
    """What Secrets Manager and its function have begun goes on, and we don't see how it ends."""
    message = f"stopped watching {secret.name}; a rotation that has begun goes on in AWS, and {still}"
    hint = f"`{command()} rotate --stage {here.stage}` shows its keys; `{command()} {words} --stage {here.stage}` finishes it"
    return CommandFailed("ROTATE-STOPPED", message, hint, {"secret": secret.name})


def _require_agreed(voice: Voice, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not voice.may_ask:
        raise CommandFailed(
            "ROTATE-NOT-CONFIRMED", "confirmation is required, and the session is not interactive; nothing was changed"
        )
    if voice.ask(question).lower() not in _YES:
        raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")
