// SPDX-License-Identifier: Apache-2.0
// Distinguishes statements of a line that read an array from those that write it.
#include "rung/emulate/runtime/array_uses.hpp"

#include <algorithm>

#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenStream;

bool is_simple(const Statement& one) { return one.kind == Statement::Kind::simple; }

}  // namespace

std::size_t assigned_end(const SourceTree& tree, const Statement& one, std::string_view array) {
  const TokenStream& tokens = tree.tokens();
  if (!is_simple(one) || !tokens[one.begin].is(array)) return 0;
  std::size_t end = one.begin + 1;
  while (tokens[end].is("[")) end = tokens.closing(end) + 1;
  const bool assigns = tokens[end].is("=") && !tokens[end + 1].is("=");
  return assigns && end != one.begin + 1 ? end : 0;
}

bool writes_array(const SourceTree& tree, const Statement& one, std::string_view array) {
  if (!is_simple(one)) return false;
  if (assigned_end(tree, one, array) != 0) return true;
  if (update_of(tree, one, std::string(array), true).has_value()) return true;
  return tree.tokens()[one.begin].text.starts_with("atomic");
}

bool reads_array(const SourceTree& tree, const Statement& one, std::string_view array) {
  if (!is_simple(one)) return tree.mentions(one.header_begin, one.header_end, array);
  const std::size_t target = assigned_end(tree, one, array);
  // Ignores indices in the target's brackets, which are read but rarely from the same array.
  return tree.mentions(target != 0 ? target : one.begin, one.end, array);
}

std::vector<SourceTree::Spot> uses_of(const SourceTree& tree, int line, std::string_view array) {
  std::vector<SourceTree::Spot> found = tree.spots(line);
  std::erase_if(found, [&](const SourceTree::Spot& spot) {
    const Statement& one = *spot.statement;
    const bool simple = is_simple(one);
    return !tree.mentions(simple ? one.begin : one.header_begin, simple ? one.end : one.header_end,
                          array) ||
           (simple && tree.mentions(one.begin, one.end, "__shared__"));
  });
  return found;
}

SourceTree::Spot reader_of(const SourceTree& tree, int line, std::string_view array) {
  const std::vector<SourceTree::Spot> uses = uses_of(tree, line, array);
  if (uses.size() > 1) {
    const auto reads = [&](const SourceTree::Spot& spot) {
      return reads_array(tree, *spot.statement, array);
    };
    const auto found = std::find_if(uses.begin(), uses.end(), reads);
    if (found != uses.end()) return *found;
  }
  return tree.find(line, array);
}

}  // namespace rung::cuda
