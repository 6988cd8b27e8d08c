// SPDX-License-Identifier: Apache-2.0
// Ceilings of an OpenCL device, measured by kernels of our own: the roofline of `rung bench`.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::opencl {

struct MeasuredRates {
  double copy_bytes_per_second = 0;      // bytes read plus written; working set beyond the caches
  double f32_operations_per_second = 0;  // a multiply-add is two
};

/// Measures the context's device in some tenths of a second; returns zeros in a build without
/// OpenCL.
RUNG_API MeasuredRates measure_rates(Context& context);

}  // namespace rung::opencl
