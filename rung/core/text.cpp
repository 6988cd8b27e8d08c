// SPDX-License-Identifier: Apache-2.0
// Control characters and UTF-8 (RFC 3629) in untrusted text.
#include "rung/core/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rung {
namespace {

/// Returns true for Unicode code points other than UTF-16 surrogates.
bool is_character(std::uint32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/// Returns the length in bytes of the first character of `text`; 0 if it is not valid UTF-8.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  // Smallest code point per length: overlong encodings are invalid.
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < least[length] || !is_character(code) ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      shown += "\\n";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      shown += "\\x";
      shown += digits[byte >> 4];
      shown += digits[byte & 15];
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      valid += utf8(0xfffd);
    } else {
      valid += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return valid;
}

std::string utf8(std::uint32_t code) {
  if (!is_character(code)) return utf8(0xfffd);
  const auto next = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), next(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), next(6), next(0)};
  return {static_cast<char>(0xf0 | code >> 18), next(12), next(6), next(0)};
}

}  // namespace rung
