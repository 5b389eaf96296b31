"""The commands, one module for each command or group; `lakeferry/__main__.py` lists them in the order of
`lakeferry --help`.

To add one, write `lakeferry/cli/<name>.py` and add it to that list:

    app: Final = command_group()    # or command_group("group", "What its commands are about.")

    @command(
        app,
        # Every key of the document that it returns, with its meaning.
        json_keys={"tables": "Each table's hops."},
        # In addition to app.EXITS, which every command has.
        exits=(LATER,),
        # It takes --stage. With yes=True it takes --yes, because it prompts.
        stage=True,
    )
    def status(
        call: CommandContext, *, drift: Annotated[bool, typer.Option("--drift", help="…")] = False
    ) -> Mapping[str, Any]:
        \"\"\"The sentence that --help shows.\"\"\"
        # Slow modules are imported in the function.
        from lakeferry import health

        return {"tables": …}

The module defines the options and the text that users read; the other packages of `lakeferry` do the work. It
writes through `call.output` (info, print, table, step, ask), and reports an error by raising
`errors.CommandFailed(CODE, message, hint, details)`. It need not catch errors of lambdas, jobs and AWS: they
are translated. In the same change, add each new code with its title, cause, remedy and exit code to
`config/errors.toml`, add a row to tests/cli/test_every_command.py (and `assert document.keys() ==
promised("status")` to the test in which the command succeeds), and run `python -m dev.docs`, which writes the
reference pages.
"""
