// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_tbb_scan.so: what the scan peers tbb and std_parallel load.
#pragma once

#include <cstdint>

namespace rung::peer_tbb {

enum class Element : std::int32_t { f32, f64, i32, i64, u8, u16 };

/// Sums of n contiguous elements.
struct Call {
  Element element;
  const void* x;
  void* y;
  std::int64_t n;
  bool exclusive;
};

/// The module's symbols, all extern "C"; `threads` at most.
using ScanFunction = void(const Call* call, int threads);  // rung_tbb_scan, rung_std_scan
using Version = int();                                     // rung_tbb_version: 12080 for 12.8

}  // namespace rung::peer_tbb
