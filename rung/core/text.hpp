// SPDX-License-Identifier: Apache-2.0
// Escaping of external names (files, kernels) for messages and JSON: a file's name may contain any
// bytes but '/' and 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rung/core/export.hpp"

namespace rung {

/// Returns text for a message, on one line: control characters become \n, \t or \x1b.
RUNG_API std::string printable(std::string_view text);

/// Returns text for JSON: each byte that is not valid UTF-8 becomes U+FFFD.
RUNG_API std::string valid_utf8(std::string_view text);

/// Encodes a Unicode code point in UTF-8; U+FFFD if it is invalid.
RUNG_API std::string utf8(std::uint32_t code);

}  // namespace rung
