// SPDX-License-Identifier: Apache-2.0
// Names from outside - of files, of kernels - in messages and in JSON: a file may be named by any
// bytes but '/' and 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rung/core/export.hpp"

namespace rung {

/// Returns text for a message, in one line: control characters as \n, \t or \x1b.
RUNG_API std::string printable(std::string_view text);

/// Returns text for JSON: each byte that is no UTF-8 becomes U+FFFD.
RUNG_API std::string valid_utf8(std::string_view text);

/// A character of Unicode in UTF-8; U+FFFD for what is none.
RUNG_API std::string utf8(std::uint32_t code);

}  // namespace rung
