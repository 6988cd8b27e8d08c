// SPDX-License-Identifier: Apache-2.0
// Common parts of the PTX translators: operands, addresses and calls.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// C++ expression for the source location of the asm statement.
inline constexpr const char* here = "::RungPlace::current()";

inline std::string get(std::string_view type, const std::string& value) {
  return fmt::format("::rung::ptx::get<{}>({})", type, value);
}
inline std::string put(const std::string& to, const std::string& value) {
  return fmt::format("::rung::ptx::put({}, {}); ", to, value);
}

/// Splits "{a, b}" into its parts; returns a scalar operand as a single part.
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

  /// Translates an address operand "reg+8" to "function(reg)+8".
  [[nodiscard]] std::string address_by(std::string_view function, std::string_view text) const {
    text = trimmed(text);
    std::string offset;
    if (const std::size_t plus = text.find_first_of("+-", 1); plus != std::string_view::npos) {
      offset = text.substr(plus);
      text = trimmed(text.substr(0, plus));
    }
    return fmt::format("(::rung::ptx::{}({}){})", function, operand(text), offset);
  }
  /// Translates operand "[reg+8]" to a pointer; .shared addresses are relative to the block's
  /// shared memory.
  [[nodiscard]] std::string address(std::size_t i) const {
    const std::string_view text = one.operands.at(i);
    return address_by(shared() ? "shared_pointer" : "pointer", text.substr(1, text.size() - 2));
  }
  [[nodiscard]] bool shared() const {
    return has("shared") || has("shared::cta") || has("shared::cluster");
  }
};

}  // namespace rung::emulate
