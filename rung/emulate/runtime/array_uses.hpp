// SPDX-License-Identifier: Apache-2.0
// Statements of one line that use an array: several, where a line holds several.
#pragma once

#include <string_view>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"

namespace rung::cuda {

/// Token behind the element that the statement assigns to plainly, as in s[t] = v; 0: it assigns to
/// none of the array.
std::size_t assigned_end(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement writes elements of the array: it assigns, updates, or calls an
/// atomic function for one.
bool writes_array(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement reads elements of the array.
bool reads_array(const SourceTree& tree, const Statement& one, std::string_view array);

/// The spots of a line whose statement mentions the array.
std::vector<SourceTree::Spot> uses_of(const SourceTree& tree, int line, std::string_view array);
/// The statement of the line that reads the array, as SourceTree::find() where only one uses it.
SourceTree::Spot reader_of(const SourceTree& tree, int line, std::string_view array);

}  // namespace rung::cuda
