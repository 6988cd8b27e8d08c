// SPDX-License-Identifier: Apache-2.0
// From one stack to another. Internal to simt/.
#pragma once

#include <cstddef>

#include "rung/simt/fiber.hpp"

namespace rung::simt {

/// The context of a new stack that ends at `top`: a jump there calls run_fiber(starter).
void* new_context(std::byte* top, std::size_t size);

}  // namespace rung::simt
