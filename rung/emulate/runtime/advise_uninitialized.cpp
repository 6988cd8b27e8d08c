// SPDX-License-Identifier: Apache-2.0
// Advice on reads of uninitialized memory: a load that some threads skip.
#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/array_uses.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;

/// Returns true if the condition contains a uniform variable, which is probably a size. Conditions
/// on thread indices and numbers alone divide work among threads.
bool is_bound(const SourceTree& tree, const Function& function, const Statement& branch) {
  for (std::size_t i = branch.header_begin; i < branch.header_end; ++i) {
    const emulate::Token& token = tree.tokens()[i];
    if (!token.is_identifier() || tree.tokens()[i - 1].is(".")) continue;
    const bool index = token.is("blockIdx") || token.is("blockDim") || token.is("gridDim");
    if (!index && !function.varying.contains(token.text)) return true;
  }
  return false;
}

/// Returns the last statement before the read that writes the array in a branch without `else`
/// whose condition contains a size; null if there is none.
const Statement* guarded_load(const SourceTree& tree, const Function& function,
                              const Statement& from, const Statement& read,
                              std::string_view array) {
  const Statement* found = nullptr;
  for (const auto& part : from.parts) {
    if (part->begin >= read.begin && !part->contains(read)) break;
    if (part.get() != &read && assigned_end(tree, *part, array) != 0) {
      const Statement* branch = part->parent;
      if (branch != nullptr && branch->kind == Statement::Kind::block) {
        branch = branch->parent;
      }
      const bool alone = branch != nullptr && branch->kind == Statement::Kind::branch &&
                         branch->parts.size() == 1 && !branch->contains(read) &&
                         tree.tokens()[branch->begin].is("if") && is_bound(tree, function, *branch);
      if (alone) found = part.get();
    }
    const Statement* const inner = guarded_load(tree, function, *part, read, array);
    if (inner != nullptr) found = inner;
  }
  return found;
}

void advise_else(Finding& finding, const SourceTree& tree, const Statement& load) {
  const Statement* branch = load.parent;
  if (branch->kind == Statement::Kind::block) branch = branch->parent;
  const std::string element = tree.text(load.begin, assigned_end(tree, load, finding.object.name));
  const std::string condition = tree.text(branch->header_begin, branch->header_end);
  const std::string store = "else " + element + " = 0;";
  finding.advice = joined({"write the element in the other case, too: add `", store,
                           "` to the if in line ", std::to_string(tree.line(branch->begin)),
                           "; threads for which ", condition, " is false leave it as it was"});
  finding.fixes.push_back(replacement(tree, "else", *branch, tree.text(*branch) + " " + store));
}

}  // namespace

void advise_uninitialized(Finding& finding) {
  if (finding.space == record::Space::global) {
    advise_copy(finding);
    return;
  }
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr || finding.object.name.empty()) return;
  const SourceTree::Spot spot = reader_of(*tree, finding.line, finding.object.name);
  if (spot.statement == nullptr) return;
  const Statement* const load = guarded_load(*tree, *spot.function, spot.function->body,
                                             *spot.statement, finding.object.name);
  if (load != nullptr) {
    advise_else(finding, *tree, *load);
    return;
  }
  const record::Object& object = finding.object;
  const bool updates = update_of(*tree, *spot.statement, object.name, true).has_value() ||
                       tree->tokens()[spot.statement->begin].text.starts_with("atomic");
  if (!updates || object.element_bytes == 0 || object.extents.size() != 1) return;
  const std::string count = std::to_string(object.bytes / object.element_bytes);
  finding.advice = joined({"set ", object.name, " to its first value before it is updated: `for (",
                           "int i = threadIdx.x; i < ", count, "; i += blockDim.x) ", object.name,
                           "[i] = 0; __syncthreads();`"});
}

}  // namespace rung::cuda
