"""Any locale, and paths with spaces, signs of other scripts, line ends, a leading dash, or no name at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.store import Store
from tests.cli.conftest import LEAST
from tests.faults.hosts import check_nothing_left, start_profile
from tests.small_bundle import build_small_bundle

LOCALES = {
    "C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
    "ascii streams": {"PYTHONIOENCODING": "ascii"},
    "latin-1 streams": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"},
    "no such locale": {"LC_ALL": "xx_YY.no-such", "LANG": ""},
}
# Python takes UTF-8 in the C locale unless it is told not to, twice over.
ASCII_ONLY = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NAMES = ["with spaces, Bücher, 模型 🐈", "-rf", "two\nlines", "'quotes\" $HOME `id` [bold]", "x" * 200]
PICTURE = "source.png"


@pytest.mark.parametrize("environment", LOCALES.values(), ids=LOCALES)
def test_any_locale_will_do_for_the_whole_job(small_bundle: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    root = tmp_path / "Läden 模型"
    bundle = shutil.copytree(small_bundle, tmp_path / "Bündel 模型")
    words = ["--prompt", "ein Kätzchen, 猫", "--image", str(bundle / PICTURE)]
    arguments = ["--model", str(bundle), "--store", str(root), *LEAST, *words]
    process = start_profile(arguments, environment=environment)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said.decode(errors="replace")
    assert b"Traceback" not in said
    assert b"Tier" in out
    check_nothing_left(root)
    (run_id,) = Store(root).run_ids()
    assert Store(root).load(run_id).settings.prompt == "ein Kätzchen, 猫"


def test_an_ascii_locale_does_the_whole_job_in_ascii_and_says_how_to_get_more(
    small_bundle: Path, tmp_path: Path
) -> None:
    for root, code in ((tmp_path / "store", 0), (tmp_path / "Läden", 2)):
        process = start_profile(["--model", str(small_bundle), "--store", str(root), *LEAST], environment=ASCII_ONLY)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, b"Traceback" in said) == (code, False), said
    assert b"is no text in the encoding of this locale, ascii" in said
    assert b"Set PYTHONUTF8=1" in said


@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do_for_bundle_store_and_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    bundle = build_small_bundle(tmp_path / name / "bundle")
    picture = tmp_path / name / (name[:100] + ".png")
    shutil.copy(bundle / PICTURE, picture)
    root = tmp_path / name / "store" / name
    arguments = ["--model", str(bundle), "--store", str(root), *LEAST, "--image", str(picture)]
    assert main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert main(["show", "last", "--store", str(root)]) == 0
    assert main(["runs", "--store", str(root)]) == 0
    assert summary["run_id"] in capsys.readouterr().out
    assert Store(root).load(summary["run_id"]).settings.source_image == picture.name
    check_nothing_left(root)


def test_relative_names_with_a_leading_dash_are_names(
    small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small_bundle, "-bundle")
    assert main(["--model=-bundle", "--store=-store", *LEAST]) == 0
    assert len(Store(tmp_path / "-store").run_ids()) == 1


def profile_raw(*arguments: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run `profile` on words that are no UTF-8."""
    command = [os.fsencode(sys.executable), b"-c", b"import sys; from profiler.cli import main; sys.exit(main())"]
    return subprocess.run([*command, *arguments], capture_output=True, check=False)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (b"--store", b"cannot be a store"),
        (b"--model", b"cannot be a bundle: its name is no text"),
        (b"--prompt", b"is not valid UTF-8"),
        (b"--policy", b"unknown policy"),
        (b"--device", b"unknown device"),
    ],
)
def test_bytes_that_are_no_text_are_named(small_bundle: Path, tmp_path: Path, option: bytes, words: bytes) -> None:
    bad = os.fsencode(tmp_path) + b"/bad\xff"
    shutil.copytree(small_bundle, Path(os.fsdecode(bad)))
    rest = [b"--model", os.fsencode(small_bundle), b"--store", os.fsencode(tmp_path / "store"), b"--json"]
    ended = profile_raw(*rest, *(word.encode() for word in LEAST), option, bad)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (2, False), ended.stderr
    assert words in ended.stderr
    assert json.loads(ended.stdout)["error"]["exit_code"] == 2


def test_an_image_may_have_any_name_that_the_system_allows(small_bundle: Path, tmp_path: Path) -> None:
    picture = os.fsencode(tmp_path) + b"/bad\xff.png"
    shutil.copy(small_bundle / PICTURE, picture)
    where = [b"--model", os.fsencode(small_bundle), b"--store", os.fsencode(tmp_path / "store"), b"--dry-run"]
    ended = profile_raw(*where, b"--image", picture)
    assert (ended.returncode, ended.stderr) == (0, b"")
