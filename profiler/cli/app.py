"""What can be typed. Each command imports its own work, so that `--help` stays quick."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from profiler import __version__
from profiler.cli.options import (
    DATES,
    FOREIGN,
    HOW,
    ONLY,
    WHAT,
    WHERE,
    BackendOption,
    Command,
    Group,
    Json,
    Keep,
    LoadPolicyName,
    NotRequired,
    OrderName,
    OutcomeName,
    PolicyName,
    PrecisionOption,
    ProtocolName,
    RangeName,
    RuntimeOption,
    SchemeOption,
    Store,
    TaskName,
    TierChoice,
    WeightsOption,
    end_of,
    range_of,
    shapes_of,
    value,
    values,
    wall_ns,
)

app = typer.Typer(
    name="profile",
    cls=Group,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine · 1 the model's fault · 2 usage or input · 3 device · 4 internal · 130 Ctrl-C · "
    "143 SIGTERM · 129 SIGHUP.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ondevice-profiler {__version__}")
        raise typer.Exit


def _typed(context: typer.Context) -> list[str]:
    """Return the parameters that were typed, and not left at their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _refuse_options_before(context: typer.Context) -> None:
    """Refuse options of the main job in front of a command, which would take no notice of them."""
    for name in _typed(context):
        option = "--" + {"as_json": "json"}.get(name, name).replace("_", "-")
        raise typer.BadParameter(f"{option} stands before '{context.invoked_subcommand}'; options come after it.")


@app.callback(invoke_without_command=True)
def profile(
    context: typer.Context,
    device: Annotated[
        str | None,
        typer.Option(
            help="Device to measure on (profile devices): local, a phone's model as pixel9, or android for whatever "
            "phone is connected.",
            rich_help_panel=WHAT,
            show_default="local",
        ),
    ] = None,
    serial: Annotated[
        str | None, typer.Option(help="Which phone, where several are alike.", rich_help_panel=WHAT)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model name (profile models), bundle folder, diffusers folder or hub id.",
            rich_help_panel=WHAT,
            show_default="nano",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Bundle folder, in place of --model: nothing is guessed or exported.", rich_help_panel=WHAT),
    ] = None,
    task: Annotated[
        TaskName | None,
        typer.Option(help="Make an image, or edit one.", rich_help_panel=WHAT, show_default="the model's first"),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Words to run on instead of the bundle's own.", rich_help_panel=WHAT)
    ] = None,
    negative_prompt: Annotated[str | None, typer.Option(help="Words to steer away from.", rich_help_panel=WHAT)] = None,
    image: Annotated[Path | None, typer.Option(help="Source image for --task edit.", rich_help_panel=WHAT)] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**53 - 1, help="Seed of the noise.", rich_help_panel=WHAT)
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Denoising steps.", rich_help_panel=WHAT)] = None,
    runtime: RuntimeOption = None,
    backend: BackendOption = None,
    precision: PrecisionOption = None,
    text_encoder: SchemeOption = None,
    keep: Keep = None,
    weights: WeightsOption = None,
    protocol: Annotated[
        ProtocolName,
        typer.Option(
            help="burst: back to back; spaced: a pause and a readiness gate before each; sustained: for minutes.",
            rich_help_panel=HOW,
        ),
    ] = ProtocolName.burst,
    repeats: Annotated[int, typer.Option(min=1, max=100_000, help="Timed images.", rich_help_panel=HOW)] = 20,
    warmups: Annotated[
        int, typer.Option(min=0, max=10_000, help="Images before them, kept apart.", rich_help_panel=HOW)
    ] = 3,
    cold_starts: Annotated[
        int, typer.Option(min=1, max=1000, help="Fresh processes for load and first image.", rich_help_panel=HOW)
    ] = 3,
    observer_pairs: Annotated[
        int, typer.Option(min=0, max=10_000, help="Image pairs that measure what sampling costs.", rich_help_panel=HOW)
    ] = 10,
    gap: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=3600,
            help="Seconds before each repetition, with --protocol spaced.",
            rich_help_panel=HOW,
            show_default="2",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=1440, help="Length of --protocol sustained.", rich_help_panel=HOW, show_default="10"
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Threads of the inference runtime.",
            rich_help_panel=HOW,
            show_default="the runtime's choice",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            max=86_400,
            help="Seconds without progress after which a runner is given up. One stage may take as long (a phone "
            "compiles a large model for ten minutes); waiting between images does not count.",
            rich_help_panel=HOW,
        ),
    ] = 900,
    untethered: Annotated[
        bool,
        typer.Option(
            "--untethered",
            help="Measure a phone on its battery, which is what its energy can be read from: the timed images wait "
            "until you unplug it, rest a minute first, and are collected when it is back.",
            rich_help_panel=HOW,
        ),
    ] = False,
    usb_power: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --untethered: a command that switches the phone's USB power, run with 'off' and 'on' after it, "
            "as 'uhubctl -l 1-1 -p 2 -a'.",
            rich_help_panel=HOW,
            show_default="you pull the cable",
        ),
    ] = None,
    least_battery: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="Per cent of charge below which a phone is not measured.", rich_help_panel=HOW
        ),
    ] = 30,
    policy: PolicyName = "moi-bench",
    not_required: NotRequired = None,
    store: Store = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and say what would be done.", rich_help_panel=WHERE)
    ] = False,
    as_json: Json = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> int:
    """Can this image model ship on this device, and what does it cost there?

    Runs the model in fresh runner processes, measures latency, peak memory and size, and names the
    deployability tier with what limits it.

    [bold]profile --device local --model nano[/bold]  is a first run that needs nothing else.
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return 0
    if not _typed(context):
        print(context.get_help())
        return 0
    if model is not None and bundle is not None:
        raise typer.BadParameter("--model and --bundle both name what is measured; give one of them.")
    from profiler.cli import measuring

    wishes = measuring.Wishes(prompt, negative_prompt, seed, steps, image)
    how = measuring.How(
        protocol.value,
        repeats,
        warmups,
        cold_starts,
        observer_pairs,
        gap,
        minutes,
        threads,
        timeout,
        untethered,
        usb_power,
    )
    return measuring.profile(
        "local" if device is None else device,
        bundle if bundle is not None else "nano" if model is None else model,
        task.value if task else None,
        wishes,
        how,
        measuring.Judging(policy, tuple(metric.value for metric in not_required or ())),
        measuring.Wanted(
            runtime,
            value(precision),
            value(text_encoder),
            tuple(keep or ()),
            weights=weights,
            backend=value(backend),
        ),
        store=store,
        dry_run=dry_run,
        as_json=as_json,
        phone=measuring.Phone(serial, least_battery),
        open_device=context.obj,
    )


_OF_A_GRAPH = ("inputs", "seed", "shape", "output", "output_range", "name", "licence")
_OF_A_RECIPE = ("load_policy", "runtime", "backend", "precision", "text_encoder", "keep", "weights")


def _refuse_mixed_up(context: typer.Context, model: str | None, file: Path | None) -> None:
    """Refuse both or neither of --model and --file, and the options of one with the other."""
    if model is None and file is None:
        raise typer.BadParameter("Name what is exported: --model NAME, or --file GRAPH.")
    if model is not None and file is not None:
        raise typer.BadParameter("Name one of --model and --file, not both.")
    foreign = _OF_A_GRAPH if file is None else _OF_A_RECIPE
    for name in _typed(context):
        if name in foreign:
            option, other = f"--{name.replace('_', '-')}", "--file" if file is None else "--model"
            raise typer.BadParameter(f"{option} has a meaning with {other} only.")


@app.command(cls=Command)
def export(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option(help="Model name (profile models), diffusers folder, hub id or .toml of your own.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="A graph of your own to wrap in place of a model: .onnx, .pte or .mlpackage.", rich_help_panel=FOREIGN
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the bundle; never overwritten.", show_default="the cache")
    ] = None,
    load_policy: Annotated[
        LoadPolicyName, typer.Option(help="resident: all components stay loaded; sequential: one at a time.")
    ] = LoadPolicyName.resident,
    runtime: RuntimeOption = None,
    backend: BackendOption = None,
    precision: PrecisionOption = None,
    text_encoder: SchemeOption = None,
    keep: Keep = None,
    weights: WeightsOption = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="Tensors to run it on, by the graph's own names: .safetensors or .npz.",
            rich_help_panel=FOREIGN,
            show_default="noise; zeros for whole numbers",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**53 - 1, help="Seed of the noise that stands for inputs not given.", rich_help_panel=FOREIGN
        ),
    ] = 0,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=1,3,512,512",
            help="Sizes for an ONNX input whose own are dynamic (may be repeated).",
            rich_help_panel=FOREIGN,
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Which output counts.", rich_help_panel=FOREIGN, show_default="the first")
    ] = None,
    output_range: Annotated[
        RangeName | None,
        typer.Option(
            help="Values of black and white, where the output is an image [1, 3, H, W].",
            rich_help_panel=FOREIGN,
            show_default="0..255",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call it.", rich_help_panel=FOREIGN, show_default="as its file")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Its licence, in words.", rich_help_panel=FOREIGN, show_default="unknown")
    ] = None,
    as_json: Json = False,
) -> int:
    """Export a model to a bundle, verified against its own PyTorch loop; or wrap a graph of your own.

    Cached by content: the same weights and recipe are exported once. Needs the export extra (make install-export).
    What an interrupted export made waits beside --out, and the same command goes on there.

    [bold]profile export --file net.onnx --out net[/bold]  needs no family: its inputs are those of its own signature.
    """
    _refuse_mixed_up(context, model, file)
    from profiler.cli import exporting
    from profiler.exporting import Graph, Wanted

    if file is not None:
        graph = Graph(inputs, seed, name, licence, output, range_of(output_range), shapes_of(shape or ()))
        return exporting.wrap(file, graph, out, as_json=as_json)
    wanted = Wanted(
        runtime,
        value(precision),
        value(text_encoder),
        tuple(keep or ()),
        load_policy.value,
        weights,
        value(backend),
    )
    return exporting.export(str(model), out, wanted, as_json=as_json)


@app.command()
def runs(
    device: Annotated[list[str] | None, typer.Option(help="Only runs on this device.", rich_help_panel=ONLY)] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only runs of this model.", rich_help_panel=ONLY)] = None,
    task: Annotated[list[TaskName] | None, typer.Option(help="Only runs of this task.", rich_help_panel=ONLY)] = None,
    outcome: Annotated[
        list[OutcomeName] | None, typer.Option(help="Only runs that ended so.", rich_help_panel=ONLY)
    ] = None,
    tier: Annotated[list[TierChoice] | None, typer.Option(help="Only runs of this tier.", rich_help_panel=ONLY)] = None,
    protocol: Annotated[
        list[ProtocolName] | None, typer.Option(help="Only runs by this protocol.", rich_help_panel=ONLY)
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=DATES,
            metavar="DATE",
            help="Only runs from this day or time on (UTC, as in ids).",
            rich_help_panel=ONLY,
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=end_of,
            metavar="DATE",
            help="Only runs up to this day, itself included, or before this time.",
            rich_help_panel=ONLY,
        ),
    ] = None,
    sort: Annotated[OrderName, typer.Option(help="What to sort by; missing values stand last.")] = OrderName.time,
    reverse: Annotated[bool, typer.Option("--reverse", help="Largest, or newest, first.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many runs.", show_default="all")] = None,
    store: Store = None,
    policy: PolicyName = "moi-bench",
    not_required: NotRequired = None,
    as_json: Json = False,
) -> int:
    """List runs, oldest first; each filter may be repeated, and takes any of its values."""
    from profiler.cli import showing
    from profiler.report.listing import Filter

    chosen = Filter(
        devices=tuple(device or ()),
        models=tuple(model or ()),
        tasks=values(task),
        outcomes=values(outcome),
        tiers=values(tier),
        protocols=values(protocol),
        since_ns=None if since is None else wall_ns(since),
        until_ns=None if until is None else wall_ns(until),
    )
    wanted = showing.Wanted(chosen, sort.value, reverse, limit)
    return showing.runs(store, policy, [metric.value for metric in not_required or ()], wanted, as_json=as_json)


@app.command()
def show(
    run: Annotated[str, typer.Argument(help="A run's id, the start of one, or 'last'.")],
    store: Store = None,
    policy: PolicyName = "moi-bench",
    not_required: NotRequired = None,
    as_json: Json = False,
) -> int:
    """Show one run again; a tier can be asked for under another policy."""
    from profiler.cli import showing

    return showing.show(run, store, policy, [metric.value for metric in not_required or ()], as_json=as_json)


@app.command()
def report(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Runs: ids, starts of ids, or 'last'.", show_default="last")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write; its ending is the format: .html, .csv, .samples.csv, .parquet, .samples.parquet, "
            ".md, or .json for the Perfetto UI (may be repeated).",
            show_default="report-RUN.html",
        ),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Folder for every figure as PNG.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
    store: Store = None,
    policy: PolicyName = "moi-bench",
    not_required: NotRequired = None,
    as_json: Json = False,
) -> int:
    """Write runs as one self-contained HTML page, or as tables and traces for other tools.

    Several runs are compared side by side.
    """
    from profiler.cli import reporting

    wanted = reporting.Wanted(out or (), png, force)
    without = [metric.value for metric in not_required or ()]
    return reporting.report(runs or (), store, policy, without, wanted, as_json=as_json)


@app.command()
def collect(
    stop: Annotated[bool, typer.Option("--stop", help="End runners that are still at work.")] = False,
    store: Store = None,
) -> int:
    """Collect runs whose phone was unplugged or whose host went away; every other command does so in passing."""
    from profiler.cli import fetching

    return fetching.collect_all(store, stop=stop)


@app.command()
def install(
    apk: Annotated[Path, typer.Argument(help="The runner app (.apk).")],
    device: Annotated[str, typer.Option(help="Phone to install it on, as pixel9; android for any.")] = "android",
    serial: Annotated[str | None, typer.Option(help="Which phone, where several are alike.")] = None,
) -> int:
    """Install the runner app on a phone, or update it; what is stored there stays."""
    from profiler.cli import installing

    return installing.install(apk, device, serial)


@app.command()
def devices(
    profiles: Annotated[bool, typer.Option("--profiles", help="List every device that is known by name.")] = False,
    connect: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Reach a phone over the network first, as adb connect does.")
    ] = None,
    as_json: Json = False,
) -> int:
    """List what is connected: which phone, in what state, and what to do where it is not ready."""
    from profiler.cli.devices import devices as print_devices

    return print_devices(profiles=profiles, connect=connect, as_json=as_json)


@app.command()
def models(as_json: Json = False) -> int:
    """List the models known by name, their tasks and licences."""
    from profiler.cli import listing

    return listing.models(as_json=as_json)


@app.command()
def doctor(
    device: Annotated[str | None, typer.Option(help="Look at this phone instead of this computer.")] = None,
    serial: Annotated[str | None, typer.Option(help="Which phone, where several are alike.")] = None,
    store: Store = None,
    as_json: Json = False,
) -> int:
    """Say what is there, what is missing, and how to get it."""
    from profiler.cli import diagnosis
    from profiler.cli.phone_diagnosis import PhoneWanted

    wanted = None if device in (None, "local") else PhoneWanted(str(device), serial)
    return diagnosis.doctor(store, wanted, as_json=as_json)
