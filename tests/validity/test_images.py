from __future__ import annotations

import pytest

from profiler.records.run import ImageFile
from tests.records_for_tests import SHA_IMAGE
from tests.runs_for_tests import make_samples, make_settings
from tests.validity.evidence_for_tests import images, kinds, noisy, only_doubt, sound_run


@pytest.mark.parametrize(("deviation", "expected"), [(0.99, ["blank_image"]), (1.0, []), (None, [])])
def test_an_image_of_hardly_any_deviation_is_blank(deviation: float | None, expected: list[str]) -> None:
    image = ImageFile(path="output.png", sha256=SHA_IMAGE, role="output", deviation_levels=deviation)
    assert kinds(sound_run(images=(image,))) == expected


def test_a_flat_source_is_the_users_business() -> None:
    source = ImageFile(path="source.png", sha256=SHA_IMAGE, role="source", deviation_levels=0.0)
    assert kinds(sound_run(images=(source,))) == []


@pytest.mark.parametrize(("threads", "told"), [(1, "One thread was used already"), (4, "with --threads 1")])
def test_advice_on_images_that_differ_depends_on_the_threads(threads: int, told: str) -> None:
    iterations = images((*make_samples(noisy(5)), *make_samples(noisy(1), phase="observer", image_sha256="0" * 64)))
    ordered = tuple(sample if sample.phase != "observer" else _later(sample, iterations) for sample in iterations)
    doubt = only_doubt(sound_run(iterations=ordered, settings=make_settings(threads=threads)))
    assert doubt.kind == "not_deterministic"
    assert told in doubt.advice


def _later(sample, iterations):  # type: ignore[no-untyped-def]
    from msgspec.structs import replace

    end_ns = max(other.start_boot_ns + other.duration_ns for other in iterations if other.phase == "timed")
    return replace(sample, start_boot_ns=end_ns)
