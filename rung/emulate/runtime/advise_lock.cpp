// SPDX-License-Identifier: Apache-2.0
// Advice about races between holders of a lock: it is freed without a fence, so that the next
// holder may not see what the last one wrote.
#include <set>
#include <utility>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/barrier_advice.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenKind;
using emulate::TokenStream;

constexpr std::size_t nowhere = ~std::size_t{0};

/// A call that acquires or frees a lock, itself or within a function of the program.
struct LockCall {
  std::string lock;          // as the source spells it
  std::size_t atomic;        // token of the atomic function
  const Function* function;  // function that makes the call
  bool fenced;               // a fence precedes it in a function of its own
};

bool is_atomic(const emulate::Token& token) {
  return token.is("atomicCAS") || token.is("atomicExch");
}
bool is_fence(const emulate::Token& token) {
  return token.is("__threadfence") || token.is("__threadfence_system") ||
         token.is("atomic_thread_fence");
}

/// Returns the text of the first argument of the call whose name is at `name`.
std::string first_argument(const SourceTree& tree, std::size_t name) {
  const TokenStream& tokens = tree.tokens();
  const std::size_t close = tokens.closing(name + 1);
  std::size_t end = name + 2;
  while (end < close && !tokens[end].is(",")) {
    end = emulate::opens(tokens[end]) ? tokens.closing(end) + 1 : end + 1;
  }
  return tree.text(name + 2, end);
}

/// Returns the call at this token; its `atomic` is `nowhere` if it concerns no lock.
LockCall lock_call(const SourceTree& tree, const Function& from, std::size_t at) {
  const TokenStream& tokens = tree.tokens();
  LockCall call{"", nowhere, &from, false};
  if (tokens[at].kind != TokenKind::identifier || !tokens[at + 1].is("(")) return call;
  if (is_atomic(tokens[at])) {
    call.lock = first_argument(tree, at);
    call.atomic = at;
    return call;
  }
  const Function* const called = tree.function(tokens[at].text);
  if (called == nullptr || called == &from) return call;
  bool fenced = false;
  for (std::size_t i = called->body.begin; i < called->body.end; ++i) {
    fenced = fenced || is_fence(tokens[i]);
    if (!is_atomic(tokens[i])) continue;
    const bool member = tokens[at - 1].is(".") || tokens[at - 1].is("->");
    return {member ? std::string(tokens[at - 2].text) : first_argument(tree, at), i, called,
            fenced};
  }
  return call;
}

/// Returns the innermost statement that holds the token.
const Statement& statement_at(const Function& function, std::size_t token) {
  const Statement* one = &function.body;
  for (const Statement* inner = one; inner != nullptr;) {
    one = inner;
    inner = nullptr;
    for (const auto& part : one->parts) {
      if (part->begin <= token && token < part->end) inner = part.get();
    }
  }
  return *one;
}

}  // namespace

bool advise_lock(simt::record::Finding& race, const Pair& pair) {
  const SourceTree& tree = *pair.tree;
  const TokenStream& tokens = tree.tokens();
  const Statement& body = pair.function->body;
  std::set<std::string> held;
  for (std::size_t i = body.begin; i < pair.first->begin; ++i) {
    const LockCall call = lock_call(tree, *pair.function, i);
    if (call.atomic != nowhere) held.insert(call.lock);
  }
  for (std::size_t i = pair.second->end; i < body.end && !held.empty(); ++i) {
    if (is_fence(tokens[i])) return false;
    const LockCall call = lock_call(tree, *pair.function, i);
    if (call.atomic == nowhere || !held.contains(call.lock)) continue;
    if (call.fenced) return false;
    const Statement& release = statement_at(*call.function, call.atomic);
    const int line = tree.line(release.begin);
    race.advice =
        "put __threadfence() before line " + std::to_string(line) +
        ", which frees the lock: without it the next holder may not see what this one wrote";
    const bool own_line = tokens[release.begin].space.find('\n') != std::string_view::npos;
    const bool in_block =
        release.parent != nullptr && release.parent->kind == Statement::Kind::block;
    if (own_line && in_block) {
      race.fixes.push_back({"fence", tree.file(), line, "", "__threadfence();"});
    } else {
      race.fixes.push_back(
          replacement(tree, "fence", release, "{ __threadfence(); " + tree.text(release) + " }"));
    }
    return true;
  }
  return false;
}

}  // namespace rung::cuda
