// SPDX-License-Identifier: Apache-2.0
// Requirements and loops of scan's CPU peers.
#pragma once

#include "rung/ops/scan/op/scan.hpp"

namespace rung::scan_peer {

inline Support supports(const Scan::Args& args, const Context&) {
  if (args.operation != ScanOperation::sum) return unsupported("the peer is called for sums");
  if (args.has_segments()) return unsupported("the peer knows no segments");
  if (!args.is_contiguous()) return unsupported("the peer takes contiguous lines, forward");
  switch (args.x.dtype) {
    case DType::f32:
    case DType::f64:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
      return supported;
    default:
      return unsupported("the peer is called for f32, f64, i32, i64, u8 and u16");
  }
}

/// Calls f(x, y, n) for each line; x and y point to bytes.
template <class F>
void for_each_line(const Scan::Args& args, const F& f) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  if (args.y.empty()) return;
  for (std::int64_t line = 0; line < args.lines.size(); ++line) {
    f(static_cast<const std::byte*>(args.x.data) + args.lines.offset<0>(line) * size,
      static_cast<std::byte*>(args.y.data) + args.lines.offset<1>(line) * size, args.length());
  }
}

}  // namespace rung::scan_peer
