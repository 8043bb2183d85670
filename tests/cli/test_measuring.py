from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from profiler import codec
from profiler.bundle_files import load_manifest
from profiler.cli import main
from profiler.cli.measuring import exit_code
from profiler.clock import Deadline, RealClock
from profiler.records.summary import Summary
from profiler.store import Store
from tests.cli.conftest import COMMAND, LEAST, Measured
from tests.runs_for_tests import make_run
from tests.small_bundle import build_small_bundle


def everything_in(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def dry_run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["--dry-run", "--json", *arguments]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def test_json_is_exactly_one_object_on_stdout_and_all_else_goes_to_stderr(measured: Measured) -> None:
    assert measured.ended.stdout.count("\n") == 1
    summary = codec.decode(measured.ended.stdout.encode(), Summary, where="stdout")
    assert (summary.outcome, summary.model, summary.task) == ("completed", "small", "generate")
    assert summary.latency_ns is not None
    assert summary.latency_ns.n == 3
    assert "timed, process 1 of 1" in measured.ended.stderr
    assert "{" not in measured.ended.stderr


def test_progress_tells_each_phase_once(measured: Measured) -> None:
    lines = measured.ended.stderr.splitlines()
    assert lines[0] == "launch"
    assert len(lines) == len(set(lines))
    assert {"load, process 1 of 1", "cold, process 1 of 1", "timed, process 1 of 1", "collect"} <= set(lines)


def test_a_run_is_shown_as_the_run_it_is(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    picture = tmp_path / "my picture.png"
    Image.new("RGB", (20, 20), "red").save(picture)
    arguments = ["--model", str(small_bundle), "--image", str(picture), "--prompt", "make [bold]it[/bold] :cat:"]
    assert main([*arguments, "--store", str(store.root), *LEAST]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Tier ")
    assert "“make [bold]it[/bold] :cat:”" in printed.out
    (run_id,) = store.run_ids()
    assert run_id in printed.out
    run = store.load(run_id)
    assert (run.task, run.settings.source_image) == ("edit", "my picture.png")


def test_a_failing_model_prints_its_run_in_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", fault="nan_image")
    assert main(["--model", str(bundle), "--store", str(tmp_path / "store"), "--json", *LEAST]) == 1
    summary = json.loads(capsys.readouterr().out)
    assert (summary["outcome"], summary["stage"], summary["component"]) == ("failed", "decoder", "decoder")
    assert (summary["tier"]["tier"], summary["latency_ns"]) == ("none", None)


@pytest.mark.parametrize(
    ("outcome", "reason", "code"),
    [
        ("completed", None, 0),
        ("failed", "out_of_memory: no", 1),
        ("failed", "runner_error: KeyError: 'x'", 4),
        ("refused", "another bundle", 2),
        ("aborted", "the cable went", 3),
        ("interrupted", "the host went away", 3),
    ],
)
def test_every_outcome_has_its_exit_code(outcome: Any, reason: str | None, code: int) -> None:
    assert exit_code(replace(make_run(), outcome=outcome, reason=reason)) == code


def test_a_dry_run_touches_nothing(small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything_in(small_bundle)
    facts = dry_run(capsys, "--model", str(small_bundle), "--store", str(tmp_path / "store"))
    assert everything_in(small_bundle) == before
    assert list(tmp_path.iterdir()) == []
    assert (facts["dry_run"], facts["task"], facts["steps"], facts["repeats"]) == (True, "generate", 4, 20)
    assert facts["size_bytes"] > 0


def test_a_dry_run_does_not_collect_what_others_left(
    small_bundle: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    session = store.new_session(RealClock())
    session.release()
    dry_run(capsys, "--model", str(small_bundle), "--store", str(store.root))
    assert session.folder.is_dir()


def test_a_dry_run_says_what_the_options_mean(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--steps", "8", "--seed", "7", "--protocol", "sustained", "--minutes", "3", "--prompt", "a blue square"]
    facts = dry_run(capsys, "--model", str(small_bundle), *options)
    assert (facts["steps"], facts["seed"], facts["prompt"]) == (8, 7, "a blue square")
    assert (facts["protocol"], facts["minutes"], facts["repeats"]) == ("sustained", 3, None)


def test_a_picture_asks_for_an_edit_without_a_word(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dry_run(capsys, "--model", str(small_bundle), "--image", str(small_bundle / "source.png"))["task"] == "edit"


def test_a_dry_run_is_a_table_for_people(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", str(small_bundle), "--dry-run", "--prompt", "[/x] :cat:"]) == 0
    printed = capsys.readouterr().out
    assert "Nothing was started" in printed
    assert "[/x] :cat:" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "9"], "It has 1 to 8 steps."),
        (["--task", "generate", "--image", "pyproject.toml"], "takes no source image"),
        (["--task", "edit", "--image", "nowhere.png"], "no image at nowhere.png"),
        (["--task", "edit", "--image", __file__], "is not an image that can be read"),
    ],
)
def test_a_wish_that_cannot_be_met_is_told_before_anything_starts(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["--model", str(small_bundle), "--store", str(tmp_path / "store"), *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "store").exists()


def test_ctrl_c_ends_with_130_and_keeps_what_was_measured(tmp_path: Path) -> None:
    bundle, store = build_small_bundle(tmp_path / "bundle", slow=1), Store(tmp_path / "store")
    many = ["--cold-starts", "1", "--repeats", "50000", "--threads", "1"]
    process = subprocess.Popen(
        [*COMMAND, "--model", str(bundle), "--store", str(store.root), *many],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = Deadline(30, RealClock())
    while not any(b'"timed"' in path.read_bytes() for path in store.root.glob("sessions/*/device/0/events.jsonl")):
        assert not limit.passed()
        RealClock().sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate()
    assert process.returncode == 130
    assert out == ""
    assert "what was measured is kept" in said
    assert "Traceback" not in said
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "interrupted"


def test_a_core_ml_bundle_is_refused_here_before_anything_starts(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(small_bundle, folder)
    bundle = load_manifest(folder)
    recipe = replace(bundle.recipe, runtime="coreml")
    (folder / "bundle.json").write_bytes(codec.encode_pretty(replace(bundle, recipe=recipe)))
    store = tmp_path / "store"
    assert main(["--model", str(folder), "--device", "local", "--store", str(store)]) == 2
    assert "Core ML runs on Apple devices only; this machine has" in capsys.readouterr().err
    assert not list(store.rglob("session.json"))


def test_core_ml_is_refused_here_before_an_export(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--model", "nano", "--runtime", "coreml", "--store", str(tmp_path / "store")]) == 2
    err = capsys.readouterr().err
    assert "Core ML runs on Apple devices only" in err
    assert "export" not in err.splitlines()[0]
