// SPDX-License-Identifier: Apache-2.0
// Rewrites asm statements: operands become references, instructions become calls.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <map>

#include "rung/core/error.hpp"
#include "rung/emulate/ptx.hpp"
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Returns the value of a string literal; only escape sequences that occur in PTX are supported.
std::string literal_text(std::string_view literal) {
  const std::size_t open = literal.find('"');
  if (literal.substr(0, open).ends_with('R')) {
    const std::size_t begin = literal.find('(', open) + 1;
    return std::string(literal.substr(begin, literal.rfind(')') - begin));
  }
  std::string text;
  for (std::size_t i = open + 1; i + 1 < literal.size(); ++i) {
    if (literal[i] != '\\') {
      text += literal[i];
      continue;
    }
    const char c = literal[++i];
    if (c == '\n') continue;
    text += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? ' ' : c;
  }
  return text;
}

struct Operand {
  std::string name;        // name in [name]
  std::string constraint;  // "=r"
  std::string expression;
};

struct Assembly {
  std::string text;
  std::vector<Operand> operands;
  bool extended = false;  // has colons, so percent signs are doubled
};

/// Parses an asm statement with brackets at `open` and `close`. Returns false if it is not PTX.
bool read_assembly(const TokenStream& tokens, std::size_t open, std::size_t close, Assembly& to) {
  std::size_t i = open + 1;
  for (; i < close && tokens[i].kind == TokenKind::string; ++i) {
    to.text += literal_text(tokens[i].text);
  }
  // %= expands to a number that is unique to the statement; the prefix makes labels unique as well.
  for (std::size_t at = 0; (at = to.text.find("%=", at)) != std::string::npos;) {
    to.text.replace(at, 2, "_");
  }
  int part = 0;  // 1: outputs, 2: inputs, 3: clobbers
  while (i < close) {
    if (tokens[i].is(":") || tokens[i].is("::")) {
      part += tokens[i].is(":") ? 1 : 2;
      to.extended = true;
      ++i;
    } else if (part == 3 || tokens[i].is(",")) {
      ++i;
    } else {
      Operand one;
      if (tokens[i].is("[")) {
        one.name = tokens[i + 1].text;
        i += 3;
      }
      if (tokens[i].kind != TokenKind::string || !tokens[i + 1].is("(")) return false;
      one.constraint = literal_text(tokens[i].text);
      // Constraints for registers of other architectures, such as rax, do not occur in PTX.
      if (one.constraint.find_first_not_of("=+&hrlfdnqbC") != std::string::npos) return false;
      const std::size_t end = tokens.closing(i + 1);
      one.expression = tokens.text(i + 2, end);
      to.operands.push_back(one);
      i = end + 1;
    }
  }
  return true;
}

class Writer : public OperandWriter {
 public:
  Writer(const Assembly& assembly, const std::map<std::string, std::string>& locals)
      : assembly_(assembly), locals_(locals) {}

  std::string operator()(std::string_view operand) const override {
    operand = trimmed(operand);
    if (operand == "_") return "::rung::ptx::sink()";
    if (operand.starts_with('!')) return "!" + (*this)(operand.substr(1));
    if (operand.starts_with("%[")) {
      const std::string_view name = operand.substr(2, operand.find(']') - 2);
      for (std::size_t i = 0; i < assembly_.operands.size(); ++i) {
        if (assembly_.operands[i].name == name) return "rung_p" + std::to_string(i);
      }
    }
    if (assembly_.extended && operand.size() > 1 && operand[0] == '%' &&
        std::isdigit(static_cast<unsigned char>(operand[1]))) {
      std::size_t index = assembly_.operands.size();
      std::from_chars(operand.data() + 1, operand.data() + operand.size(), index);
      if (index < assembly_.operands.size()) return "rung_p" + std::to_string(index);
    }
    std::string name(operand);
    if (name.starts_with("%%")) name.erase(0, 1);
    if (const auto local = locals_.find(name); local != locals_.end()) return local->second;
    if (name.starts_with('%')) return special(name.substr(1));
    return number(name);
  }

 private:
  static std::string special(std::string name) {
    for (char& c : name) {
      if (c == '.') c = '_';
    }
    return "::rung::ptx::special_" + name + "()";
  }
  static std::string number(const std::string& text) {
    if (text.starts_with("0f") || text.starts_with("0F")) {
      return "__builtin_bit_cast(float, 0x" + text.substr(2) + "u)";
    }
    if (text.starts_with("0d") || text.starts_with("0D")) {
      return "__builtin_bit_cast(double, 0x" + text.substr(2) + "ull)";
    }
    const char first = text[text[0] == '-' && text.size() > 1 ? 1 : 0];
    if (std::isdigit(static_cast<unsigned char>(first))) {
      const bool fraction = text.find('.') != std::string::npos;
      return fraction || text.ends_with('U') ? text : text + "ll";
    }
    throw Error(ErrorCode::unsupported, "inline PTX: " + text + " is no register that is known");
  }

  const Assembly& assembly_;
  const std::map<std::string, std::string>& locals_;
};

[[noreturn]] void fail_declaration(const std::string& text) {
  throw Error(ErrorCode::invalid_argument,
              "inline PTX: '" + text + "' in .reg declares no registers; accepted: .b32 a, b<4>");
}

/// Translates ".reg .b32 a, b<4>;" to C++ and adds the register names to `locals`.
std::string declare(const Instruction& one, std::map<std::string, std::string>& locals,
                    const std::string& prefix) {
  // The type precedes the first name: ".b32 a".
  std::string type, declaration;
  for (std::string text : one.operands) {
    if (text.starts_with('.')) {
      const std::size_t blank = text.find_first_of(" \t");
      if (blank == std::string::npos) fail_declaration(text);
      type = text.substr(1, blank - 1);
      text = trimmed(std::string_view(text).substr(blank));
    }
    if (type.starts_with('v')) break;
    int count = 0;
    if (const std::size_t angle = text.find('<'); angle != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto [stopped, error] = std::from_chars(text.data() + angle + 1, end, count);
      constexpr int max_count = 100000;
      if (error != std::errc() || stopped == end || *stopped != '>' || count > max_count) {
        fail_declaration(text);
      }
      text.erase(angle);
    }
    const auto add = [&](const std::string& spelled) {
      std::string plain;
      for (const char c : spelled) plain += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      const std::string name = prefix + plain;
      locals[spelled.starts_with("%%") ? spelled.substr(1) : spelled] = name;
      declaration += fmt::format("[[maybe_unused]] {} {}; ", ptx_type(type), name);
    };
    if (count == 0) add(text);
    for (int i = 0; i < count; ++i) add(text + std::to_string(i));
  }
  if (ptx_type(type).empty()) {
    throw Error(ErrorCode::unsupported, "inline PTX: registers of type ." + type);
  }
  return declaration;
}

std::string translate_all(const Assembly& assembly, const std::string& prefix) {
  std::string code = "do { [[maybe_unused]] unsigned rung_carry; ";
  for (std::size_t i = 0; i < assembly.operands.size(); ++i) {
    const Operand& one = assembly.operands[i];
    const bool written = one.constraint.find_first_of("=+") != std::string::npos;
    code += fmt::format("[[maybe_unused]] {} rung_p{} = ({}); ", written ? "auto&&" : "const auto",
                        i, one.expression);
  }
  std::map<std::string, std::string> locals;
  const Writer write(assembly, locals);
  const auto label = [&](const std::string& name) {
    std::string plain;
    for (const char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return prefix + "label_" + plain;
  };
  for (const Instruction& one : parse_ptx(assembly.text)) {
    if (!one.label.empty()) code += label(one.label) + ":; ";
    if (one.opcode.empty()) continue;
    if (one.opcode == "{" || one.opcode == "}") {
      code += one.opcode + " ";
      continue;
    }
    if (one.opcode == ".reg") {
      code += declare(one, locals, prefix);
      continue;
    }
    if (!one.guard.empty()) {
      const bool negated = one.guard[0] == '!';
      code += fmt::format("if ({}({})) ", negated ? "!" : "",
                          write(std::string_view(one.guard).substr(negated ? 1 : 0)));
    }
    if (one.opcode == "bra" && !one.operands.empty()) {
      code += "goto " + label(one.operands[0]) + "; ";
    } else {
      code += "{ " + translate(one, write) + " } ";
    }
  }
  return code + "} while (0)";
}

bool is_asm(const Token& token) {
  return token.is("asm") || token.is("__asm__") || token.is("__asm");
}
bool is_volatile(const Token& token) {
  return token.is("volatile") || token.is("__volatile__") || token.is("__volatile");
}

}  // namespace

bool holds_assembly(const std::string& preprocessed) {
  const TokenStream tokens(preprocessed);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_asm(tokens[i])) return true;
  }
  return false;
}

bool holds_volatile(const std::string& preprocessed) {
  const TokenStream tokens(preprocessed);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_volatile(tokens[i]) && (i == 0 || !is_asm(tokens[i - 1]))) return true;
  }
  return false;
}

void rewrite_assembly(TokenStream& tokens) {
  int count = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& word = tokens[i];
    if (!is_asm(word)) continue;
    std::size_t open = i + 1;
    while (is_volatile(tokens[open]) || tokens[open].is("inline")) ++open;
    if (!tokens[open].is("(")) continue;
    const std::size_t close = tokens.closing(open);
    Assembly assembly;
    if (close >= tokens.size() || !tokens[close + 1].is(";") ||
        !read_assembly(tokens, open, close, assembly)) {
      continue;
    }
    if (trimmed(assembly.text).empty()) {
      // A compiler barrier. Its register operands are dropped, since some have types that g++
      // cannot constrain.
      if (!assembly.operands.empty()) {
        tokens.replace(i, close + 1, "__asm__ volatile(\"\" ::: \"memory\")");
      }
      continue;
    }
    try {
      tokens.replace(i, close + 1,
                     translate_all(assembly, "rung_" + std::to_string(count++) + "_"));
    } catch (const Error& error) {
      throw Error(error.code(), to_string(tokens.line_of(i)) + ": " + error.what());
    }
    i = close;
  }
}

}  // namespace rung::emulate
