// SPDX-License-Identifier: Apache-2.0
// rung roofline: attainable performance of a kernel by its arithmetic intensity, and the intensity
// of the ridge point.
#include "rung/bench/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rung/bench/data_sheets.hpp"
#include "rung/workbench/calculator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Roof {
  double bandwidth = 0;
  double peak = 0;
};

/// Returns the element type whose peak is taken from the data sheet.
const char* type_of(const Given& given) { return given["element"] == 8 ? "f64" : "f32"; }

Roof roof_of(const Given& given) {
  Roof roof;
  if (given.has("gpu")) {
    const bench::Gpu* const gpu = bench::published_gpu(given.word("gpu"));
    roof = {gpu->read_bytes_per_second,
            bench::gpu_ceiling(*gpu, type_of(given), 0).operations_per_second};
  }
  roof = {given.value_or("bandwidth", roof.bandwidth), given.value_or("peak", roof.peak)};
  const std::pair<const char*, double> rates[] = {{"--bandwidth", roof.bandwidth},
                                                  {"--peak", roof.peak}};
  for (const auto& [name, rate] : rates) {
    if (rate == 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: not given; accepted: a rate, or --gpu {}", name,
                              bench::published_gpu_names()));
    }
  }
  return roof;
}

/// Draws the roofline on two logarithmic axes, and the kernel below it.
std::string picture(double intensity, const Roof& roof) {
  // Leaves room for "  +" and " FLOP/byte (log)".
  const int columns = std::min(61, static_cast<int>(text_width()) - 19);
  constexpr int rows = 9;
  constexpr double per_decade = 20;  // columns; with half as many rows, a slope of 1 looks the same
  const double ridge = bench::ridge_point(roof.peak, roof.bandwidth);
  // Centers the ridge point, unless the kernel would be outside.
  const double middle = std::sqrt(ridge * std::clamp(intensity, ridge / 300, ridge * 300));
  const double left = std::log10(middle) - columns / per_decade / 2;
  const auto column = [&](double x) {
    return static_cast<int>(std::lround((std::log10(x) - left) * per_decade));
  };
  const auto row = [&](double rate) {  // from the top
    return 1 + static_cast<int>(std::lround(std::log10(roof.peak / rate) * per_decade / 8));
  };
  std::vector<std::string> lines(rows, std::string(static_cast<std::size_t>(columns), ' '));
  for (int at = 0; at < columns; ++at) {
    const double x = std::pow(10, left + at / per_decade);
    const int y = row(bench::roofline_rate(x, roof.bandwidth, roof.peak));
    if (y < rows) lines[y][at] = x < ridge ? '/' : '-';
  }
  const int x = std::clamp(column(intensity), 0, columns - 1);
  const int y = std::min(row(bench::roofline_rate(intensity, roof.bandwidth, roof.peak)), rows - 1);
  lines[y][x] = 'o';
  std::string text = "  FLOP/s (log)   o: this kernel, at best\n";
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += "  |" + line + '\n';
  }
  text += "  +" + std::string(static_cast<std::size_t>(columns), '-') + " FLOP/byte (log)\n";
  const auto at = static_cast<std::size_t>(3 + std::clamp(column(ridge), 0, columns - 1));
  const std::string name = fmt::format("ridge {:.4g}", ridge);
  if (at + 2 + name.size() <= text_width()) return text + std::string(at, ' ') + "^ " + name + '\n';
  return text + std::string(at - 1 - name.size(), ' ') + name + " ^\n";
}

void add_tile(const Given& given, double ridge, Sheet& sheet) {
  const double needed = ridge * given["element"];
  sheet.result("reuse at the ridge", "{ridge} x {element size}", needed);
  const double tile = std::exp2(std::ceil(std::log2(needed)));
  sheet.result("tile at the ridge", "the reuse, up to a power of 2", tile, Unit::count);
  for (const double threads : {1024.0, 512.0}) {
    sheet.let("threads", threads);
    sheet.result(fmt::format("FMA per thread ({:.0f})", threads),
                 "({tile at the ridge})^2 / {threads}", tile * tile / threads);
  }
}

/// Throws unless the intensity is given in exactly one way.
void expect_one_way(const Given& given) {
  const bool counted = given.has("bytes") || given.has("operations");
  if (counted && !(given.has("bytes") && given.has("operations"))) {
    throw Error(ErrorCode::invalid_argument,
                given.has("bytes") ? "--bytes: given without --operations; accepted: both"
                                   : "--operations: given without --bytes; accepted: both");
  }
  std::string ways;
  const std::pair<const char*, bool> all[] = {{"--intensity", given.has("intensity")},
                                              {"--reuse", given.has("reuse")},
                                              {"--bytes and --operations", counted}};
  int count = 0;
  for (const auto& [name, is_given] : all) {
    if (!is_given) continue;
    ways += fmt::format("{}{}", ways.empty() ? "" : " beside ", name);
    ++count;
  }
  if (count == 1) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("--intensity: {}; accepted: one of --intensity, --reuse, and --bytes with "
                  "--operations",
                  ways.empty() ? "not given" : ways + " given"));
}

void compute(const Given& given, Sheet& sheet) {
  const Roof roof = roof_of(given);
  expect_one_way(given);
  sheet.let("element size", given["element"], Unit::number, "element");
  sheet.let("bandwidth", roof.bandwidth, Unit::bytes_per_second);
  sheet.let("peak", roof.peak, Unit::operations_per_second);
  if (given.has("gpu")) {
    sheet.plain_result("bandwidth", format_quantity(roof.bandwidth, Unit::bytes_per_second),
                       roof.bandwidth);
    sheet.plain_result(given.has("peak") ? "peak" : fmt::format("{} peak", type_of(given)),
                       format_quantity(roof.peak, Unit::operations_per_second), roof.peak);
  }
  double intensity = 0;
  if (given.has("reuse")) {
    intensity = bench::intensity_of_reuse(given["reuse"], given["element"]);
    sheet.result("FLOP per byte", "2 x {reuse} / (2 x {element size})", intensity);
  } else if (given.has("bytes")) {
    intensity = given["operations"] / given["bytes"];
    sheet.result("FLOP per byte", "{operations} / {bytes}", intensity);
  } else {
    intensity = given["intensity"];
    sheet.let("FLOP per byte", intensity, Unit::number, "intensity");
  }
  const double ridge = bench::ridge_point(roof.peak, roof.bandwidth);
  const double rate = bench::roofline_rate(intensity, roof.bandwidth, roof.peak);
  sheet.result("fed by memory", "{FLOP per byte} x {bandwidth}", intensity * roof.bandwidth,
               Unit::operations_per_second);
  sheet.result("at most", "min({fed by memory}, {peak})", rate, Unit::operations_per_second);
  sheet.result("of the peak", "{at most} / {peak}", rate / roof.peak, Unit::part);
  if (given.has("bytes")) {
    sheet.result("time of memory", "{bytes} / {bandwidth}", given["bytes"] / roof.bandwidth,
                 Unit::seconds);
    sheet.result("time of arithmetic", "{operations} / {peak}", given["operations"] / roof.peak,
                 Unit::seconds);
    sheet.result("time at best", "the longer of the two", given["operations"] / rate,
                 Unit::seconds);
  }
  const std::string bound = intensity < ridge ? "memory" : "arithmetic";
  sheet.plain_result("bound by", bound, bound);
  sheet.result("ridge", "{peak} / {bandwidth}", ridge);
  add_tile(given, ridge, sheet);
  sheet.picture(picture(intensity, roof));
  sheet.remark(
      "A tile of W x W elements of C uses each element of A and B that it loads W times. FMA per "
      "thread are those of a block of so many threads for one step of k.");
  sheet.counted_by("rung explain gemm" + (given.has("gpu") ? " --gpu " + given.word("gpu") : "") +
                   "  # bytes and operations of each rung");
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes what a kernel can reach at most on a chip, by its arithmetic intensity (operations "
      "per byte of memory traffic), and which intensity, reuse and tile reach the ridge, from "
      "where on the peak is the limit. The intensity may be given as reuse: how many multiply-adds "
      "use an operand that was loaded once; or as the bytes and operations of a kernel, whose time "
      "at best then follows.");
  app.example("rung roofline --reuse 32 --gpu a40", "a 32x32 tiled product on an A40");
  app.example("rung roofline --intensity 2 --bandwidth 2TB/s --peak 9e12");
  app.example("rung roofline --gpu h100 --reuse 1,16,32,64,128", "a line per reuse");
  app.example("rung roofline --bytes 12MB --operations 1e6 --gpu h100",
              "c = a + b of a million floats");
  return Calculator(app, "roofline",
                    {{.name = "--intensity",
                      .unit = Unit::number,
                      .help = "operations per byte",
                      .optional = true},
                     {.name = "--reuse",
                      .unit = Unit::number,
                      .help = "multiply-adds per operand loaded, in place of --intensity",
                      .optional = true},
                     {.name = "--bytes",
                      .unit = Unit::bytes,
                      .help = "that the kernel moves, with --operations in place of --intensity",
                      .optional = true},
                     {.name = "--operations",
                      .help = "that it does; a multiply-add is two",
                      .optional = true},
                     {.name = "--bandwidth",
                      .unit = Unit::bytes_per_second,
                      .help = "of the memory, as in 696GB/s",
                      .optional = true},
                     {.name = "--peak",
                      .unit = Unit::operations_per_second,
                      .help = "of the arithmetic, as in 37.4TFLOP/s",
                      .optional = true},
                     {.name = "--gpu",
                      .help = "rates of its data sheet, of f32",
                      .optional = true,
                      .kind = InputKind::word,
                      .words = bench::published_gpu_keys()},
                     {.name = "--element",
                      .unit = Unit::bytes,
                      .help = "bytes per element",
                      .fallback = "4",
                      .accepted = {.least = 1, .most = 64}}})
      .action(compute);
}

const Command self{{.name = "roofline",
                    .order = 79,
                    .summary = "what a kernel of some intensity can reach at most",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
