import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from evalpipe.manifest import (
    ManifestError,
    ProbeRecord,
    combined_image_digest,
    configuration_digest,
    differences,
    manifest_bytes,
    read_manifest,
    with_probes,
)
from evalpipe_tests.manifest.examples import ENVIRONMENT, IMAGE, OTHER_IMAGE, PROCESS, example


def test_a_manifest_has_the_fields_of_the_issue() -> None:
    document = example(priced=True, region="eu", currency="EUR").to_json()
    assert document == {
        "schema_version": 1,
        "evalpipe_version": "0.1.0",
        "run_id": "run-1",
        "created_at": "2026-11-29T12:00:00+00:00",
        "task_set": {
            "name": "demo",
            "revision": "f" * 64,
            "task_count": 10,
            "prompt_mode": "original",
            "provisional": True,
        },
        "agent": {
            "name": "steady",
            "adapter": "scripted",
            "model": "m",
            "model_version": "1.10",
            "scaffold": "replay",
            "scaffold_version": "2",
            "tools": ["edit", "shell"],
            "max_turns": None,
            "context_limit": 200_000,
            "temperature": 0.5,
            "retry_policy": {"max_attempts": 3},
        },
        "environment": {
            "sandbox": "docker",
            "engine_version": "28.2.2",
            "image_digest": IMAGE,
            "images": {IMAGE: 10},
            "task_timeout_s": 900.0,
            "network": "none",
            "cpu_limit": 2.0,
            "memory_limit": 4 * 1024**3,
            "pids_limit": 512,
            "history": "ancestors",
        },
        "samples_per_task": 3,
        "priced": True,
        "region": "eu",
        "currency": "EUR",
    }


def test_a_manifest_without_prices_names_no_currency() -> None:
    assert {"region", "currency"}.isdisjoint(example().to_json())


def test_the_process_sandbox_has_a_manifest_too() -> None:
    assert example(environment=PROCESS).to_json()["environment"]["image_digest"] == "process"


def test_times_are_written_in_utc() -> None:
    local = datetime(2026, 11, 29, 1, tzinfo=timezone(timedelta(hours=2)))
    assert example(created_at=local).to_json()["created_at"] == "2026-11-28T23:00:00+00:00"
    with pytest.raises(ManifestError, match="has no time zone"):
        example(created_at=datetime(2026, 11, 29))


def test_several_images_have_one_digest_that_order_does_not_change() -> None:
    expected = hashlib.sha256(f"{IMAGE}\n{OTHER_IMAGE}\n".encode()).hexdigest()
    assert combined_image_digest([OTHER_IMAGE, IMAGE]) == f"sha256:{expected}"
    assert combined_image_digest([IMAGE, IMAGE]) == IMAGE
    with pytest.raises(ManifestError, match="there is no image"):
        combined_image_digest([])
    many = example(environment=replace(ENVIRONMENT, images={OTHER_IMAGE: 4, IMAGE: 6}))
    assert many.to_json()["environment"]["image_digest"] == f"sha256:{expected}"


def test_bytes_are_sorted_readable_and_the_same_for_equal_numbers() -> None:
    data = example().to_bytes()
    assert data.startswith(b'{\n  "agent": {')
    assert data.endswith(b"}\n")
    whole = example(environment=replace(ENVIRONMENT, task_timeout_s=900, cpu_limit=2)).to_bytes()
    assert data == whole


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(example().to_bytes())
    document = read_manifest(path)
    assert document == example().to_json()
    assert manifest_bytes(document) == path.read_bytes()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"run_id": NaN'])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(data)
    with pytest.raises(ManifestError, match=r"manifest\.json: cannot be read as JSON"):
        read_manifest(path)


def test_a_missing_file_and_an_invalid_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="there is no manifest"):
        read_manifest(tmp_path / "manifest.json")
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**example().to_json(), "samples_per_task": 0}))
    with pytest.raises(ManifestError, match=r"manifest\.json: \$\.samples_per_task: 0 is less than"):
        read_manifest(path)


def test_a_probe_is_that_of_the_images_and_no_part_of_the_configuration() -> None:
    document = example().to_json()
    probe = ProbeRecord("1", datetime(2026, 11, 29, 12, tzinfo=UTC), 2.5, 10)
    probed = with_probes(document, {IMAGE: probe})
    assert probed["probe"] == {
        IMAGE: {"version": "1", "probed_at": "2026-11-29T12:00:00+00:00", "seconds": 2.5, "tasks": 10}
    }
    assert configuration_digest(probed) == configuration_digest(document)
    assert differences(document, probed) == []
    assert manifest_bytes(probed)
    with pytest.raises(ManifestError, match=r"\$\.probe: its images are not those of the environment"):
        with_probes(document, {OTHER_IMAGE: probe})
