// SPDX-License-Identifier: Apache-2.0
// Advice on a barrier in both branches of a divergent `if`.
#include <string>
#include <utility>

#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using simt::record::Finding;

/// Returns the innermost branch statement around both statements if it is an `if` with an `else`,
/// which thus separates them; null otherwise.
const Statement* parting_branch(const Statement& one, const Statement& other) {
  const Statement* common = one.parent;
  while (common != nullptr && !common->contains(other)) common = common->parent;
  const bool parts =
      common != nullptr && common->kind == Statement::Kind::branch && common->parts.size() == 2;
  return parts ? common : nullptr;
}

/// Returns true if the statement is the last one in its branch.
bool is_last(const Statement& one, const Statement& branch) {
  if (one.parent == &branch) return true;
  return one.parent->parent == &branch && one.parent->parts.back().get() == &one;
}

/// Advises a single barrier after the `if` instead of the barriers at the ends of its branches.
void add_fixes(Finding& finding, const SourceTree& tree, const Statement& branch,
               const Statement& one, const Statement& other) {
  const std::string barrier = tree.text(one);
  const std::size_t next = branch.end;
  const bool begins_line = tree.tokens()[next].space.find('\n') != std::string_view::npos;
  if (barrier != tree.text(other) || tree.line(one.begin) == tree.line(other.begin) ||
      !begins_line) {
    return;
  }
  for (const Statement* gone : {&one, &other}) {
    finding.fixes.push_back(
        replacement(tree, "barrier", *gone, gone->parent == &branch ? ";" : ""));
  }
  finding.fixes.push_back({"barrier", tree.file(), tree.line(next), "", barrier});
}

}  // namespace

void advise_split(Finding& finding) {
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr || finding.other_line == 0 || finding.file != finding.other_file) return;
  const Statement* const one = tree->find(finding.line, "__syncthreads").statement;
  const Statement* const other = tree->find(finding.other_line, "__syncthreads").statement;
  if (one == nullptr || other == nullptr) return;
  const Statement* const branch = parting_branch(*one, *other);
  if (branch == nullptr) return;
  const std::string line = std::to_string(tree->line(branch->begin));
  if (is_last(*one, *branch) && is_last(*other, *branch)) {
    finding.advice = "put one barrier behind the if of line " + line +
                     ", in place of those at the end of its branches";
    add_fixes(finding, *tree, *branch, *one, *other);
  } else {
    finding.advice = "split the if of line " + line +
                     " in two, with one barrier between them that all lanes come to";
  }
}

}  // namespace rung::cuda
