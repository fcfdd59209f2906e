"""Containers that lay their files themselves, as those of images that evalpipe built do."""

from __future__ import annotations

import re

import pytest

from evalpipe.runners.preparation import LAYS_FILES
from evalpipe.sandbox.container_stdin import FILLS_ITSELF
from evalpipe.sandbox.engine import Engine
from evalpipe_tests.conformance.sandboxes.places import Place

pytestmark = pytest.mark.docker


def test_images_that_evalpipe_built_fill_themselves_and_others_do_not(built_place: Place, base_image: str) -> None:
    engine = Engine()
    assert engine.image_label(built_place.environment, FILLS_ITSELF) == "1"
    assert engine.image_label(base_image, FILLS_ITSELF) is None
    assert built_place.sandbox.label(built_place.environment, LAYS_FILES) == "no"


def test_a_command_cannot_find_the_word_that_says_that_nothing_was_laid(built_place: Place) -> None:
    search = "cat /proc/*/environ /proc/*/cmdline; cat; env; set"
    outcome = built_place.run("sh", "-c", f"{search}; exit 125")
    assert outcome.exit_code == 125
    assert outcome.stdout
    # Thirty-two digits in a row would be the word.
    assert re.search(rb"[0-9a-f]{32}", outcome.stdout) is None
