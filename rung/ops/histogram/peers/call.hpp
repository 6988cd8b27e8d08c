// SPDX-License-Identifier: Apache-2.0
// Requirements of histogram's peers. No library has a histogram for CPUs; these peers are the loops
// that users write, with the libraries' means to divide work.
#pragma once

#include "rung/ops/histogram/op/bins.hpp"

namespace rung::histogram_peer {

/// Returns supported for bytes that are their own bins and for f32 over equal widths: x contiguous,
/// i32 counts.
inline Support supports_plain(const Histogram::Args& args) {
  if (!args.dense()) return unsupported("x is not contiguous");
  if (args.accumulate) return unsupported("does not accumulate");
  if (args.counts.dtype != DType::i32 || (args.counts.strides[0] != 1 && args.bins() > 1)) {
    return unsupported("counts is not contiguous i32");
  }
  if (!args.even()) return unsupported("only bins of equal width");
  if (args.x.dtype == DType::u8) {
    const bool own_bins = args.bins() == 256 && args.low == 0 && args.high == 256;
    return own_bins ? supported : unsupported("only 256 bins of u8");
  }
  return args.x.dtype == DType::f32 ? supported : unsupported("only u8 and f32");
}

}  // namespace rung::histogram_peer
