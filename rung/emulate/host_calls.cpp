// SPDX-License-Identifier: Apache-2.0
// Detects calls of host functions by device functions, which nvcc rejects although the simulated
// GPU could run them. Only unambiguous calls are rejected: calls of plain functions in the user's
// files whose names have no other meaning. Also detects assignments of host code to variables of
// the device, of which nvcc warns.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/emulate/brackets.hpp"
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// A device-only function that is neither a class member nor a template.
struct DeviceFunction {
  std::size_t name, close;  // the function's name, and the bracket that ends its body
  bool kernel;
};
struct Meanings {
  bool host_function = false;  // defined for the host only
  bool other = false;          // also declared with another meaning
  // For internal_functions().
  bool device_body = false, not_internal = false;
  std::vector<std::size_t> device_words;
};

class Functions {
 public:
  explicit Functions(const TokenStream& tokens) : tokens_(tokens) {
    std::vector<bool> classes;  // for each open bracket: true if it opens a class
    std::size_t head = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Token& token = tokens[i];
      if (token.is("}")) {
        if (!classes.empty()) classes.pop_back();
      } else if (token.is("{")) {
        if (opens_namespace(tokens, i) || !opens_body(tokens, i)) {
          classes.push_back(!opens_namespace(tokens, i) || (!classes.empty() && classes.back()));
        } else {
          i = tokens.closing(i);
        }
      } else if (token.is("__attribute__") && tokens[i + 1].is("(")) {
        i = tokens.closing(i + 1);  // not a function name
      } else if (token.kind == TokenKind::identifier && tokens[i + 1].is("(")) {
        const std::size_t end = end_of_head(i);
        if (end < tokens.size()) i = note(head, i, end, !classes.empty() && classes.back());
      }
      const bool ends = tokens[i].is(";") || tokens[i].is("}") || tokens[i].is("{");
      if (ends || (tokens[i].kind == TokenKind::verbatim && !is_part_of_head(tokens[i]))) {
        head = i + 1;
      }
    }
  }

  [[nodiscard]] const std::vector<DeviceFunction>& of_device() const { return of_device_; }
  /// Returns the names and closing brackets of functions for the host only.
  [[nodiscard]] const std::vector<DeviceFunction>& of_host() const { return of_host_; }
  /// Returns the __device__ tokens of declarations of functions that are defined in this source for
  /// the device only, without another storage class.
  [[nodiscard]] std::vector<std::size_t> internal_functions() const {
    std::vector<std::size_t> tokens;
    for (const auto& [name, one] : meanings_) {
      if (!one.device_body || one.not_internal) continue;
      tokens.insert(tokens.end(), one.device_words.begin(), one.device_words.end());
    }
    return tokens;
  }
  /// Returns true if the name denotes only a host function.
  [[nodiscard]] bool is_host_function(std::string_view name) const {
    const auto known = meanings_.find(name);
    return known != meanings_.end() && known->second.host_function && !known->second.other &&
           !in_system_headers(name);
  }

 private:
  /// Returns true for tokens that do not end a declaration: a line marker, or words to which a
  /// macro of rung's headers expands, such as __device__ __forceinline__.
  [[nodiscard]] static bool is_part_of_head(const Token& token) {
    return token.text.find_first_of(";{}") == std::string_view::npos;
  }

  /// Returns the { or ; after the parameters if `name` is a function name; else size().
  [[nodiscard]] std::size_t end_of_head(std::size_t name) const {
    std::size_t at = tokens_.closing(name + 1) + 1;
    while (at < tokens_.size() && !tokens_[at].is("{") && !tokens_[at].is(";")) {
      const Token& token = tokens_[at];
      const bool type = token.is("->") || token.is("::") || token.is("<") || token.is(">") ||
                        token.is("*") || token.is("&");
      if (token.kind != TokenKind::identifier && !type && !token.is("(")) return tokens_.size();
      at = token.is("(") ? tokens_.closing(at) + 1 : at + 1;
    }
    return at;
  }

  /// Registers the declaration and returns its last token.
  std::size_t note(std::size_t head, std::size_t name, std::size_t end, bool in_class) {
    bool device = false, host = false, kernel = false, stored = false;
    std::size_t device_word = 0;
    const Token& before = tokens_[name - 1];
    bool plain = !in_class && name > head &&
                 (before.kind == TokenKind::identifier || before.is("*") || before.is("&") ||
                  before.is(">"));
    for (std::size_t i = head; i < name; ++i) {
      const Token& token = tokens_[i];
      const auto has = [&](std::string_view word) {
        return token.kind == TokenKind::verbatim ? token.text.find(word) != std::string_view::npos
                                                 : token.is(word);
      };
      device = device || has("__rung_device__");
      host = host || has("__rung_host__");
      kernel = kernel || has("__rung_global__");
      if (token.is("__rung_device__")) device_word = i;
      stored = stored || has("static") || has("inline") || has("extern");
      plain = plain && !token.is("template") && !token.is("constexpr") && !token.is("consteval") &&
              !token.is("operator") && !token.is("=");
    }
    const bool body = tokens_[end].is("{");
    Meanings& meanings = meanings_[tokens_[name].text];
    if (!plain || device || kernel) meanings.other = true;
    if (plain && device_word != 0 && !host && !kernel && !stored) {
      meanings.device_words.push_back(device_word);
      meanings.device_body = meanings.device_body || body;
    } else {
      meanings.not_internal = true;
    }
    if (body) meanings.host_function = true;
    const std::size_t close = body ? tokens_.closing(end) : end;
    if (plain && body && (kernel || (device && !host))) {
      of_device_.push_back({name, close, kernel});
    }
    if (plain && body && !kernel && !device) of_host_.push_back({name, close, false});
    return close;
  }

  /// Returns true if the name occurs before a parenthesis in a system header: it may be a function.
  [[nodiscard]] bool in_system_headers(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::verbatim) continue;
      const std::string_view text = tokens_[i].text;
      for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos;) {
        const bool begins = at == 0 || !in_word(text[at - 1]);
        at += name.size();
        if (begins && at < text.size() &&
            text[std::min(text.find_first_not_of(' ', at), text.size() - 1)] == '(') {
          return true;
        }
      }
    }
    return false;
  }

  const TokenStream& tokens_;
  std::map<std::string_view, Meanings> meanings_;
  std::vector<DeviceFunction> of_device_, of_host_;
};

/// Returns true if the token at `i`, a name before a parenthesis, is a call.
bool is_call(const TokenStream& tokens, std::size_t i) {
  const Token& before = tokens[i - 1];
  if (before.kind == TokenKind::identifier) return before.is("return") || before.is("else");
  return !before.is(".") && !before.is("->") && !before.is("::") && !before.is("~");
}

/// Returns true for tokens after which a name may not be a call, or the call may not be evaluated.
bool makes_unsure(const Token& token) {
  for (const char* word : {"sizeof", "decltype", "noexcept", "alignof", "typeid", "constexpr",
                           "requires", "static_assert", "using"}) {
    if (token.is(word)) return true;
  }
  return false;
}

void check(const TokenStream& tokens, const Functions& functions, const DeviceFunction& one) {
  // First call of each name; 0 if the name has another meaning in this function.
  std::map<std::string_view, std::size_t> calls;
  for (std::size_t i = one.name + 1; i < one.close; ++i) {
    if (makes_unsure(tokens[i])) return;
    if (tokens[i].kind != TokenKind::identifier) continue;
    const bool call = tokens[i + 1].is("(") && is_call(tokens, i);
    const auto [known, first] = calls.try_emplace(tokens[i].text, call ? i : 0);
    if (!first && !call) known->second = 0;
  }
  for (const auto& [name, at] : calls) {
    if (at == 0 || name == tokens[one.name].text || !functions.is_host_function(name)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: calling a __host__ function (\"{}\") from a {} function (\"{}\") "
                            "is not allowed: declare it __host__ __device__",
                            to_string(tokens.line_of(at)), name,
                            one.kernel ? "__global__" : "__device__", tokens[one.name].text));
  }
}

/// A namespace-scope variable declared __device__ or __constant__ in the user's files.
struct DeviceVariable {
  std::string_view name;
  std::size_t word;  // the token __device__ or __constant__
};
std::vector<DeviceVariable> device_variables(const TokenStream& tokens) {
  std::vector<DeviceVariable> found;
  std::vector<bool> braces;  // per open brace: true if it and all enclosing braces open namespaces
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("{")) {
      braces.push_back((braces.empty() || braces.back()) && opens_namespace(tokens, i));
    } else if (tokens[i].is("}") && !braces.empty()) {
      braces.pop_back();
    }
    const bool device = tokens[i].is("__rung_device__") || tokens[i].is("__rung_constant__") ||
                        tokens[i].is("__rung_shared_constant__");
    if (!device || (!braces.empty() && !braces.back())) continue;
    if (i != 0 && tokens[i - 1].is("__rung_managed__")) continue;
    if (tokens[i + 1].is("__rung_managed__")) continue;
    std::size_t end = i + 1;
    while (end < tokens.size() &&
           (tokens[end].kind == TokenKind::identifier || tokens[end].is("*"))) {
      ++end;
    }
    const bool variable = end < tokens.size() && end > i + 2 &&
                          tokens[end - 1].kind == TokenKind::identifier &&
                          (tokens[end].is(";") || tokens[end].is("=") || tokens[end].is("["));
    if (variable) found.push_back({tokens[end - 1].text, i});
  }
  return found;
}

/// Warns of an assignment to a variable of the device in host code, as nvcc does: on a GPU the
/// assignment changes a copy that no kernel reads.
/// Returns whether a name follows a type, `*`, `&` or `>` once in the source: as a variable only.
bool is_declared_once(const TokenStream& tokens, std::string_view name) {
  int declarations = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].text != name) continue;
    const Token& before = tokens[i - 1];
    const bool is_word = before.kind == TokenKind::identifier && !before.is("return") &&
                         !before.is("else") && !before.is("case") && !before.is("do");
    if (is_word || before.is("*") || before.is("&") || before.is("&&") || before.is(">")) {
      ++declarations;
    }
  }
  return declarations == 1;
}

void check_variables(const TokenStream& tokens, const DeviceFunction& host,
                     const std::vector<DeviceVariable>& variables) {
  for (std::size_t i = host.name + 1; i < host.close; ++i) {
    if (tokens[i].kind != TokenKind::identifier) continue;
    if (tokens[i].is("__rung_device__")) return;  // a lambda for the device
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const auto& one) { return one.name == tokens[i].text; });
    if (!known) continue;
    const Token& before = tokens[i - 1];
    // Others of its name, a list of variables or a capture may hide it.
    if (!is_declared_once(tokens, tokens[i].text) || before.is(",") || before.is("[")) return;
    const bool begins = before.is(";") || before.is("{") || before.is("}");
    std::size_t next = i + 1;
    while (next < host.close && tokens[next].is("[")) next = tokens.closing(next) + 1;
    const bool assigns = tokens[next].is("=") || tokens[next].is("+=") || tokens[next].is("-=");
    if (!begins || !assigns) continue;
    fmt::print(stderr,
               "{}: warning: a __device__ variable \"{}\" cannot be directly written in a host "
               "function: kernels on a GPU do not read what is written here; use "
               "cudaMemcpyToSymbol\n",
               to_string(tokens.line_of(i)), tokens[i].text);
    return;
  }
}

}  // namespace

void check_host_calls(const TokenStream& tokens) {
  const Functions functions(tokens);
  for (const DeviceFunction& one : functions.of_device()) check(tokens, functions, one);
  const std::vector<DeviceVariable> variables = device_variables(tokens);
  if (variables.empty()) return;
  for (const DeviceFunction& one : functions.of_host()) check_variables(tokens, one, variables);
}

void make_device_code_internal(TokenStream& tokens) {
  // Inserts behind the word, which erase_execution_spaces() erases. A variable or function that is
  // not used is no reason to warn.
  const std::string words = " static __attribute__((unused)) ";
  for (const std::size_t word : Functions(tokens).internal_functions()) {
    tokens.insert_after(word, words);
  }
  for (const DeviceVariable& one : device_variables(tokens)) {
    bool stored = !tokens[one.word].is("__rung_device__");  // not of a constant
    std::size_t begin = one.word;
    while (begin > 0 && tokens[begin - 1].kind == TokenKind::identifier) --begin;
    for (std::size_t i = begin; tokens[i].kind == TokenKind::identifier; ++i) {
      for (const char* storage : {"static", "inline", "extern", "template", "constexpr"}) {
        stored = stored || tokens[i].is(storage);
      }
    }
    const bool again = begin > 0 && (tokens[begin - 1].is(">") || tokens[begin - 1].is("]"));
    if (!stored && !again) tokens.insert_after(one.word, words);
  }
}

void erase_execution_spaces(TokenStream& tokens) {
  constexpr std::string_view words[] = {"__rung_device__", "__rung_host__", "__rung_managed__"};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (std::find(std::begin(words), std::end(words), token.text) != std::end(words)) {
      tokens.erase(i);
    }
    if (token.kind != TokenKind::verbatim) continue;
    std::string text;
    std::size_t done = 0;
    for (std::size_t at; (at = token.text.find("__rung_", done)) != std::string_view::npos;) {
      const std::string_view rest = token.text.substr(at);
      text += token.text.substr(done, at - done);
      done = at;
      for (const std::string_view word : words) {
        if (rest.starts_with(word)) done = at + word.size();
      }
      if (done == at) text += token.text.substr(done++, 1);
    }
    if (done != 0) tokens.replace(i, text.append(token.text.substr(done)));
  }
}

}  // namespace rung::emulate
