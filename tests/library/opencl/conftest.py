from __future__ import annotations

import pytest
from opencl_builders import Device


@pytest.fixture(scope="session")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    """The PoCL CPU device, with its compile cache in a folder of this run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
        return Device()
