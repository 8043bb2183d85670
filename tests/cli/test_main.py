from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from profiler import __version__
from profiler.cli import main
from tests.cli.conftest import COMMAND, LEAST, Measured, Profile
from tests.small_bundle import build_small_bundle

HEAVY = (
    "matplotlib",
    "jinja2",
    "pyarrow",
    "numpy",
    "onnxruntime",
    "scipy",
    "pandas",
    "PIL",
    "torch",
    "psutil",
    "safetensors",
    "tokenizers",
)
_TELL_MODULES = """
import sys
from profiler.cli import main
code = main(sys.argv[1:])
print("MODULES", *sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "nanno"], "Did you mean nano"),
        (["--device", "locla", "--model", "nano"], "Did you mean local"),
        (["--device", "iphone17pro", "--model", "nano"], "unknown device 'iphone17pro'"),
        (["--policy", "moibench", "--model", "nano"], "Did you mean moi-bench"),
        (["--devise", "local"], "No such option"),
        (["dance"], "No such command"),
        (["--repeats", "0"], "--repeats"),
        (["--repeats", "many"], "--repeats"),
        (["--gap", "nan"], "--gap"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "1" * 30], "--seed"),
        (["--task", "paint"], "--task"),
        (["show"], "Missing argument"),
        (["--gap", "3"], "--gap has no meaning with --protocol burst"),
        (["--minutes", "3", "--protocol", "spaced"], "--minutes has no meaning with --protocol spaced"),
        (["--json", "models"], "--json stands before 'models'"),
        (["--model", "nano", "runs"], "--model stands before 'runs'"),
        (["export"], "--model"),
    ],
)
def test_what_cannot_be_used_is_the_users_to_fix(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [] if arguments[-1] in ("dance", "export", "models", "runs") else ["--store", str(tmp_path / "s")]
    assert main([*arguments, *where]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert "python" not in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == "" or "--json" in arguments
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], [], ["show", "--help"], ["export", "-h"], ["runs", "--help"]]
)
def test_help_is_fine(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage:" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ondevice-profiler {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["show", "--help"], ["report", "--help"], ["runs", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    command = [COMMAND[0], "-c", _TELL_MODULES, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = ended.stderr.split("MODULES", 1)[1].split()
    assert "profiler.cli.app" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_a_good_model_ends_with_0(measured: Measured) -> None:
    assert measured.ended.returncode == 0, measured.ended.stderr


@pytest.mark.parametrize(("fault", "code"), [("nan_image", 1), ("failing_call", 1), ("unknown_component", 2)])
def test_the_exit_code_says_whose_fault_it_is(
    fault: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", fault=fault)  # type: ignore[arg-type]
    assert main(["--model", str(bundle), "--store", str(tmp_path / "store"), *LEAST]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_store_that_cannot_be_written_ends_with_2(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert main(["--model", str(small_bundle), "--store", str(tmp_path / "file"), *LEAST]) == 2
    assert "cannot write to the store" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-this-name/store", "bad\udcff"])
def test_a_store_that_no_folder_can_be_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--store", name]) == 2
    printed = capsys.readouterr().err
    assert "cannot be a store" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("option", ["--model", "--device"])
def test_an_empty_name_is_no_default(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, "", "--store", str(tmp_path / "store")]) == 2
    assert f"unknown {option[2:]} ''" in capsys.readouterr().err


def test_a_metric_that_is_not_required_may_be_named_twice(small_bundle: Path) -> None:
    assert main(["--model", str(small_bundle), "--dry-run", *["--not-required", "size"] * 2]) == 0


def test_a_bundle_that_was_changed_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = build_small_bundle(tmp_path / "bundle")
    (bundle / "generate.safetensors").write_bytes(b"other bytes")
    assert main(["--model", str(bundle), "--store", str(tmp_path / "store")]) == 2
    assert "is not the file its manifest names" in capsys.readouterr().err


# What a shell can do to the streams.


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
    ],
)
def test_any_locale_and_encoding_of_the_output_will_do(
    measured: Measured, profile: Profile, environment: dict[str, str]
) -> None:
    ended = profile("show", "last", "--store", str(measured.store), environment=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Tier" in ended.stdout


@pytest.mark.parametrize("arguments", [["runs"], ["runs", "--json"], ["--help"]])
def test_a_reader_that_goes_away_early_is_no_error(measured: Measured, arguments: list[str]) -> None:
    where = [] if arguments == ["--help"] else ["--store", str(measured.store)]
    process = subprocess.Popen([*COMMAND, *arguments, *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate()
    assert (process.returncode, said) == (0, b"")


def test_a_closed_stdout_is_no_error(measured: Measured) -> None:
    closed = subprocess.run(
        [*COMMAND, "runs", "--store", str(measured.store)],
        stderr=subprocess.PIPE,
        check=False,
        preexec_fn=lambda: os.close(1),  # as `>&-` does in a shell
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_closed_stderr_is_no_error(measured: Measured) -> None:
    command = shlex.join([*COMMAND, "runs", "--json", "--store", str(measured.store)])
    ended = subprocess.run(["sh", "-c", f"{command} 2>&-"], stdout=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stdout.count(b"\n")) == (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_without_room_is_no_bug(measured: Measured) -> None:
    with open("/dev/full", "wb") as full:
        command = [*COMMAND, "runs", "--json", "--store", str(measured.store)]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert b"is full" in ended.stderr
    assert b"Traceback" not in ended.stderr
