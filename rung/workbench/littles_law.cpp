// SPDX-License-Identifier: Apache-2.0
// rung littles-law: bytes in flight needed to hide a latency.
#include "rung/bench/littles_law.hpp"

#include <algorithm>

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

constexpr double warp = 32;

void compute(const Given& given, Sheet& sheet) {
  const double latency = given["latency"];
  const double needed = bench::bytes_in_flight(latency, given["bandwidth"]);
  const double loads = bench::loads_in_flight(needed, given["bytes-per-load"]);
  const double warps = bench::warps_for_loads(loads, given["loads-per-thread"]);
  sheet.let("lanes", warp, Unit::count, "32");
  sheet.result("bytes in flight", "{latency} x {bandwidth}", needed, Unit::bytes);
  sheet.result("loads in flight", "{bytes in flight} / {bytes-per-load}", loads, Unit::count);
  sheet.result("warps", "{loads in flight} / ({lanes} x {loads-per-thread})", warps, Unit::count);
  if (given.has("sms")) sheet.result("warps per SM", "{warps} / {sms}", warps / given["sms"]);
  if (!given.has("blocks")) return;

  const double threads = given.value_or("threads", 256);
  sheet.let("threads per block", threads);
  const double pending = given["blocks"] * threads * given["loads-per-thread"];
  const double bytes = pending * given["bytes-per-load"];
  const double reached = std::min(given["bandwidth"], bench::bandwidth_of_pending(bytes, latency));
  sheet.result("loads pending", "{blocks} x {threads per block} x {loads-per-thread}", pending,
               Unit::count);
  sheet.result("bytes pending", "{loads pending} x {bytes-per-load}", bytes, Unit::bytes);
  sheet.result("bandwidth at most", "min({bytes pending} / {latency}, {bandwidth})", reached,
               Unit::bytes_per_second);
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Little's law: bytes in flight = latency x bandwidth. Computes how many loads must be in "
      "flight to reach a bandwidth despite the latency, and how many warps that takes. With "
      "--blocks, the other way round: the bandwidth that so many active blocks can reach.");
  app.example("rung littles-law --latency 500ns --bandwidth 3TB/s", "loads of 4 bytes");
  return Calculator(app, "littles-law",
                    {{.name = "--latency", .unit = Unit::seconds, .help = "of a load, as in 500ns"},
                     {.name = "--bandwidth",
                      .unit = Unit::bytes_per_second,
                      .help = "to be reached, as in 3TB/s"},
                     {.name = "--bytes-per-load",
                      .unit = Unit::bytes,
                      .help = "per thread and load: 4, or 16 for a float4",
                      .fallback = "4"},
                     {.name = "--loads-per-thread",
                      .help = "independent loads that a thread has in flight",
                      .fallback = "1",
                      .accepted = {.most = 1e6}},
                     {.name = "--sms",
                      .help = "SMs of the GPU",
                      .optional = true,
                      .accepted = {.most = 1e6}},
                     {.name = "--blocks",
                      .help = "active on the whole GPU",
                      .optional = true,
                      .accepted = {.most = 1e9}},
                     {.name = "--threads",
                      .help = "per block, with --blocks; default: 256",
                      .optional = true,
                      .accepted = {.most = 1024}}})
      .action(compute);
}

const Command self{{.name = "littles-law",
                    .order = 82,
                    .summary = "how many loads must be in flight to hide a latency",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
