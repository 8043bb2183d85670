from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from profiler import catalog
from profiler.cli import main


def lines_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    code = main([*arguments, "--json"])
    printed = capsys.readouterr()
    assert code in (0, 3)
    assert "Traceback" not in printed.err
    return [json.loads(line) for line in printed.out.splitlines()]


def test_models_in_json_are_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line["name"] for line in lines_of(capsys, "models")] == sorted(catalog.models())


def test_devices_in_json_are_the_units_at_hand(capsys: pytest.CaptureFixture[str]) -> None:
    (unit,) = lines_of(capsys, "devices")
    assert (unit["profile"], unit["serial"], unit["state"]) == ("local", None, "ready")


def test_the_table_of_models_names_everything_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in catalog.models())


def test_the_table_of_devices_names_what_is_at_hand_and_no_phone_that_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["devices"]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.startswith("local ")


def test_the_table_of_models_has_a_line_for_each_with_its_size_and_licence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {name: next(line for line in lines if line.startswith(f"{name} ")) for name in catalog.models()}
    assert re.search(r"generate, edit +1024×1024 +2\.52 B +CC-BY-NC-4\.0, forbidden +", shown["dreamlite"])
    assert " 5.61 M " in shown["nano"]  # counted from the bundle that ships


def test_the_doctor_tells_of_each_thing_what_is_missing_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = lines_of(capsys, "doctor", "--store", str(tmp_path / "store"))
    assert {"profiler", "ONNX Runtime", "nano bundle", "store", "peak memory"} <= {
        str(each["what"]) for each in findings
    }
    for finding in findings:
        assert (finding["state"] != "there") == (finding["remedy"] is not None)
    assert "quiet" in {str(each["what"]) for each in findings}


def test_the_doctor_ends_with_3_where_the_main_job_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert main(["doctor", "--store", str(tmp_path / "file" / "store")]) == 3
    assert "missing" in capsys.readouterr().out
