// SPDX-License-Identifier: Apache-2.0
// Announces the guards around tensors of Inputs on the simulated GPU to the code that checks
// accesses. Core does not depend on the simulator, so the workbench sets the receiver.
#pragma once

#include <cstddef>
#include <string>

#include "rung/core/export.hpp"

namespace rung::detail {

/// Receives the memory of a tensor, the bytes at its beginning and its end that no kernel may
/// access, and a description of the tensor.
using GuardReceiver = void (*)(const void* memory, std::size_t before, std::size_t behind,
                               std::string name);

/// Sets the receiver for all tensors made from now on; null: none.
RUNG_API void receive_guards(GuardReceiver receiver);

}  // namespace rung::detail
