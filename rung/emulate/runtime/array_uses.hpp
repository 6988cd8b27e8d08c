// SPDX-License-Identifier: Apache-2.0
// Finds the statements of one line that use an array.
#pragma once

#include <string_view>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"

namespace rung::cuda {

/// Returns the token after the element that the statement assigns to plainly, as in s[t] = v.
/// Returns 0 where it assigns to none of the array.
std::size_t assigned_end(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement writes elements of the array: it assigns, updates, or calls an
/// atomic function for one.
bool writes_array(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement reads elements of the array.
bool reads_array(const SourceTree& tree, const Statement& one, std::string_view array);

/// Returns the spots of a line whose statement mentions the array.
std::vector<SourceTree::Spot> uses_of(const SourceTree& tree, int line, std::string_view array);
/// Returns the statement of the line that reads the array; the one of SourceTree::find() where only
/// one uses it.
SourceTree::Spot reader_of(const SourceTree& tree, int line, std::string_view array);

}  // namespace rung::cuda
