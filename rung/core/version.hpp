// SPDX-License-Identifier: Apache-2.0
// Version of the headers, as macros, and of the loaded library.
#pragma once

#include "rung/core/export.hpp"
#include "rung/core/version.h"  // RUNG_VERSION_MAJOR, _MINOR, _PATCH

namespace rung {

/// Returns the version of the library, which may be newer than the headers: "0.1.0".
RUNG_API const char* version() noexcept;

}  // namespace rung
