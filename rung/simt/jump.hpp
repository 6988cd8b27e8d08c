// SPDX-License-Identifier: Apache-2.0
// Context switch between stacks. Internal to simt/.
#pragma once

#include <cstddef>

#include "rung/simt/fiber.hpp"

namespace rung::simt {

/// Creates the context of a new stack that ends at `top`: resuming it calls run_fiber(starter).
void* new_context(std::byte* top, std::size_t size);

}  // namespace rung::simt
