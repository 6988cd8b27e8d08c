# SPDX-License-Identifier: Apache-2.0
"""Makes the simulated GPU's context current, as PyCUDA's module of this name does for device 0."""
from . import driver

driver.init()
device = driver.Device(0)
context = device.make_context()
