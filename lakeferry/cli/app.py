"""What all commands share: options that stand before or after the command, the document at its end, errors of usage."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NoReturn

import attrs
import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError, NoSuchOption, UsageError  # typer shows it nowhere else
from typer.core import TyperCommand, TyperGroup

from lakeferry import __version__
from lakeferry.errors import DONE, FAILED, NOT_SET_UP, STOPPED, WRONG_INPUT, CommandFailed
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Output

NAME: Final = "lakeferry"
STAGE_VARIABLE: Final = "LAKEFERRY_STAGE"
STAGE: Final = "dev"

#: What every command can end with.
EXITS: Final = (DONE, FAILED, WRONG_INPUT, NOT_SET_UP, STOPPED)
#: Of commands that work in one AWS and know no deployment.
WITHOUT_STAGE: Final = (
    "It works in the AWS that LAKEFERRY_BUCKET and LAKEFERRY_DATABASE name (a deployment's outputs LakeBucketName and "
    "KafkaClusterId), or with what the last demo left: docs/how-to/run-against-your-own-catalog.md"
)
#: What typer makes of Ctrl-C outside of a command's own work.
_INTERRUPTED: Final = 130
#: A command's own work: from the call and its own options to what its document says.
CommandFunction = Callable[..., Mapping[str, Any]]


@attrs.frozen
class CommandContext:
    """What every command is given. `yes`: questions are answered with yes, or with their default."""

    output: Output
    stage: str
    yes: bool = False


def _stages(incomplete: str) -> list[str]:
    files = sorted(file.stem for file in (ROOT / "deployments").glob("*.toml"))
    return [name for name in files if name.startswith(incomplete)]


_Stage = Annotated[
    str | None,
    typer.Option(
        "--stage", help=f"Whose deployment file: deployments/STAGE.toml. Else {STAGE_VARIABLE}, else dev.", autocompletion=_stages
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors.")]
_Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More of what happens, and where an error came from.")]
_NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; the variable NO_COLOR does the same.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take the defaults, and yes where a command would ask.")]


def _flags_without_type(params: list[Any]) -> list[Any]:
    """typer's help would call the value of a flag, which takes none, `<bool>`."""
    for one in params:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return params


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))


def command_group(name: str | None = None, about: str | None = None) -> typer.Typer:
    """A module's commands: below `name`, or at the top where there is none."""
    return typer.Typer(name=name, cls=Group, help=about, no_args_is_help=True, pretty_exceptions_enable=False)


@attrs.frozen
class Declared:
    """What users can rely on: keys of the document with their meanings, and exit codes.

    `without_stage` is what to do instead of giving a stage to a command that takes none.
    """

    json_keys: Mapping[str, str]
    exits: tuple[int, ...]
    without_stage: str = "Leave it out: this command is the same for every stage"


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    json_keys: Mapping[str, str],
    exits: tuple[int, ...] = (),
    stage: bool = False,
    yes: bool = False,
    without_stage: str = "",
) -> Callable[[CommandFunction], CommandFunction]:
    """Makes a function a command: `def words(call: Call, …) -> Mapping`.

    `says` explains each key of what it returns; `exits` are exit codes beside those that every command can end with;
    `stage` and `yes` are whether it takes these options; one that it does not take is refused, before it and after it.
    """
    declared = Declared(json_keys, tuple(sorted({*EXITS, *exits})), **({"without_stage": without_stage} if without_stage else {}))

    def register(work: CommandFunction) -> CommandFunction:
        own = [one for one in inspect.signature(work, eval_str=True).parameters.values() if one.name != "call"]
        shared = [one for one in shared_options() if (one.name != "stage" or stage) and (one.name != "yes" or yes)]

        def run(**given: Any) -> None:
            context = given.pop("context")
            call = _call(context, {one.name: given.pop(one.name) for one in shared})
            with report_errors(call.output):
                _refuse_unused(context, {one.name for one in shared}, declared)
                call.output.document(True, **work(call, **given))

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *shared)]
        run.declared = declared  # type: ignore[attr-defined]
        run.__signature__ = inspect.Signature([context, *ordered])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (context, *ordered)}
        app.command(name or work.__name__, cls=Command, help=inspect.getdoc(work))(run)
        return work

    return register


def shared_options() -> list[inspect.Parameter]:
    """Those of `common` but for --version."""
    return [one for one in inspect.signature(common, eval_str=True).parameters.values() if one.name not in ("context", "version")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


def common(
    *,
    context: typer.Context,
    stage: _Stage = None,
    as_json: _Json = False,
    quiet: _Quiet = False,
    verbose: _Verbose = False,
    no_color: _NoColor = False,
    yes: _Yes = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Options before the command."""
    context.obj = {"stage": stage, "as_json": as_json, "quiet": quiet, "verbose": verbose, "no_color": no_color, "yes": yes}


def _call(context: typer.Context, after: Mapping[str, Any]) -> CommandContext:
    """What stands after the command wins over what stands before it."""
    before = context.find_root().obj or {}
    said = {name: after.get(name) or before.get(name) for name in (*before, *after)}
    output = Output(
        as_json=bool(said["as_json"]), quiet=bool(said["quiet"]), verbose=bool(said["verbose"]), color=not said["no_color"]
    )
    return CommandContext(output, said.get("stage") or os.environ.get(STAGE_VARIABLE) or STAGE, bool(said.get("yes")))


def _refuse_unused(context: typer.Context, taken: set[str], declared: Declared) -> None:
    """Raises CommandFailed for an option before the command that the command would ignore."""
    before = context.find_root().obj or {}
    for name in ("stage", "yes"):
        if before.get(name) and name not in taken:
            path = context.command_path
            hint = declared.without_stage if name == "stage" else f"Leave it out: `{path}` asks nothing"
            raise CommandFailed("USAGE", f"`{path}` takes no --{name} before it", hint)


def parse_time(option: str, text: str) -> datetime:
    """Parse an instant that a user gives as an option. Raises CommandFailed."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise CommandFailed("AS-OF", f"{option} {text!r} is not a time with an offset")
    return instant.astimezone(UTC)


@contextmanager
def report_errors(output: Output) -> Iterator[None]:
    """Turn whatever ends a command into its message and exit code; a trace is shown only where it was asked for."""
    try:
        yield
    except CommandFailed as failure:
        fail(output, failure)
    except (KeyboardInterrupt, typer.Abort):
        fail(output, CommandFailed("STOPPED", "stopped before the end", "Run the command again"))
    except (BrokenPipeError, typer.Exit):
        raise  # typer ends quietly, also where whoever read our output has gone
    except Exception as error:
        from lakeferry import error_translation

        fail(output, error_translation.as_failure(error))


def fail(output: Output, failure: CommandFailed) -> NoReturn:
    fields = {"code": failure.code, "message": failure.message, "why": failure.why, "hint": failure.hint, "docs": failure.page}
    output.document(False, **fields, details=failure.details, exit_code=failure.exit_code)
    output.err.print(f"{failure.code}  {failure.message}", style="bold", markup=False)
    if failure.why:
        output.err.print(f"  Likely cause: {failure.why}", markup=False)
    output.err.print(f"→ {failure.hint}", markup=False)
    output.err.print(f"  {failure.page}", markup=False)
    if failure.trace:
        output.debug(failure.trace)
    sys.exit(failure.exit_code)


class Root(Group):
    """All commands. Wrong arguments are reported like every other error."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        argv = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(argv, NAME, complete_var, standalone_mode=False, **extra)
        except NoArgsIsHelpError as wrong:
            if wrong.message:  # empty where help was printed already, in boxes
                wrong.show()
            sys.exit(WRONG_INPUT)
        except ClickException as wrong:
            fail(_output_of(argv), _usage(wrong))
        except Exception:
            with report_errors(_output_of(argv)):
                raise
        if code == _INTERRUPTED:
            with report_errors(_output_of(argv)):
                raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else DONE)


def _usage(wrong: ClickException) -> CommandFailed:
    context = wrong.ctx if isinstance(wrong, UsageError) else None
    path = context.command_path if context else NAME
    details = {"usage": " ".join(context.get_usage().split())} if context else None
    declared = getattr(context.command.callback, "declared", None) if context else None
    if declared and isinstance(wrong, NoSuchOption) and wrong.option_name == "--stage":
        return CommandFailed("USAGE", f"`{path}` takes no --stage", declared.without_stage, details)
    return CommandFailed("USAGE", wrong.format_message().rstrip("."), f"See `{path} --help`", details)


def _output_of(argv: Sequence[str]) -> Output:
    """From words that could not be understood."""
    plain = list(_before_dashes(argv))
    return Output(as_json="--json" in plain, color="--no-color" not in plain)


def _before_dashes(argv: Sequence[str]) -> Iterator[str]:
    for word in argv:
        if word == "--":
            return
        yield word
