// SPDX-License-Identifier: Apache-2.0
// Drops findings about the masks of warp operations if the source contradicts the finding.
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using simt::record::Finding;

bool returns(const SourceTree& tree, const Statement& one) {
  return tree.mentions(one.begin, one.end, "return");
}

/// Returns the element that a statement writes, such as "out[i]"; "" if unknown.
std::string target_of(const SourceTree& tree, const Statement& one) {
  const emulate::TokenStream& tokens = tree.tokens();
  if (one.kind != Statement::Kind::simple || !tokens[one.begin + 1].is("[")) return "";
  return tree.text(one.begin, tokens.closing(one.begin + 1) + 1);
}

/// Returns true if a branch before the call writes the element and then returns.
bool writes_before_return(const SourceTree& tree, const Statement& from, const Statement& call,
                          const std::string& target, bool leaves) {
  if (from.begin >= call.begin && !from.contains(call)) return false;
  leaves = !from.contains(call) &&
           (leaves || (from.kind == Statement::Kind::branch && returns(tree, from)));
  if (leaves && target_of(tree, from) == target) return true;
  for (const auto& part : from.parts) {
    if (writes_before_return(tree, *part, call, target, leaves)) return true;
  }
  return false;
}

}  // namespace

/// Returns true if the compiler has merged equal stores in two branches: lanes that return after
/// their store then appear to continue in the other branch, past the call.
bool is_merged_store(const Finding& finding) {
  using simt::record::Kind;
  const bool of_lanes = finding.kind == Kind::warp_sync || finding.kind == Kind::barrier;
  if (!of_lanes || finding.file != finding.other_file) return false;
  if (finding.message.find("the call and go") == std::string::npos) return false;
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr) return false;
  const SourceTree::Spot call = tree->find(finding.line, "");
  const SourceTree::Spot other = tree->find(finding.other_line, "");
  if (call.statement == nullptr || other.function != call.function) return false;
  for (const Statement* one = other.statement; one != nullptr; one = one->parent) {
    const bool branch = one->kind == Statement::Kind::branch && !one->contains(*call.statement);
    if (branch && other.statement->begin < call.statement->begin && returns(*tree, *one)) {
      return true;
    }
  }
  const std::string target = target_of(*tree, *other.statement);
  return !target.empty() &&
         writes_before_return(*tree, call.function->body, *call.statement, target, false);
}

}  // namespace rung::cuda
