// SPDX-License-Identifier: Apache-2.0
// The recording session: what its launches have added. Internal to simt/.
#pragma once

#include <atomic>
#include <cstdint>

#include "rung/simt/record.hpp"

namespace rung::simt::record {

/// What launches want to know at once.
enum Mode : unsigned { recording = 1, counting = 2, checks = 4 };
extern std::atomic<unsigned> mode;

}  // namespace rung::simt::record
