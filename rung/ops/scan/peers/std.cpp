// SPDX-License-Identifier: Apache-2.0
// scan / std: the peer std::inclusive_scan and std::exclusive_scan, serial.
#include <cstddef>
#include <numeric>

#include "rung/ops/scan/peers/call.hpp"
#include "rung/ops/scan/op/operations.hpp"

namespace rung {
namespace {

std::string about() { return "libstdc++ " + std::to_string(_GLIBCXX_RELEASE) + ", one thread"; }

void run(const Scan::Args& args, Context&) {
  visit<float, double, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t>(
      args.x.dtype, [&]<class T>() {
        scan_peer::for_each_line(args, [&](const std::byte* in, std::byte* out, std::int64_t n) {
          const T* x = reinterpret_cast<const T*>(in);
          T* y = reinterpret_cast<T*>(out);
          if (args.exclusive) {
            std::exclusive_scan(x, x + n, y, T{0}, ScanSum());
          } else {
            std::inclusive_scan(x, x + n, y, ScanSum());
          }
        });
      });
}

const Rung<Scan> self{
    {.name = "std", .peer = true, .about = about, .supports = scan_peer::supports, .run = run}};
}  // namespace
}  // namespace rung
