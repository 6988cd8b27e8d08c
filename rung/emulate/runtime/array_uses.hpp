// SPDX-License-Identifier: Apache-2.0
// Finds the statements in a line that use an array.
#pragma once

#include <string_view>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"

namespace rung::cuda {

/// Returns the token after the array element to which the statement assigns (s[t] in s[t] = v); 0
/// if it assigns to no element of the array.
std::size_t assigned_end(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement writes elements of the array: by an assignment, an update, or an
/// atomic function.
bool writes_array(const SourceTree& tree, const Statement& one, std::string_view array);
/// Returns true if the statement reads elements of the array.
bool reads_array(const SourceTree& tree, const Statement& one, std::string_view array);

/// Returns the statements of a line that mention the array.
std::vector<SourceTree::Spot> uses_of(const SourceTree& tree, int line, std::string_view array);
/// Returns the first statement of the line that reads the array; the result of SourceTree::find()
/// if fewer than two statements use the array or none reads it.
SourceTree::Spot reader_of(const SourceTree& tree, int line, std::string_view array);

}  // namespace rung::cuda
