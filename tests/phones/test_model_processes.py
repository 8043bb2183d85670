"""Each way in which a process ends leaves the traces that it leaves on a phone."""

from __future__ import annotations

import pytest

from tests.phones.models_for_tests import PID, RUNNER, driven_model, load


def texts(model: object, *buffers: str) -> list[str]:
    return [f"{line.tag}: {line.text}" for line in model.processes.log.lines(frozenset(buffers))]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("why", "reason", "status"),
    [("kill", 2, 9), ("force-stop", 10, 0), ("crash", 5, 11), ("anr", 6, 0), ("exit", 1, 0)],
)
def test_an_end_is_kept_with_its_reason(why: str, reason: int, status: int) -> None:
    model = driven_model()
    model.end_process(PID, why)
    [record] = model.processes.exits.of(RUNNER)
    assert (record.pid, record.reason, record.status) == (PID, reason, status)
    assert record.rss_bytes > 0
    assert any(text.startswith("am_proc_died: [0,4242,") for text in texts(model, "events"))


def test_an_own_status_is_kept() -> None:
    model = driven_model()
    model.end_process(PID, "exit", status=3)
    assert model.processes.exits.of(RUNNER)[0].status == 3


@pytest.mark.parametrize(("persona", "reason", "status"), [("pixel9", 3, 0), ("low-ram-4gb", 2, 9)])
def test_a_low_memory_kill_looks_like_one_only_where_the_phone_reports_it(
    persona: str, reason: int, status: int
) -> None:
    model = driven_model(persona)
    load(model, 12_000_000_000)
    [record] = model.processes.exits.of(RUNNER)
    assert (record.reason, record.status) == (reason, status)
    assert "Zygote: Process 4242 exited due to signal 9 (Killed)" in texts(model, "main")
    assert any(text.startswith("killinfo: [4242,10123,0,") for text in texts(model, "events"))


def test_lmkd_words_differ_by_version() -> None:
    new, old = driven_model("pixel9"), driven_model("old-api29")
    for model in (new, old):
        load(model, 12_000_000_000)
    [line] = [text for text in texts(new, "main") if text.startswith("lowmemorykiller")]
    assert line.startswith(f"lowmemorykiller: Kill '{RUNNER}' (4242), uid 10123, oom_score_adj 0 to free ")
    assert line.endswith("kB dmabuf_rss; reason: min watermark is breached even after kill")
    [line] = [text for text in texts(old, "main") if text.startswith("lowmemorykiller")]
    assert "anon rss" not in line


def test_only_the_last_sixteen_ends_are_kept_newest_first() -> None:
    model = driven_model()
    for pid in range(1, 21):
        model.start_process(pid, RUNNER, 10123)
        model.end_process(pid, "kill")
    assert [record.pid for record in model.processes.exits.of(RUNNER)] == list(range(20, 4, -1))
