// SPDX-License-Identifier: Apache-2.0
// Translates inline PTX to C++: splits the text of an asm statement into instructions and
// translates each to a call of a function in rung_cuda/ptx.h.
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
  std::string label;   // "name:" before the instruction
  std::string guard;   // @p or @!p, without the @
  std::string opcode;  // first word: "mul"
  Words modifiers;     // other words, without dots: "wide", "u32"
  Words operands;      // "%0", "[%1+16]", "{%2, %3}", "p|q", "0x80"

  [[nodiscard]] std::string name() const;  // "mul.wide.u32"
  [[nodiscard]] bool has(std::string_view modifier) const;
};

/// Parses an asm template into instructions; braces become instructions "{" and "}". Throws
/// Error(invalid_argument) for text that is not PTX.
std::vector<Instruction> parse_ptx(std::string_view text);

/// Translator of operands to C++.
class OperandWriter {
 public:
  virtual ~OperandWriter() = default;
  /// Returns an expression for a register, parameter, special register or number.
  virtual std::string operator()(std::string_view operand) const = 0;
};

/// Returns the C++ statement of an instruction. Throws Error(unsupported) for an instruction that
/// is not in the table, and Error(invalid_argument) for missing operands or modifiers.
std::string translate(const Instruction& instruction, const OperandWriter& operand);

/// Returns the C++ type of a PTX type, such as "unsigned" for "u32"; "" if there is none.
std::string_view ptx_type(std::string_view name);

/// Returns the text without leading and trailing blanks.
std::string_view trimmed(std::string_view text);
/// Splits at commas outside brackets.
Words split_operands(std::string_view text);

}  // namespace rung::emulate
