# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python package's tests. The package under test is the one on the path: PYTHONPATH or installed."""
import pytest


@pytest.fixture(scope="session")
def program():
    """Returns the path of the program; skips tests that need it if it is not built."""
    from rung import _program
    try:
        return _program.program()
    except ValueError as failed:
        pytest.skip(str(failed))
