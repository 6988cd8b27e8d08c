// SPDX-License-Identifier: Apache-2.0
// Code of the first four rungs, in which one block scans a line that fits it.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/scan.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// Returns supported for lines of up to `most` elements of f32 or i32, without segments. These
/// rungs are for teaching: two types and all operations suffice.
template <int most>
Support supports_block(const Scan::Args& args, const Context&) {
  if (args.has_segments()) return unsupported("no segments");
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::i32) {
    return unsupported("f32 and i32 only");
  }
  if (args.length() > most) return unsupported("lines must fit one block");
  return supported;
}

/// Calls launch_kernel(lines, operation, identity, blocks), with a block per line.
template <class F>
void launch_blocks(const Scan::Args& args, const F& launch_kernel) {
  if (args.y.empty()) return;
  visit<float, std::int32_t>(args.x.dtype, [&]<class T>() {
    const std::int64_t blocks = smaller<std::int64_t>(args.lines.size(), 0x7fffffff);
    launch_kernel(lines_of<T>(args), ScanAny{args.operation}, scan_identity<T>(args.operation),
                  blocks);
  });
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
