// SPDX-License-Identifier: Apache-2.0
// Module of the peers tbb and std_parallel; tbb/module.hpp has its interface.
#pragma once

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/scan/peers/call.hpp"
#include "rung/ops/scan/peers/tbb/module.hpp"
#include "rung/peers/module.hpp"

namespace rung::scan_peer {

struct Tbb {
  DynamicLibrary library{"RUNG_PEER_SCAN_TBB", {peers::module_path("scan_tbb")}};
  peer_tbb::ScanFunction* tbb_scan;
  peer_tbb::ScanFunction* std_scan;
  peer_tbb::Version* version;

  Tbb() {
    library.require(tbb_scan, "rung_tbb_scan");
    library.require(std_scan, "rung_std_scan");
    library.require(version, "rung_tbb_version");
  }
  [[nodiscard]] std::string about() const {
    const int number = version();
    return std::to_string(number / 1000) + "." + std::to_string(number / 10 % 100);
  }
};

inline Tbb& tbb() {
  static Tbb loaded;
  return loaded;
}

inline Support present() { return tbb().library.present(); }

inline void run(const Scan::Args& args, const Context& context,
                const peer_tbb::ScanFunction* function) {
  using peer_tbb::Element;
  const Element element = args.x.dtype == DType::f32   ? Element::f32
                          : args.x.dtype == DType::f64 ? Element::f64
                          : args.x.dtype == DType::i32 ? Element::i32
                          : args.x.dtype == DType::i64 ? Element::i64
                          : args.x.dtype == DType::u8  ? Element::u8
                                                       : Element::u16;
  for_each_line(args, [&](const std::byte* x, std::byte* y, std::int64_t n) {
    const peer_tbb::TbbScanArguments call{element, x, y, n, args.exclusive};
    function(&call, context.threads());
  });
}

}  // namespace rung::scan_peer
