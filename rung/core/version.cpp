// SPDX-License-Identifier: Apache-2.0
// The version that the library was built as.
#include "rung/core/version.hpp"

namespace rung {

const char* version() noexcept { return RUNG_VERSION; }

}  // namespace rung
