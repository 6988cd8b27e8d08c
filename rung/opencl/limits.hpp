// SPDX-License-Identifier: Apache-2.0
// Limits of an OpenCL device, and work-group sizes within them.
#pragma once

#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::opencl {

struct Limits {
  std::size_t group_items = 1;     // work-items per group
  std::size_t side_items = 1;      // the smaller of the limits along the first and second axis
  std::size_t local_bytes = 0;     // per group
  std::size_t largest_buffer = 0;  // bytes
  int compute_units = 1;
};

/// Returns the limits of the context's device; typical limits for other backends.
RUNG_API const Limits& limits(const Context& context);

/// Returns the largest side, `most` halved as often as needed, such that groups of side x side
/// work-items are allowed and `arrays` arrays of side x (side + 1) floats fit in local memory.
RUNG_API int largest_side(const Context& context, int most, int arrays);

/// Returns the largest allowed number of work-items of a one-dimensional group: `most`, halved as
/// often as needed.
RUNG_API int largest_group(const Context& context, int most);

}  // namespace rung::opencl
