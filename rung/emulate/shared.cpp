// SPDX-License-Identifier: Apache-2.0
// Rewrites shared variables: each variable of `__shared__ float a[8], b;` in a function becomes a
// typedef and a reference into the running block's shared memory.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/emulate/brackets.hpp"
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {

namespace {

/// Stack of open braces; true for a brace that belongs to a function body.
class Scopes {
 public:
  void see(const TokenStream& tokens, std::size_t i) {
    if (tokens[i].is("{")) {
      in_body_.push_back(in_function() || opens_body(tokens, i));
    } else if (tokens[i].is("}") && !in_body_.empty()) {
      in_body_.pop_back();
    }
  }
  [[nodiscard]] bool in_function() const { return !in_body_.empty() && in_body_.back(); }

 private:
  std::vector<bool> in_body_;
};

/// Returns the first specifier of the declaration that contains token `at`.
std::size_t first_of_declaration(const TokenStream& tokens, std::size_t at) {
  std::size_t i = at;
  while (i > 0) {
    const Token& token = tokens[i - 1];
    if (token.kind == TokenKind::identifier || token.is("::") || token.is("*")) {
      --i;
    } else if (token.is(")")) {
      const std::size_t open = tokens.opening(i - 1);
      if (open == 0 || open >= tokens.size()) break;
      if (!tokens[open - 1].is("alignas") && !tokens[open - 1].is("__attribute__")) break;
      i = open - 1;
    } else {
      break;
    }
  }
  return i;
}

struct Declarator {
  std::size_t name;
  bool unbounded;  // name[]: dynamic shared memory
};

/// Returns the names declared by tokens [begin, semicolon).
std::vector<Declarator> declarators(const TokenStream& tokens, std::size_t begin,
                                    std::size_t semicolon) {
  std::vector<Declarator> found;
  std::size_t candidate = tokens.size();
  int angles = 0;
  bool named = false;  // the current declarator has a name
  for (std::size_t i = begin; i <= semicolon; ++i) {
    const Token& token = tokens[i];
    if (token.is("<") && i > begin && tokens[i - 1].kind == TokenKind::identifier && !named) {
      ++angles;
    } else if (angles > 0 && token.is(">")) {
      --angles;
    } else if (angles > 0 && token.is(">>")) {
      angles -= 2;
    } else if (angles > 0) {
      if (token.is("(")) i = tokens.closing(i);
    } else if (token.is("[") || token.is(",") || token.is("=") || i == semicolon) {
      if (!named && candidate < tokens.size()) {
        found.push_back({candidate, token.is("[") && tokens[i + 1].is("]")});
        named = true;
      }
      if (token.is("[")) i = tokens.closing(i);
      if (token.is(",")) {
        named = false;
        candidate = tokens.size();
      }
    } else if (token.is("(") || token.is("{")) {
      i = tokens.closing(i);
    } else if (token.kind == TokenKind::identifier) {
      candidate = i;
    }
  }
  return found;
}

/// Returns the semicolon that ends the declaration at `at`.
std::size_t semicolon_of(const TokenStream& tokens, std::size_t at) {
  while (at < tokens.size() && !tokens[at].is(";")) {
    const bool open = tokens[at].is("(") || tokens[at].is("[") || tokens[at].is("{");
    at = open ? tokens.closing(at) + 1 : at + 1;
  }
  return at;
}

/// Rejects `extern __shared__ s[];`, about which g++'s message would refer to the rewritten source.
void require_type(const TokenStream& tokens, std::size_t begin, const Declarator& one) {
  constexpr std::string_view no_types[] = {"extern",   "static",        "__rung_shared__", "const",
                                           "volatile", "__attribute__", "alignas"};
  for (std::size_t i = begin; i < one.name; ++i) {
    if (opens(tokens[i])) {
      i = tokens.closing(i);
      continue;
    }
    if (tokens[i].kind == TokenKind::identifier &&
        std::find(std::begin(no_types), std::end(no_types), tokens[i].text) == std::end(no_types)) {
      return;
    }
  }
  const std::string_view name = tokens[one.name].text;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: error: the __shared__ variable {} has no type: write one before its "
                          "name, as in {}__shared__ float {}{}",
                          to_string(tokens.line_of(one.name)), name, one.unbounded ? "extern " : "",
                          name, one.unbounded ? "[];" : ""));
}

void rewrite_declaration(TokenStream& tokens, std::size_t word, bool in_function) {
  const std::size_t begin = first_of_declaration(tokens, word);
  const std::size_t semicolon = semicolon_of(tokens, word);
  if (semicolon >= tokens.size()) return;
  const std::vector<Declarator> names = declarators(tokens, begin, semicolon);
  if (names.empty()) return;
  require_type(tokens, begin, names.front());

  const bool dynamic = names.front().unbounded;
  if (!in_function && !dynamic) {
    // A file-scope variable becomes thread_local, which is correct only if the blocks of an OS
    // thread run one after another.
    tokens.replace(word, tokens[word - 1].is("static") ? "thread_local" : "static thread_local");
    return;
  }
  for (std::size_t i = begin; i < semicolon; ++i) {
    const Token& token = tokens[i];
    if (token.is("__rung_shared__") || token.is("extern") || token.is("static")) {
      tokens.erase(i);
    } else if (token.is("alignas") && tokens[i + 1].is("(")) {
      // Typedefs accept the attribute, but not alignas.
      tokens.replace(i, "__attribute__((aligned");
      tokens.insert_after(tokens.closing(i + 1), "))");
    }
  }
  std::string references;
  for (const Declarator& one : names) {
    const std::string name(tokens[one.name].text);
    const std::string type = "rung_type_of_" + name;
    tokens.replace(one.name, type);
    if (!in_function) {
      references += fmt::format(
          " extern __thread ::rung::cuda::Decayed<{}> const {} __asm__(\"rung_simt_shared\") "
          "__attribute__((tls_model(\"initial-exec\")));",
          type, name);
    } else if (one.unbounded) {
      references += fmt::format(" {0}& {1} = ::rung::cuda::dynamic_shared<{0}>();", type, name);
    } else {
      references += fmt::format(
          " static_assert(sizeof({0}) <= 49152, \"{1} has more bytes than all static shared memory "
          "of a kernel may have, 48 KiB: make it dynamic, extern __shared__\");"
          " struct rung_shared_{1} {{}}; {0}& {1} = ::rung::cuda::shared_variable<{0}, "
          "rung_shared_{1}, alignof({0})>();",
          type, name);
    }
  }
  tokens.insert_before(begin, "typedef ");
  tokens.insert_after(semicolon, references);
}

}  // namespace

void rewrite_shared(TokenStream& tokens) {
  Scopes scopes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    scopes.see(tokens, i);
    if (tokens[i].is("__rung_shared__")) rewrite_declaration(tokens, i, scopes.in_function());
  }
}

namespace {

/// Registers namespace-scope constant variables, which kernels may only read.
void register_constants(TokenStream& tokens, std::size_t begin) {
  if (begin > 0 && tokens[begin - 1].is(">")) return;  // templates declare many variables or none
  const std::size_t semicolon = semicolon_of(tokens, begin);
  if (semicolon >= tokens.size()) return;
  for (const Declarator& one : declarators(tokens, begin, semicolon)) {
    if (tokens[one.name - 1].is("::")) continue;
    tokens.insert_after(semicolon, fmt::format(" static const ::rung::cuda::ConstantVariable "
                                               "rung_constant_{0}(&{0}, sizeof({0}), \"{0}\");",
                                               tokens[one.name].text));
  }
}

}  // namespace

void rewrite_constants(TokenStream& tokens) {
  std::vector<std::size_t> words;
  bool across_files = false;
  std::vector<bool> braces;  // per open brace: true if it and all enclosing braces open namespaces
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("{")) {
      braces.push_back((braces.empty() || braces.back()) && opens_namespace(tokens, i));
    } else if (tokens[i].is("}") && !braces.empty()) {
      braces.pop_back();
    }
    const bool relocatable = tokens[i].is("__rung_shared_constant__");
    if (!relocatable && !tokens[i].is("__rung_constant__")) continue;
    across_files = across_files || relocatable;
    const std::size_t begin = first_of_declaration(tokens, i);
    bool local = true;  // internal linkage, unless a constant is declared extern
    bool defined = braces.empty() || braces.back();
    for (std::size_t at = begin; at < tokens.size(); ++at) {
      const Token& token = tokens[at];
      if (token.is(";") || token.is("=") || token.is("[") || token.is("{")) break;
      if (token.is("extern")) {
        across_files = true;
        defined = false;
      }
      if (token.is("extern") || token.is("static") || token.is("inline")) local = false;
    }
    tokens.erase(i);
    if (defined) register_constants(tokens, begin);
    if (local) words.push_back(i);
  }
  if (across_files) return;
  for (const std::size_t i : words) tokens.replace(i, "static");
}

namespace {

std::string rewrite_all(const std::string& preprocessed, bool whole,
                        void (*launches)(TokenStream&)) {
  TokenStream tokens(preprocessed);
  check_host_calls(tokens);
  if (whole) make_device_code_internal(tokens);
  erase_execution_spaces(tokens);
  rewrite_assembly(tokens);
  rewrite_kernels(tokens);
  rewrite_shared(tokens);
  rewrite_constants(tokens);
  rewrite_ignored_errors(tokens);
  rewrite_memory_calls(tokens);
  launches(tokens);
  return tokens.text(0, tokens.size());
}

}  // namespace

std::string rewrite(const std::string& preprocessed, bool whole) {
  return rewrite_all(preprocessed, whole, rewrite_launches);
}
std::string rewrite_for_messages(const std::string& preprocessed) {
  return rewrite_all(preprocessed, false, rewrite_launches_as_calls);
}

}  // namespace rung::emulate
