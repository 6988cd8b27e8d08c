// SPDX-License-Identifier: Apache-2.0
// Table of PTX instructions and the functions of rung_cuda/ptx*.h that implement them.
//
// A row's form describes the operands. d before the colon is the destination and a b c d after it
// are sources of the instruction's type T; w is a destination of twice the width, W a source of
// twice the width, u a 32-bit source, p a predicate. "d:aab" translates to put(d,
// function<T>(get<T>(a), get<T>(b), ...)).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "rung/core/error.hpp"
#include "rung/emulate/ptx.hpp"
#include "rung/emulate/ptx_translator.hpp"

namespace rung::emulate {
namespace {

struct Row {
  std::string_view name;  // opcode and the modifiers that distinguish its variants
  std::string_view form;
  std::string_view function;
};

constexpr Row rows[] = {
    {"mov", "d=a", "same"},
    {"add.cc", "d=aa+", "add_carry_out"},
    {"addc.cc", "d=aa+", "add_carry_both"},
    {"addc", "d=aa+", "add_carry_in"},
    {"sub.cc", "d=aa+", "sub_carry_out"},
    {"subc.cc", "d=aa+", "sub_carry_both"},
    {"subc", "d=aa+", "sub_carry_in"},
    {"mad.lo.cc", "d=aaa+", "mad_lo_carry_out"},
    {"mad.hi.cc", "d=aaa+", "mad_hi_carry_out"},
    {"madc.lo.cc", "d=aaa+", "mad_lo_carry_both"},
    {"madc.hi.cc", "d=aaa+", "mad_hi_carry_both"},
    {"madc.lo", "d=aaa+", "mad_lo_carry_in"},
    {"madc.hi", "d=aaa+", "mad_hi_carry_in"},
    {"add.sat", "d=aa", "add_saturated"},
    {"add", "d=aa", "add"},
    {"sub", "d=aa", "sub"},
    {"mul.wide", "w=aa", "mul_wide"},
    {"mul.hi", "d=aa", "mul_hi"},
    {"mul", "d=aa", "mul"},
    {"mul24", "d=aa", "mul24"},
    {"mad.wide", "w=aaW", "mad_wide"},
    {"mad.hi", "d=aaa", "mad_hi"},
    {"mad", "d=aaa", "mad"},
    {"fma.sat", "d=aaa", "fma_saturated"},
    {"fma.relu", "d=aaa", "fma_relu"},
    {"fma", "d=aaa", "fused"},
    {"div", "d=aa", "div"},
    {"rem", "d=aa", "rem"},
    {"abs", "d=a", "abs"},
    {"neg", "d=a", "neg"},
    {"min", "d=aa", "min"},
    {"max", "d=aa", "max"},
    {"sad", "d=aaa", "sad"},
    {"and", "d=aa", "bit_and"},
    {"or", "d=aa", "bit_or"},
    {"xor", "d=aa", "bit_xor"},
    {"not", "d=a", "bit_not"},
    {"cnot", "d=a", "is_zero"},
    {"shl", "d=au", "shl"},
    {"shr", "d=au", "shr"},
    {"shf.l.wrap", "d=aau", "funnel_left"},
    {"shf.r.wrap", "d=aau", "funnel_right"},
    {"shf.l.clamp", "d=aau", "funnel_left_clamped"},
    {"shf.r.clamp", "d=aau", "funnel_right_clamped"},
    {"lop3", "d=aaau", "lop3"},
    {"prmt", "d=aaa", "prmt"},
    {"bfe", "d=auu", "bfe"},
    {"bfi", "d=aauu", "bfi"},
    {"bfind", "u=a", "bfind"},
    {"popc", "u=a", "popc"},
    {"clz", "u=a", "clz"},
    {"brev", "d=a", "brev"},
    {"fns", "d=uuu", "fns"},
    {"selp", "d=aap", "selp"},
    {"slct", "d=aac", "slct"},
    {"dp4a", "u=uuu", ""},
    {"ex2", "d=a", "ex2"},
    {"lg2", "d=a", "lg2"},
    {"rcp", "d=a", "rcp"},
    {"rsqrt", "d=a", "rsqrt"},
    {"sqrt", "d=a", "sqrt"},
    {"sin", "d=a", "sin"},
    {"cos", "d=a", "cos"},
    {"tanh", "d=a", "tanh"},
    {"copysign", "d=aa", "copysign"},
};

struct TypeName {
  std::string_view ptx, cpp;
};
constexpr TypeName types[] = {
    {"u8", "unsigned char"},
    {"s8", "signed char"},
    {"b8", "unsigned char"},
    {"u16", "unsigned short"},
    {"s16", "short"},
    {"b16", "unsigned short"},
    {"u32", "unsigned"},
    {"s32", "int"},
    {"b32", "unsigned"},
    {"u64", "unsigned long long"},
    {"s64", "long long"},
    {"b64", "unsigned long long"},
    {"b128", "::rung::ptx::b128"},
    {"f32", "float"},
    {"f64", "double"},
    {"f16", "::rung::ptx::f16"},
    {"f16x2", "::rung::ptx::f16x2"},
    {"bf16", "::rung::ptx::bf16"},
    {"bf16x2", "::rung::ptx::bf16x2"},
    {"tf32", "::rung::ptx::tf32"},
    {"pred", "bool"},
    {"e4m3x2", "::rung::ptx::e4m3x2"},
    {"e5m2x2", "::rung::ptx::e5m2x2"},
};

[[noreturn]] void unknown(const Instruction& one) {
  throw Error(ErrorCode::unsupported,
              "inline PTX: the instruction " + one.name() +
                  " is not supported (docs/emulate.md lists those that are)");
}

/// Returns the types among the modifiers, in order of occurrence.
Words types_of(const Instruction& one) {
  Words found;
  for (const std::string& modifier : one.modifiers) {
    if (const std::string_view type = ptx_type(modifier); !type.empty()) found.emplace_back(type);
  }
  return found;
}

/// Returns true if the instruction has this opcode and all modifiers in `name`, in any order.
bool matches(const Instruction& one, std::string_view name) {
  std::size_t dot = std::min(name.find('.'), name.size());
  if (one.opcode != name.substr(0, dot)) return false;
  while (dot < name.size()) {
    name.remove_prefix(dot + 1);
    dot = std::min(name.find('.'), name.size());
    if (!one.has(name.substr(0, dot))) return false;
  }
  return true;
}

std::string by_row(const Instruction& one, const Row& row, const OperandWriter& operand) {
  const Words found = types_of(one);
  if (found.empty() ||
      one.operands.size() + 2 < row.form.size() - (row.form.ends_with('+') ? 1 : 0)) {
    unknown(one);
  }
  const std::string& type = found.front();
  const std::string wide = "::rung::ptx::Wide<" + type + ">";
  std::string arguments;
  for (std::size_t i = 2; i < row.form.size(); ++i) {
    if (!arguments.empty()) arguments += ", ";
    if (row.form[i] == '+') {
      arguments += "rung_carry";
      continue;
    }
    const std::string value = operand(one.operands.at(i - 1));
    const char kind = row.form[i];
    arguments += kind == 'p'   ? "bool(" + value + ")"
                 : kind == 'u' ? get("unsigned", value)
                 : kind == 'W' ? get(wide, value)
                 : kind == 'c' ? get(found.back(), value)
                               : get(type, value);
  }
  return fmt::format("::rung::ptx::put({}, ::rung::ptx::{}<{}>({}));", operand(one.operands.at(0)),
                     row.function, type, arguments);
}

}  // namespace

// Translators of instructions whose operands are not only registers, in ptx_special.cpp and
// ptx_hopper.cpp. They return "" for an unknown instruction.
std::string translate_special(const Instruction& one, const OperandWriter& operand,
                              const Words& found);
std::string translate_hopper(const Instruction& one, const OperandWriter& operand,
                             const Words& found);

std::string_view ptx_type(std::string_view name) {
  const auto* row = std::find_if(std::begin(types), std::end(types),
                                 [&](const auto& t) { return t.ptx == name; });
  return row != std::end(types) ? row->cpp : std::string_view{};
}

std::string translate(const Instruction& one, const OperandWriter& operand) try {
  for (const auto form : {translate_hopper, translate_special}) {
    if (std::string code = form(one, operand, types_of(one)); !code.empty()) return code;
  }
  for (const Row& row : rows) {
    if (!row.function.empty() && matches(one, row.name)) return by_row(one, row, operand);
  }
  unknown(one);
} catch (const std::out_of_range&) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("inline PTX '{}' lacks an operand or a modifier", one.name()));
}

}  // namespace rung::emulate
