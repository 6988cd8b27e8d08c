// SPDX-License-Identifier: Apache-2.0
// Accesses to locks, semaphores, flags and tickets in the program's source.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"

namespace rung::cuda {

/// An atomic or volatile access to a flag, itself or within a function of the program.
struct Signal {
  std::string object;                  // as the source spells it, without & and index
  std::size_t token = 0;               // of the access or of the call that makes it
  std::size_t inner = 0;               // of the access
  const Function* function = nullptr;  // function that makes the access
  bool used = false;                   // the program goes by the value
  bool writes = false;
  bool is_volatile = false;
  bool fenced = false;  // a fence precedes it in a function of its own
};

bool is_fence(const emulate::Token& token);

/// Returns the accesses to flags in a function, in the order of the source.
std::vector<Signal> signals_of(const SourceTree& tree, const Function& function);

}  // namespace rung::cuda
