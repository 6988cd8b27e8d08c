// SPDX-License-Identifier: Apache-2.0
// Limits of an OpenCL device's work-groups, and the sizes that rungs choose by them.
#pragma once

#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::opencl {

struct Limits {
  std::size_t group_items = 1;  // work-items of a group
  std::size_t side_items = 1;   // along the first or second axis of a group, whichever is less
  std::size_t local_bytes = 0;  // of a group
  std::size_t largest_buffer = 0;
  int compute_units = 1;
};

/// Returns the limits of the context's device, or usual ones if it is no OpenCL device.
RUNG_API const Limits& limits(const Context& context);

/// The largest power of two up to `most` so that groups of side x side work-items are allowed that
/// keep `arrays` arrays of side x (side + 1) floats in local memory.
RUNG_API int largest_side(const Context& context, int most, int arrays);

/// The largest power of two up to `most` that is allowed as the number of work-items of a group.
RUNG_API int largest_group(const Context& context, int most);

}  // namespace rung::opencl
