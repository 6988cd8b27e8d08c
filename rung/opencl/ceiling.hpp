// SPDX-License-Identifier: Apache-2.0
// An OpenCL device's ceilings, by kernels of our own: what `rung bench` holds its rungs against.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::opencl {

struct MeasuredRates {
  double copy_bytes_per_second = 0;      // bytes read plus bytes written, beyond the caches
  double f32_operations_per_second = 0;  // a multiply-add is two
};

/// Measures the context's device in some tenths of a second. Zeros in a build without OpenCL.
RUNG_API MeasuredRates measure_rates(Context& context);

}  // namespace rung::opencl
