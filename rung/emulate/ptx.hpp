// SPDX-License-Identifier: Apache-2.0
// Translates inline PTX to C++: splits the text of an asm statement into instructions, each of
// which becomes a call of a function in rung_cuda/ptx.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rung::emulate {

/// Words with checked access: a missing operand or modifier throws std::out_of_range, which
/// translate() converts to an Error.
struct Words : std::vector<std::string> {
  using vector::vector;
  const std::string& operator[](std::size_t i) const { return at(i); }
  [[nodiscard]] const std::string& front() const { return at(0); }
  [[nodiscard]] const std::string& back() const { return at(size() - 1); }
};

struct Instruction {
  std::string label;   // "name:" before it
  std::string guard;   // @p or @!p, without the @
  std::string opcode;  // first word: "mul"
  Words modifiers;     // other words, without dots: "wide", "u32"
  Words operands;      // "%0", "[%1+16]", "{%2, %3}", "p|q", "0x80"

  [[nodiscard]] std::string name() const;  // "mul.wide.u32"
  [[nodiscard]] bool has(std::string_view modifier) const;
};

/// Parses a template into instructions; braces become instructions "{" and "}". Throws
/// Error(invalid_argument) for text that is not PTX.
std::vector<Instruction> parse_ptx(std::string_view text);

/// Translates operands to C++.
class OperandWriter {
 public:
  virtual ~OperandWriter() = default;
  /// Returns an expression for a register, parameter, special register or number.
  virtual std::string operator()(std::string_view operand) const = 0;
};

/// Returns the C++ statement of an instruction. Throws Error(unsupported) if it is not in the
/// table, and Error(invalid_argument) for missing operands or modifiers.
std::string translate(const Instruction& instruction, const OperandWriter& operand);

/// Returns the C++ type of a PTX type, such as "unsigned" for "u32"; "" if there is none.
std::string_view ptx_type(std::string_view name);

/// Returns the text without blanks at both ends.
std::string_view trimmed(std::string_view text);
/// Splits at commas outside of brackets.
Words split_operands(std::string_view text);

}  // namespace rung::emulate
