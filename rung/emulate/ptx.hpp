// SPDX-License-Identifier: Apache-2.0
// Inline PTX as C++: the text of an asm statement is cut into instructions, each of which becomes a
// call of rung_cuda/ptx.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rung::emulate {

/// Words whose every access is checked: an instruction that lacks an operand or a modifier throws
/// std::out_of_range, which translate() turns into an Error.
struct Words : std::vector<std::string> {
  using vector::vector;
  const std::string& operator[](std::size_t i) const { return at(i); }
  [[nodiscard]] const std::string& front() const { return at(0); }
  [[nodiscard]] const std::string& back() const { return at(size() - 1); }
};

struct Instruction {
  std::string label;   // "name:" in front of it
  std::string guard;   // @p or @!p, without the @
  std::string opcode;  // the first word: "mul"
  Words modifiers;     // what follows it, without the dots: "wide", "u32"
  Words operands;      // "%0", "[%1+16]", "{%2, %3}", "p|q", "0x80"

  [[nodiscard]] std::string name() const;  // "mul.wide.u32"
  [[nodiscard]] bool has(std::string_view modifier) const;
};

/// The instructions of a template; braces come as instructions "{" and "}". Throws
/// Error(invalid_argument) for what is no PTX.
std::vector<Instruction> parse_ptx(std::string_view text);

/// C++ for operands: the text that reads or writes one.
class OperandWriter {
 public:
  virtual ~OperandWriter() = default;
  /// An expression for a register, parameter, special register or number.
  virtual std::string operator()(std::string_view operand) const = 0;
};

/// The statement for one instruction. Throws Error(unsupported) for one that is not in the table,
/// Error(invalid_argument) for one that lacks operands or modifiers.
std::string translate(const Instruction& instruction, const OperandWriter& operand);

/// The C++ type of a PTX type, "" if it is none: "u32" is "unsigned".
std::string_view ptx_type(std::string_view name);

/// Removes blanks at both ends.
std::string_view trimmed(std::string_view text);
/// Cuts at commas outside of brackets.
Words split_operands(std::string_view text);

}  // namespace rung::emulate
