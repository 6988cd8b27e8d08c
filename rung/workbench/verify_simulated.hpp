// SPDX-License-Identifier: Apache-2.0
// Verification under the simulated GPU's checks: a right result is not enough, no launch may race
// or access memory out of bounds.
#pragma once

#include <functional>

#include "rung/workbench/verify.hpp"

namespace rung::workbench {

/// The verdict of `verify`, made a failure if the simulated GPU found an error in its launches.
Verdict verify_simulated(const std::function<Verdict()>& verify);

}  // namespace rung::workbench
