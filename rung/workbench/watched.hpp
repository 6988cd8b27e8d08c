// SPDX-License-Identifier: Apache-2.0
// Judging under the simulated GPU's checks: a right result is not enough, no launch may race or
// access memory out of place.
#pragma once

#include <functional>

#include "rung/workbench/judge.hpp"

namespace rung::workbench {

/// What `judge` says, made a failure by whatever its launches on the simulated GPU did wrong.
Verdict watched(const std::function<Verdict()>& judge);

}  // namespace rung::workbench
