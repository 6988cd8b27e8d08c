// SPDX-License-Identifier: Apache-2.0
// Finds accesses to flags: atomic functions, and volatile variables or accesses.
#include "rung/emulate/runtime/signals.hpp"

#include <utility>

#include "rung/emulate/brackets.hpp"

namespace rung::cuda {
namespace {

using emulate::Token;
using emulate::TokenKind;
using emulate::TokenStream;

bool is_atomic(const Token& token) {
  return token.kind == TokenKind::identifier && token.text.starts_with("atomic") &&
         token.text.size() > 6 && token.text[6] >= 'A' && token.text[6] <= 'Z';
}

/// Returns the flag that an expression accesses: "flags" for &flags[i], "q->head" for &q->head.
std::string object_of(const TokenStream& tokens, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    const Token& token = tokens[i];
    if (token.is("(") && text.empty() && tokens.closing(i) + 1 < end) {
      i = tokens.closing(i);  // a cast
    } else if (token.is_identifier() || token.is("->") || token.is(".")) {
      text += token.text;
    } else if (!text.empty()) {
      break;
    }
  }
  return text;
}

/// Search for the accesses to flags in a function.
class Signals {
 public:
  Signals(const SourceTree& tree, const Function& function)
      : tree_(tree), tokens_(tree.tokens()), function_(function) {
    find_volatile();
    for (std::size_t i = function.body.begin; i < function.body.end; ++i) add(i);
  }
  std::vector<Signal> list;

 private:
  void find_volatile() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!tokens_[i].is("volatile")) continue;
      if (i != 0 && (tokens_[i - 1].is("asm") || tokens_[i - 1].is("__asm__"))) continue;
      std::size_t name = i + 1;
      while (tokens_[name].is_identifier() || tokens_[name].is("*")) ++name;
      if (tokens_[name - 1].is_identifier()) volatile_.insert(std::string(tokens_[name - 1].text));
    }
  }
  void add(std::size_t at) {
    const Token& token = tokens_[at];
    if (token.kind != TokenKind::identifier) return;
    if (is_atomic(token) && tokens_[at + 1].is("(")) {
      std::size_t end = at + 2;
      const std::size_t close = tokens_.closing(at + 1);
      while (end < close && !tokens_[end].is(",")) {
        end = emulate::opens(tokens_[end]) ? tokens_.closing(end) + 1 : end + 1;
      }
      list.push_back({object_of(tokens_, at + 2, end), at, at, &function_, is_used(function_, at),
                      true, false, false});
    } else if (volatile_.contains(token.text)) {
      add_volatile(at, std::string(token.text));
    } else if (token.is("volatile") && tokens_[at - 1].is("(")) {  // *(volatile int*)flag
      std::size_t open = at - 1;
      while (!tokens_[open].is("(")) --open;
      const std::size_t name = tokens_.closing(open) + 1;
      const std::size_t first = tokens_[name].is("&") ? name + 1 : name;
      if (tokens_[first].is_identifier()) add_volatile(first, std::string(tokens_[first].text));
    } else {
      add_call(at);
    }
  }
  void add_volatile(std::size_t at, std::string name) {
    const Statement& one = SourceTree::statement_at(function_, at);
    std::size_t end = at + 1;
    while (tokens_[end].is(")")) ++end;
    if (tokens_[end].is("[")) end = tokens_.closing(end) + 1;
    const bool simple = one.kind == Statement::Kind::simple;
    const bool stores = simple && tokens_[end].is("=") && !tokens_[end + 1].is("=");
    list.push_back({std::move(name), at, at, &function_, !stores, stores, true, false});
  }
  /// Adds the first atomic access in the function that is called at this token.
  void add_call(std::size_t at) {
    const Function* const called = tree_.called_at(at);
    if (called == nullptr || called == &function_) return;
    bool fenced = false;
    for (std::size_t i = called->body.begin; i < called->body.end; ++i) {
      fenced = fenced || is_fence(tokens_[i]);
      if (!is_atomic(tokens_[i]) || !tokens_[i + 1].is("(")) continue;
      const bool member = tokens_[at - 1].is(".") || tokens_[at - 1].is("->");
      std::size_t open = at + 1;
      while (!tokens_[open].is("(")) ++open;
      std::string object = member ? std::string(tokens_[at - 2].text)
                                  : object_of(tokens_, open + 1, tokens_.closing(open));
      list.push_back({std::move(object), at, i, called, is_used(*called, i), true, false, fenced});
      return;
    }
  }
  /// Returns true if the value is used: the call is not a separate statement.
  [[nodiscard]] bool is_used(const Function& function, std::size_t call) const {
    const Statement& one = SourceTree::statement_at(function, call);
    return one.kind != Statement::Kind::simple || one.begin != call;
  }

  const SourceTree& tree_;
  const TokenStream& tokens_;
  const Function& function_;
  Names volatile_;
};

}  // namespace

bool is_fence(const Token& token) {
  return token.is("__threadfence") || token.is("__threadfence_system") ||
         token.is("atomic_thread_fence");
}

std::vector<Signal> signals_of(const SourceTree& tree, const Function& function) {
  return Signals(tree, function).list;
}

}  // namespace rung::cuda
