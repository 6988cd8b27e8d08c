// SPDX-License-Identifier: Apache-2.0
// Kernels: inserts the prologue into __global__ functions, and collects their launch requirements.
#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/emulate/brackets.hpp"
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {

namespace {

struct KernelDefinition {
  std::size_t word;  // __global__
  std::size_t name;
  std::size_t body;        // opening brace of the body; size() for a declaration
  std::string path;        // qualified name
  std::string demands;     // calls that register the launch requirements
  std::size_t commas;      // number of commas in the parameter list
  bool hidden;             // a parameter hides the kernel's name
  std::string restricted;  // calls that register its __restrict__ parameters
  std::string objects;     // types of parameters that may have destructors
};

/// Returns the member function of Demands for __launch_bounds__ or __cluster_dims__; else null.
const char* demand_of(const Token& token) {
  if (token.is("__rung_launch_bounds__")) return "launch_bounds";
  if (token.is("__rung_cluster_dims__")) return "cluster_dims";
  return nullptr;
}

/// Returns the call for the keyword at `i` and its arguments, on one line.
std::string call_of(const TokenStream& tokens, std::size_t i) {
  std::string call = std::string("rung_all.") + demand_of(tokens[i]) + "(";
  const std::size_t close = tokens.closing(i + 1);
  for (std::size_t at = i + 2; at < close; ++at) {
    if (tokens[at].kind == TokenKind::verbatim) continue;
    call += (tokens[at].space.empty() ? "" : " ") + std::string(tokens[at].text);
  }
  return call + "); ";
}

/// Returns the first specifier of the kernel's declaration, and adds the launch requirements among
/// its specifiers to `demands`.
std::size_t first_word(const TokenStream& tokens, std::size_t word, std::string& demands) {
  std::size_t i = word;
  while (i > 0) {
    if (tokens[i - 1].kind == TokenKind::identifier) {
      --i;
      continue;
    }
    const std::size_t open = tokens[i - 1].is(")") ? tokens.opening(i - 1) : tokens.size();
    if (open == 0 || open >= tokens.size() || demand_of(tokens[open - 1]) == nullptr) break;
    i = open - 1;
    demands += call_of(tokens, i);
  }
  return i;
}

/// Returns the registration of the parameter in tokens [begin, end) if it is a __restrict__ pointer
/// to a type that is not a pointer; else "".
std::string restricted_call(const TokenStream& tokens, std::size_t begin, std::size_t end,
                            int number) {
  bool restricted = false;
  int stars = 0, depth = 0;
  std::string_view name;
  for (std::size_t i = begin; i < end && !tokens[i].is("="); ++i) {
    if (tokens[i].is("<") || opens(tokens[i])) ++depth;
    if (tokens[i].is(">") || closes(tokens[i])) --depth;
    if (depth != 0) continue;
    stars += tokens[i].is("*") ? 1 : 0;
    if (tokens[i].is("__restrict__") || tokens[i].is("__restrict")) {
      restricted = true;
    } else if (tokens[i].kind == TokenKind::identifier) {
      name = tokens[i].text;
    }
  }
  if (!restricted || stars != 1 || name.empty()) return "";
  return fmt::format("rung_all.restricted({}, \"{}\"); ", number, name);
}

/// Returns the registrations of all restricted parameters between the parentheses; "" if there are
/// fewer than two, or if a parameter pack makes their positions unknown.
std::string restricted_calls(const TokenStream& tokens, std::size_t open, std::size_t close) {
  std::string calls;
  int depth = 0, number = 0, restricted = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = begin; i <= close && i < tokens.size(); ++i) {
    if (tokens[i].is(".")) return "";
    if (i == close || (depth == 0 && tokens[i].is(","))) {
      const std::string call = restricted_call(tokens, begin, i, number++);
      restricted += call.empty() ? 0 : 1;
      calls += call;
      begin = i + 1;
    } else if (tokens[i].is("<") || opens(tokens[i])) {
      ++depth;
    } else if (tokens[i].is(">") || closes(tokens[i])) {
      --depth;
    }
  }
  return restricted > 1 ? calls : "";
}

/// Returns "decltype(p)" for the parameter p in tokens [begin, end) if its type may be a class; ""
/// for pointers, references, numbers and unrecognized forms.
std::string object_type(const TokenStream& tokens, std::size_t begin, std::size_t end) {
  static const std::set<std::string_view> no_types = {
      "const",    "volatile", "struct",   "class",    "typename",
      "unsigned", "signed",   "int",      "long",     "short",
      "char",     "float",    "double",   "bool",     "size_t",
      "auto",     "dim3",     "uint32_t", "int32_t",  "__grid_constant__",
      "enum",     "register", "uint",     "uint64_t", "int64_t",
      "uint8_t",  "union"};
  int depth = 0;
  bool pack = false;
  std::size_t name = end;
  for (std::size_t i = begin; i < end && !tokens[i].is("="); ++i) {
    if (tokens[i].is("<")) ++depth;
    if (tokens[i].is(">")) --depth;
    if (tokens[i].is(">>")) depth -= 2;
    if (depth != 0) continue;
    const Token& token = tokens[i];
    if (token.is("*") || token.is("&") || token.is("&&") || token.is("(") || token.is("[") ||
        token.kind == TokenKind::verbatim) {
      return "";
    }
    pack = pack || token.is(".");
    if (token.kind == TokenKind::identifier) name = i;
  }
  if (name == end || name == begin || no_types.count(tokens[name].text) != 0) return "";
  const Token& before = tokens[name - 1];
  const bool named = before.is(">") || before.is(">>") || before.is(".") ||
                     (before.kind == TokenKind::identifier && no_types.count(before.text) == 0);
  if (!named) return "";
  return fmt::format("decltype({}){}", tokens[name].text, pack ? "..." : "");
}

/// Returns the object types of all parameters between the parentheses, separated by commas.
std::string object_types(const TokenStream& tokens, std::size_t open, std::size_t close) {
  std::string types;
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = begin; i <= close && i < tokens.size(); ++i) {
    if (i == close || (depth == 0 && tokens[i].is(","))) {
      const std::string type = object_type(tokens, begin, i);
      if (!type.empty()) types += (types.empty() ? "" : ", ") + type;
      begin = i + 1;
    } else if (tokens[i].is("<") || opens(tokens[i])) {
      ++depth;
    } else if (tokens[i].is(">") || closes(tokens[i])) {
      --depth;
    } else if (tokens[i].is(">>")) {
      depth -= 2;
    }
  }
  return types;
}

KernelDefinition read_kernel(const TokenStream& tokens, std::size_t word) {
  std::string demands;
  first_word(tokens, word, demands);
  // The parameter list is the first parenthesis after the function's name.
  std::size_t at = word + 1;
  while (at < tokens.size() && !tokens[at].is("(")) {
    const bool demand = demand_of(tokens[at]) != nullptr && tokens[at + 1].is("(");
    if (demand) demands += call_of(tokens, at);
    if (demand || (tokens[at].is("__attribute__") && tokens[at + 1].is("("))) {
      at = tokens.closing(at + 1);
    }
    ++at;
  }
  const std::size_t name = at - 1;
  std::size_t commas = 0;
  bool hidden = false;
  const std::size_t close = at < tokens.size() ? tokens.closing(at) : at;
  const std::string restricted = restricted_calls(tokens, at, close);
  const std::string objects = object_types(tokens, at, close);
  for (; at < close; ++at) {
    commas += tokens[at].is(",") ? 1 : 0;
    hidden = hidden || tokens[at].is(tokens[name].text);
  }
  while (at < tokens.size() && !tokens[at].is("{") && !tokens[at].is(";")) ++at;
  return {word,       name,   tokens[at].is("{") ? at : tokens.size(), "", demands, commas, hidden,
          restricted, objects};
}

/// Sets `arguments` to "<T, N, Rest...>" for a kernel template, "" for a function. Returns false
/// for explicit specializations and unrecognized templates.
bool template_arguments(const TokenStream& tokens, std::size_t word, std::string& arguments) {
  std::string unused;
  const std::size_t i = first_word(tokens, word, unused);  // static, inline ...
  if (i == 0 || !tokens[i - 1].is(">")) return true;
  const std::size_t last = i - 1;
  const std::size_t open = opening_angle(tokens, last);
  if (open >= tokens.size() || open == 0 || !tokens[open - 1].is("template")) return false;
  std::string name;
  bool pack = false, found = false;
  int depth = 0;
  for (std::size_t at = open + 1; at <= last; ++at) {
    const Token& token = tokens[at];
    if (depth == 0 && (token.is(",") || token.is("=") || at == last)) {
      if (!found && name.empty()) return false;
      if (!found) arguments += (arguments.empty() ? "<" : ", ") + name + (pack ? "..." : "");
      found = token.is("=");
      if (!found) {
        name.clear();
        pack = false;
      }
    } else if (token.is("<") || opens(token)) {
      ++depth;
    } else if (token.is(">") || closes(token)) {
      --depth;
    } else if (token.is(">>")) {
      depth -= 2;
    } else if (token.kind == TokenKind::identifier) {
      name = token.text;
    } else if (token.is(".")) {
      pack = true;
    }
  }
  if (arguments.empty()) return false;
  arguments += '>';
  return true;
}

/// Throws if a kernel's return type is not void. Dependent types are checked by the compiler.
void require_void(const TokenStream& tokens, const KernelDefinition& one) {
  std::string unused, type;
  for (std::size_t i = first_word(tokens, one.word, unused); i < one.name; ++i) {
    const Token& token = tokens[i];
    if (token.is("void") && !tokens[i + 1].is("*")) return;
    if (token.is("auto") || token.is("::") || token.is("<") || token.is(">")) return;
    if (demand_of(token) != nullptr || token.is("__attribute__")) {
      i = tokens.closing(i + 1);
      continue;
    }
    bool specifier = i == one.word || token.kind == TokenKind::verbatim;
    for (const char* word :
         {"static", "inline", "extern", "constexpr", "friend", "__inline__", "__forceinline__",
          "__noinline__", "virtual", "explicit", "template"}) {
      specifier = specifier || token.is(word);
    }
    if (specifier || token.kind == TokenKind::string) continue;
    type += (type.empty() || token.is("*") ? "" : " ") + std::string(token.text);
  }
  if (type.empty() || tokens[one.name].kind != TokenKind::identifier) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: a kernel (__global__) must return void, and {} returns {}: let it "
                          "write results through a pointer parameter",
                          to_string(tokens.line_of(one.word)), tokens[one.name].text, type));
}

/// The namespaces that are open at the current token.
struct Namespaces {
  std::string path;                  // "a::b::"
  std::vector<std::size_t> lengths;  // length of `path` before each open brace
  void see(const TokenStream& tokens, std::size_t i) {
    if (tokens[i].is("}") && !lengths.empty()) {
      path.resize(lengths.back());
      lengths.pop_back();
    }
    if (!tokens[i].is("{")) return;
    lengths.push_back(path.size());
    std::size_t begin = i;
    while (!tokens[begin].is("namespace") && begin > 0 &&
           (tokens[begin - 1].kind == TokenKind::identifier || tokens[begin - 1].is("::"))) {
      --begin;
    }
    if (tokens[begin].is("namespace")) path += tokens.text(begin + 1, i) + "::";
  }
};

/// Returns a name that is valid in any scope, for a path that may contain unnamed namespaces.
std::string qualified(const std::string& path) {
  std::string name = "::" + path;
  for (std::size_t at = 0; (at = name.find("::::")) != std::string::npos;) name.erase(at, 2);
  return name;
}

}  // namespace

void rewrite_kernels(TokenStream& tokens) {
  std::vector<KernelDefinition> kernels;
  std::map<std::string, int> definitions;
  std::map<std::string, std::set<std::size_t>> commas;  // commas in declarations, by path
  std::map<std::string, std::string> declared;          // requirements in earlier declarations
  Namespaces namespaces;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    namespaces.see(tokens, i);
    // __noinline__ is rewritten only as a specifier: a macro would break the attribute with the
    // same name.
    if (tokens[i].is("__noinline__") && !tokens[i - 1].is("(") && !tokens[i - 1].is(",")) {
      tokens.replace(i, "__attribute__((noinline))");
    }
    if (demand_of(tokens[i]) != nullptr && tokens[i + 1].is("(")) {
      const std::size_t close = tokens.closing(i + 1);
      for (std::size_t at = i; at <= close && close < tokens.size(); ++at) tokens.erase(at);
    }
    if (!tokens[i].is("__rung_global__")) continue;
    tokens.erase(i);
    kernels.push_back(read_kernel(tokens, i));
    KernelDefinition& one = kernels.back();
    require_void(tokens, one);
    one.path = namespaces.path + std::string(tokens[one.name].text);
    commas[one.path].insert(one.commas);
    if (one.body < tokens.size()) {
      ++definitions[one.path];
      if (one.demands.empty()) one.demands = declared[one.path];
    } else if (!one.demands.empty()) {
      declared[one.path] = one.demands;
    }
  }
  for (const KernelDefinition& one : kernels) {
    if (one.body >= tokens.size()) continue;
    const std::string_view name = tokens[one.name].text;
    std::string values;
    // A kernel can also be launched by its address if its name is unambiguous.
    const bool unique = definitions[one.path] == 1 && commas[one.path].size() == 1 &&
                        tokens[one.name].kind == TokenKind::identifier &&
                        template_arguments(tokens, one.word, values);
    const std::string kernel = one.hidden ? qualified(one.path) : std::string(name);
    const std::string self =
        unique ? fmt::format(", ::rung::cuda::only_kernel(&{}{})", kernel, values) : "";
    std::string start = " struct rung_kernel { ";
    if (!one.demands.empty() || !one.restricted.empty()) {
      start += "static void rung_demands(::rung::cuda::Demands& rung_all) { ";
      start += one.demands;
      start += one.restricted;
      start += "} ";
    }
    start += "}; ::rung::cuda::enter<rung_kernel";
    start += self;
    start += ">();";
    if (!one.objects.empty()) {
      start += " [[maybe_unused]] const ::rung::cuda::Parameters<" + one.objects +
               "> rung_parameters{};";
    }
    tokens.insert_after(one.body, start);
  }
}

}  // namespace rung::emulate
