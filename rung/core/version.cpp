// SPDX-License-Identifier: Apache-2.0
// The version of the built library.
#include "rung/core/version.hpp"

namespace rung {

const char* version() noexcept { return RUNG_VERSION; }

}  // namespace rung
