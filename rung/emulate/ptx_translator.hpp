// SPDX-License-Identifier: Apache-2.0
// What the translators of PTX instructions share: operands, addresses, and calls that are written.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// The user's line, evaluated where the asm statement stood.
inline constexpr const char* here = "::RungPlace::current()";

inline std::string get(std::string_view type, const std::string& value) {
  return fmt::format("::rung::ptx::get<{}>({})", type, value);
}
inline std::string put(const std::string& to, const std::string& value) {
  return fmt::format("::rung::ptx::put({}, {}); ", to, value);
}

/// The parts of "{a, b}"; the operand itself when it is no vector.
inline Words parts(const std::string& operand) {
  if (!operand.starts_with("{")) return {operand};
  return split_operands(std::string_view(operand).substr(1, operand.size() - 2));
}

struct PtxTranslator {
  const Instruction& one;
  const OperandWriter& operand;
  const Words& types;

  [[nodiscard]] std::string at(std::size_t i) const { return operand(one.operands.at(i)); }
  [[nodiscard]] std::string unsigned_at(std::size_t i) const { return get("unsigned", at(i)); }
  [[nodiscard]] bool has(std::string_view modifier) const { return one.has(modifier); }

  /// The text "reg+8", the operand of an address, as function(reg)+8.
  [[nodiscard]] std::string address_by(std::string_view function, std::string_view text) const {
    text = trimmed(text);
    std::string offset;
    if (const std::size_t plus = text.find_first_of("+-", 1); plus != std::string_view::npos) {
      offset = text.substr(plus);
      text = trimmed(text.substr(0, plus));
    }
    return fmt::format("(::rung::ptx::{}({}){})", function, operand(text), offset);
  }
  /// "[reg+8]" as a pointer; .shared addresses count from the block's shared memory.
  [[nodiscard]] std::string address(std::size_t i) const {
    const std::string_view text = one.operands.at(i);
    return address_by(shared() ? "shared_pointer" : "pointer", text.substr(1, text.size() - 2));
  }
  [[nodiscard]] bool shared() const {
    return has("shared") || has("shared::cta") || has("shared::cluster");
  }
};

}  // namespace rung::emulate
