// SPDX-License-Identifier: Apache-2.0
// Accesses to locks, semaphores, flags and tickets in the program's source.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"

namespace rung::cuda {

/// An atomic or volatile access to a flag, made directly or in a called function.
struct Signal {
  std::string object;                  // spelled as in the source, without & and index
  std::size_t token = 0;               // token of the access, or of the call that contains it
  std::size_t inner = 0;               // token of the access itself
  const Function* function = nullptr;  // function that contains the access
  bool used = false;                   // the program uses the returned value
  bool writes = false;
  bool is_volatile = false;
  bool fenced = false;  // preceded by a fence in the function that contains it
};

bool is_fence(const emulate::Token& token);

/// Returns the accesses to flags in a function, in source order.
std::vector<Signal> signals_of(const SourceTree& tree, const Function& function);

}  // namespace rung::cuda
