// SPDX-License-Identifier: Apache-2.0
// rung reuse both: cache blocking and register tiling at the rates measured by `rung machine`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "rung/bench/machine.hpp"
#include "rung/bench/reuse.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/workbench/reuse.hpp"

namespace rung::workbench {
namespace {

/// Measured rates of this CPU; 0: unknown.
struct CpuRates {
  double far = 0;  // bytes per second of the memory level that holds three matrices
  double near = 0;
  double peak = 0;
  std::string level = "memory";
};

CpuRates cpu_rates_of(const Given& given, const std::optional<bench::Machine>& machine) {
  CpuRates rates;
  const double n = given["n"];
  if (machine) {
    const std::string element = given["element"] == 4 ? "f32" : "f64";
    const bench::Ceiling far =
        bench::cpu_ceiling(*machine, machine->isa, element, 1, 3 * n * n * given["element"], 0);
    rates = {far.bytes_per_second,
             bench::cpu_ceiling(*machine, machine->isa, element, 1, 0, 0).bytes_per_second,
             far.operations_per_second, far.memory};
  }
  return {given.value_or("bandwidth", rates.far), given.value_or("l1-bandwidth", rates.near),
          given.value_or("peak", rates.peak), given.has("bandwidth") ? "memory" : rates.level};
}

void add_times_at_best(double operations, double far, double near, const CpuRates& rates,
                       Sheet& sheet) {
  sheet.let("far rate", rates.far, Unit::bytes_per_second, rates.level + " bandwidth");
  sheet.let("near rate", rates.near, Unit::bytes_per_second, "L1 bandwidth");
  sheet.let("peak rate", rates.peak, Unit::operations_per_second, "peak");
  const double seconds[] = {far / rates.far, near / rates.near, operations / rates.peak};
  sheet.result("time of " + rates.level, "{bytes to L1} / {far rate}", seconds[0], Unit::seconds);
  sheet.result("time of L1", "{bytes to registers} / {near rate}", seconds[1], Unit::seconds);
  sheet.result("time of arithmetic", "2 x {n}^3 / {peak rate}", seconds[2], Unit::seconds);
  const char* const limits[] = {rates.level.c_str(), "L1", "arithmetic"};
  const auto most = std::max_element(std::begin(seconds), std::end(seconds));
  sheet.result("at best", "the longest of the three", *most, Unit::seconds);
  const std::string limit = limits[most - std::begin(seconds)];
  sheet.plain_result("bound by", limit, limit);
  sheet.remark(
      "A bound for one thread: the three overlap at best, and vectors are this CPU's widest. The "
      "time measured is longer where the compiler uses narrower ones.");
}

void compute_both(const std::optional<bench::Machine>& machine, const Given& given, Sheet& sheet) {
  const std::vector<double>& block = given.shape("block");
  const std::vector<double>& tile = given.shape("tile");
  const double n = given["n"];
  sheet.let("b1", block[0]);
  sheet.let("v1", tile[0]);
  sheet.let("v2", tile[1]);
  sheet.let("size", given["element"], Unit::count, "element");
  const bench::OperandLoads far = bench::cache_blocking(n, block[0], block[1]).loads;
  const bench::OperandLoads near = bench::tiled_loads({n, n, n}, tile[0], tile[1]);
  const bool whole_blocks = std::fmod(n, block[0]) == 0;
  const bool whole_tiles = std::fmod(n, tile[0]) == 0 && std::fmod(n, tile[1]) == 0;
  sheet.result("loads to L1",
               whole_blocks ? "{n}^2 + {n}^3 / {b1}" : "{n}^2 + {n}^2 x ceil({n} / {b1})",
               far.total(), Unit::count);
  sheet.result(
      "loads to registers",
      whole_tiles ? "{n}^3 / {v2} + {n}^3 / {v1}" : "{n}^2 x (ceil({n} / {v2}) + ceil({n} / {v1}))",
      near.total(), Unit::count);
  const double element = given["element"];
  sheet.result("bytes to L1", "{loads to L1} x {size}", far.total() * element, Unit::bytes);
  sheet.result("bytes to registers", "{loads to registers} x {size}", near.total() * element,
               Unit::bytes);
  const CpuRates rates = cpu_rates_of(given, machine);
  if (rates.far > 0 && rates.near > 0 && rates.peak > 0) {
    add_times_at_best(2 * n * n * n, far.total() * element, near.total() * element, rates, sheet);
  } else {
    sheet.remark(
        "No times: this machine's ceilings are not known. `rung machine` measures and remembers "
        "them; --bandwidth, --l1-bandwidth and --peak give others.");
  }
  sheet.remark(
      "In c[i][j] += a[i][k] * b[k][j], a does not depend on j: the v2 columns of a tile share it. "
      "b does not depend on i: v1 rows share it in registers, b1 rows in the cache. c does not "
      "depend on k: it stays in registers.");
  sheet.measured_by(
      fmt::format("rung bench gemm \"f32 {0:.0f}x{0:.0f}x{0:.0f}\" --backend cpu "
                  "--rungs cache_and_register_tiled",
                  n));
}

}  // namespace

CommandSpec::Action setup_reuse_both(Parser app) {
  app.purpose(
      "Cache blocking and register tiling together: n^2 + n^3 / b1 loads into the L1 cache, n^3 / "
      "v2 + n^3 / v1 from there to registers. Each is divided by the bandwidth that `rung machine` "
      "measured and remembers for one thread: into L1 from the cache that holds three matrices, "
      "or from memory. The longest of these and of the arithmetic is the least time possible.");
  app.example("rung reuse both 64x64 4x8 --n 1024", "gemm's cache_and_register_tiled");
  const Calculator calculator(app, "reuse both",
                              {{.name = "block",
                                .help = "b1 rows of A x b2 columns of B in the cache: 64x64",
                                .accepted = {.most = 1e6},
                                .kind = InputKind::shape,
                                .extents = {2}},
                               {.name = "tile",
                                .help = "v1 x v2 of C in registers: 4x8",
                                .accepted = {.most = 1e6},
                                .kind = InputKind::shape,
                                .extents = {2}},
                               matrix_size_input(),
                               {.name = "--element",
                                .unit = Unit::bytes,
                                .help = "bytes per element: 4 or 8",
                                .fallback = "4",
                                .accepted = {.least = 4, .most = 8}},
                               {.name = "--bandwidth",
                                .unit = Unit::bytes_per_second,
                                .help = "of the memory",
                                .optional = true},
                               {.name = "--l1-bandwidth",
                                .unit = Unit::bytes_per_second,
                                .help = "of the L1 cache",
                                .optional = true},
                               {.name = "--peak",
                                .unit = Unit::operations_per_second,
                                .help = "of the arithmetic",
                                .optional = true}});
  return calculator.action([](const Given& given, Sheet& sheet) {
    compute_both(bench::remembered_machine(), given, sheet);
  });
}

}  // namespace rung::workbench
