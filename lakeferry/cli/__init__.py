"""The commands, one module for each command or group; `lakeferry/__main__.py` lists them in the order of `lakeferry --help`.

To add one, write `lakeferry/cli/<name>.py` and add it to that list:

    app: Final = command_group()                      # or command_group("group", "What its commands are about.")

    @command(
        app,
        json_keys={"tables": "Each table's hops."},   # every key that it returns, with its meaning
        exits=(LATER,),                               # beside those that every command has: app.EXITS
        stage=True,                                   # it takes --stage; yes=True: it may prompt, so it takes --yes
    )
    def status(call: CommandContext, *, drift: Annotated[bool, typer.Option("--drift", help="…")] = False) -> Mapping[str, Any]:
        \"\"\"The help's one sentence.\"\"\"
        from lakeferry import health                  # what takes long to import is imported in the function

        return {"tables": …}

The module has the options and what people read; the packages beside `cli/` do the work. It writes through `call.output` (info,
print, table, step, ask), and ends early with `errors.CommandFailed(CODE, message, hint, details)`. Errors of lambdas, of jobs and
of AWS may pass through as they are. Then, in the same change: the code with its title, cause, remedy and exit code in
`lakeferry/errors.toml`, a row in tests/cli/test_every_command.py (and `assert document.keys() == promised("status")` in the test
that sees it succeed), and `python -m tools.docs`, which writes the pages.
"""
