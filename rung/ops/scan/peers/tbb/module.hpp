// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_tbb_scan.so, which the scan peers tbb and std_parallel load.
#pragma once

#include <cstdint>

namespace rung::peer_tbb {

enum class Element : std::int32_t { f32, f64, i32, i64, u8, u16 };

/// Arguments: a sum over n contiguous elements.
struct TbbScanArguments {
  Element element;
  const void* x;
  void* y;
  std::int64_t n;
  bool exclusive;
};

/// Types of the module's symbols, all extern "C". `threads`: maximum number of threads.
using ScanFunction = void(const TbbScanArguments* call,
                          int threads);  // rung_tbb_scan, rung_std_scan
using Version = int();                   // rung_tbb_version: 12080 for 12.8

}  // namespace rung::peer_tbb
