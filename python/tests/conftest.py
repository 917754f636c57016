"""The engines that tests run on."""

from __future__ import annotations

import kvrm
import pytest


def _usable() -> list[str]:
    return sorted({device.engine for device in kvrm.devices() if device.usable})


#: Every engine that this computer has.
ENGINES = _usable()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
