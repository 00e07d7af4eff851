"""Messages that are logged in a context begin with it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import delta_variant
from delta_variant._logging import get_logger, log_context

LOGGER = get_logger("delta_variant.test")


def test_messages_in_a_context_begin_with_it(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, LOGGER.name), log_context("query 50%"):
        LOGGER.info("committed version %d", 3)
        LOGGER.info("done, 100%")
    LOGGER.warning("after %s", "it")
    assert caplog.messages == ["query 50%: committed version 3", "query 50%: done, 100%", "after it"]


def test_all_modules_log_with_contexts():
    root = Path(delta_variant.__file__).parent
    sources = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")}
    assert {name for name, text in sources.items() if "logging.getLogger(__name__)" in text} == set()
    assert sum("get_logger(__name__)" in text for text in sources.values()) > 10
