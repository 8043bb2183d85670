"""The device profiles that ship: true to their form, told apart by what a phone says of itself, and never by guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from profiler import catalog, codec
from profiler.errors import InvalidRecord
from profiler.quantities import GIB
from profiler.records.device import GENERIC_PHONE, DeviceProfile

PROFILES = catalog.device_profiles()
PHONES = {name: profile for name, profile in PROFILES.items() if profile.models or profile.codenames}
GENERIC = PROFILES[GENERIC_PHONE]
GB = 10**9

each_phone = pytest.mark.parametrize("phone", PHONES.values(), ids=PHONES)


def test_there_are_profiles_of_many_phones_of_many_makers() -> None:
    assert len(PHONES) >= 14
    assert len({phone.maker for phone in PHONES.values()}) >= 5


def test_all_but_this_machine_and_the_generic_phone_are_phones_that_can_be_matched() -> None:
    assert set(PROFILES) - set(PHONES) == {"local", GENERIC_PHONE}
    assert {phone.platform for phone in PHONES.values()} == {GENERIC.platform} == {"android"}
    assert GENERIC.is_phone
    assert all(phone.is_phone for phone in PHONES.values())


@pytest.mark.parametrize("named", ["name", "title"])
def test_no_two_profiles_have_a_name_or_title_in_common(named: str) -> None:
    assert len({getattr(profile, named) for profile in PROFILES.values()}) == len(PROFILES)


@pytest.mark.parametrize("told_by", ["models", "codenames"])
def test_no_two_profiles_claim_the_same_phone(told_by: str) -> None:
    claimed = Counter(value for phone in PHONES.values() for value in getattr(phone, told_by))
    assert [value for value, times in claimed.items() if times > 1] == []


@each_phone
def test_a_phone_is_told_by_what_its_properties_can_say(phone: DeviceProfile) -> None:
    told = (*phone.models, *phone.codenames, *phone.soc_models)
    assert phone.models
    assert all(value and value == value.strip() for value in told)
    assert len(set(phone.soc_models)) == len(phone.soc_models)


@each_phone
def test_a_phone_names_its_maker_its_chip_and_a_source(phone: DeviceProfile) -> None:
    assert phone.maker
    assert phone.soc
    assert phone.title.startswith(phone.maker)
    assert phone.sources
    assert all(source.startswith("https://") and source.endswith(")") for source in phone.sources)


@each_phone
def test_the_memory_is_one_that_phones_have_in_rising_order(phone: DeviceProfile) -> None:
    assert all(size % GIB == 0 and 4 <= size // GIB <= 32 for size in phone.memory_bytes)
    assert list(phone.memory_bytes) == sorted(set(phone.memory_bytes))


@each_phone
def test_the_storage_and_the_display_are_such_as_phones_have(phone: DeviceProfile) -> None:
    assert set(phone.storage_bytes) <= {size * GB for size in (64, 128, 256, 512, 1024, 2048)}
    assert list(phone.storage_bytes) == sorted(set(phone.storage_bytes))
    assert phone.display_hz in (None, 60, 90, 120, 144, 165)


def test_the_generic_phone_claims_no_fact() -> None:
    empty = DeviceProfile(name="a", title="A", platform="android", is_phone=True)
    facts = set(DeviceProfile.__struct_fields__) - {"name", "title", "notes"}
    assert {field: getattr(GENERIC, field) for field in facts} == {field: getattr(empty, field) for field in facts}
    assert GENERIC.notes.startswith("Generic")


@pytest.mark.parametrize(
    "line",
    [
        'colour = "red"',
        'released = "2024-13"',
        'released = "2024"',
        'released = "2024-08-22"',
        'memory_bytes = ["12 GB"]',
        'memory_bytes = "12 GB"',
        'models = "Pixel 9"',
        'display_hz = "120"',
        'platform = "symbian"',
        'name = "Pixel 9"',
        'name = "Pixel9"',
        'name = ""',
    ],
)
def test_a_profile_out_of_form_is_refused(line: str, tmp_path: Path) -> None:
    fields = {"name": '"pixel9"', "title": '"Pixel 9"', "platform": '"android"', "is_phone": "true"}
    field, value = line.split(" = ", maxsplit=1)
    path = tmp_path / "pixel9.toml"
    path.write_text("\n".join(f"{name} = {text}" for name, text in fields.items()))
    assert codec.read_toml(path, DeviceProfile).title == "Pixel 9"
    path.write_text("\n".join(f"{name} = {text}" for name, text in {**fields, field: value}.items()))
    with pytest.raises(InvalidRecord, match=r"pixel9\.toml"):
        codec.read_toml(path, DeviceProfile)


def test_a_profile_of_the_first_format_is_read_as_ever() -> None:
    old = b'{"schema_version":1,"name":"local","title":"This machine","platform":"host","is_phone":false}'
    profile = codec.decode(old, DeviceProfile, where="an old profile")
    assert (profile.models, profile.memory_bytes, profile.soc, profile.sources) == ((), (), None, ())
    assert msgspec.json.decode(codec.encode(profile), type=DeviceProfile) == profile


@each_phone
def test_every_model_leads_to_its_profile(phone: DeviceProfile) -> None:
    for model in phone.models:
        assert catalog.profile_of({"ro.product.model": model, "ro.product.device": "unheard-of"}) == phone


@each_phone
@pytest.mark.parametrize("key", ["ro.product.device", "ro.product.name"])
def test_every_codename_leads_to_its_profile_where_the_model_does_not(phone: DeviceProfile, key: str) -> None:
    for codename in phone.codenames:
        assert catalog.profile_of({"ro.product.model": "unheard-of", key: codename}) == phone


@pytest.mark.parametrize(
    ("model", "device", "product", "wanted"),
    [
        ("Pixel 9", "tokay", "tokay", "pixel9"),
        ("Pixel 9 Pro", "caiman", "caiman", "pixel9pro"),
        ("SM-S921B", "e1s", "e1sxxx", "galaxy-s24"),
        ("SM-S921U1", "e1q", "e1quew", "galaxy-s24"),
        ("SM-S928U1", "e3q", "e3quew", "galaxy-s24-ultra"),
        ("23127PN0CG", "houji", "houji_global", "xiaomi-14"),
        ("CPH2581", "OP595DL1", "CPH2581EEA", "oneplus-12"),
        ("motorola edge 50 pro", "eqe", "eqe_g", "motorola-edge-50-pro"),
    ],
)
def test_a_phone_is_found_by_what_it_prints(model: str, device: str, product: str, wanted: str) -> None:
    said = {"ro.product.model": model, "ro.product.device": device, "ro.product.name": product}
    assert catalog.profile_of(said).name == wanted


def test_the_model_counts_more_than_the_codename() -> None:
    assert catalog.profile_of({"ro.product.model": "Pixel 9", "ro.product.device": "caiman"}).name == "pixel9"
    assert catalog.profile_of({"ro.product.device": "caiman", "ro.product.name": "tokay"}).name == "pixel9pro"


@pytest.mark.parametrize("changed", [str.lower, lambda text: text[:-1], lambda text: f"{text} Fold", lambda _: ""])
def test_a_phone_that_is_only_nearly_known_has_the_generic_profile(changed: Callable[[str], str]) -> None:
    said = {"ro.product.model": changed("Pixel 9"), "ro.product.device": changed("Pong")}
    assert catalog.profile_of(said) == GENERIC


def test_a_phone_that_says_nothing_has_the_generic_profile() -> None:
    assert catalog.profile_of({}) == GENERIC
