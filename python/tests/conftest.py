# SPDX-License-Identifier: Apache-2.0
"""What tests of the Python package share. The package under test is the one on the path: PYTHONPATH or installed."""
import pytest


@pytest.fixture(scope="session")
def program():
    """The path of the program; tests that need it are skipped where it is not built."""
    from rung import _program
    try:
        return _program.program()
    except ValueError as failed:
        pytest.skip(str(failed))
