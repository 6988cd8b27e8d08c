// SPDX-License-Identifier: Apache-2.0
// Finds the access in the program's source to which a finding about an index refers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {

/// An access array[index]. In array[a][b], `begin` and `end` are the brackets of the wrong index.
struct IndexAccess {
  SourceTree::Spot spot;
  std::size_t name = 0, begin = 0, end = 0;

  [[nodiscard]] TokenRange index() const { return {begin + 1, end}; }
};

/// Properties of the wrong access, observed at run time.
struct WrongIndex {
  std::string array;       // "": unknown
  std::size_t inner = 1;   // number of the wrong bracket, counted from the last
  std::int64_t index = 0;  // in elements of the allocation or array
  std::int64_t count = 0;  // number of elements
  std::optional<bool> writes;

  [[nodiscard]] bool before() const { return index < 0; }
};

/// Returns the token at which the function declares an array of this name; 0 if it does not.
std::size_t declaration_of(const SourceTree& tree, const Function& function, std::string_view name);

/// Returns the other accesses to the array in the statement of `access`.
std::vector<IndexAccess> accesses_beside(const SourceTree& tree, const IndexAccess& access,
                                         const WrongIndex& wrong);

/// Returns the failing access in the finding's line: the access whose index has the observed value,
/// as far as values are known, else the most likely one; nullopt if the line has no access.
std::optional<IndexAccess> find_access(const SourceTree& tree, const simt::record::Finding& finding,
                                       const WrongIndex& wrong);

}  // namespace rung::cuda
