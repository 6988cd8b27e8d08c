// SPDX-License-Identifier: Apache-2.0
// Verification with the simulated GPU's checks: besides a correct result, no launch may race or
// access memory out of bounds.
#pragma once

#include <functional>

#include "rung/workbench/verify.hpp"

namespace rung::workbench {

/// Returns the verdict of `verify`, or a failure if the simulated GPU found an error in its
/// launches.
Verdict verify_simulated(const std::function<Verdict()>& verify);

}  // namespace rung::workbench
