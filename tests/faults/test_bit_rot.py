"""Damaged files of tables: an error of this library, or the right rows. `bit_rot.py` has the long form."""

from __future__ import annotations

import bit_rot
import pytest


@pytest.mark.parametrize(("subject", "kind"), [("checkpoint", "types"), ("sidecar", "bytes")])
def test_a_damaged_checkpoint_ends_no_process_and_raises_no_foreign_error(subject: str, kind: str) -> None:
    outcomes = bit_rot.run(subject, 200, kind=kind)
    assert outcomes.total() == 200
    assert outcomes.total("ended") + outcomes.total("foreign") == 0, outcomes.bad
