// SPDX-License-Identifier: Apache-2.0
// rung reuse stencil: uses per load of tiles with a halo, and the resources of their blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rung/bench/reuse.hpp"
#include "rung/workbench/reuse.hpp"

namespace rung::workbench {
namespace {

using StencilAxes = std::vector<bench::StencilAxis>;

constexpr double max_threads_per_block = 1024;
constexpr double max_blocks_per_sm = 32;

[[noreturn]] void refuse_extents(const char* option, const std::string& given,
                                 const std::string& accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted: {}", option, given, accepted));
}

/// Returns one extent per axis; a single given extent is repeated.
std::vector<double> extents_of(const Given& given, const std::string& name, std::size_t axes) {
  const std::vector<double>& shape = given.shape(name);
  if (shape.size() == axes) return shape;
  if (shape.size() == 1) return std::vector<double>(axes, shape[0]);
  refuse_extents(("--" + name).c_str(), given.word(name), fmt::format("1 or {} extents", axes));
}

StencilAxes axes_of(const Given& given) {
  if (given.has("tile") == given.has("input-tile")) {
    refuse_extents("--tile",
                   given.has("tile") ? given.word("tile") + "' with '--input-tile" : "nothing",
                   "one of --tile and --input-tile");
  }
  const bool is_input = given.has("input-tile");
  const std::string name = is_input ? "input-tile" : "tile";
  std::size_t count = std::max(given.shape(name).size(), given.shape("mask").size());
  if (given.has("dims")) count = static_cast<std::size_t>(given["dims"]);
  const std::vector<double> tiles = extents_of(given, name, count);
  const std::vector<double> masks = extents_of(given, "mask", count);
  StencilAxes axes;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::fmod(masks[i], 2) == 0) refuse_extents("--mask", given.word("mask"), "odd extents");
    axes.push_back({is_input ? tiles[i] - masks[i] + 1 : tiles[i], masks[i]});
    if (axes.back().tile < 1) {
      refuse_extents("--input-tile", given.word(name), "extents that the mask fits into");
    }
  }
  return axes;
}

/// Extends the formula of one axis, in T, M and r, to all axes: a power if all axes are equal, else
/// a product in T1, T2 and so on.
std::string over_axes(const StencilAxes& axes, const std::string& formula, Sheet& sheet) {
  const bool equal = std::all_of(axes.begin(), axes.end(), [&](const bench::StencilAxis& one) {
    return one.tile == axes[0].tile && one.mask == axes[0].mask;
  });
  std::string text;
  for (std::size_t i = 0; i < (equal ? 1 : axes.size()); ++i) {
    const std::string at = equal ? "" : std::to_string(i + 1);
    sheet.let("T" + at, axes[i].tile);
    sheet.let("M" + at, axes[i].mask);
    sheet.let("r" + at, axes[i].radius());
    text += i == 0 ? "" : " x ";
    for (const char c : formula) text += c == '}' ? at + c : std::string(1, c);
  }
  if (equal && axes.size() > 1) text += fmt::format("^{}", axes.size());
  return text;
}

double reads_inside(const bench::StencilAxis& axis) {
  return axis.reads() - 2 * axis.reads_beyond();
}

void add_reuse(const StencilAxes& axes, Sheet& sheet) {
  using bench::product;
  using Axis = bench::StencilAxis;
  sheet.result("reads", over_axes(axes, "({T} x {M})", sheet),
               product(axes, [](const Axis& one) { return one.reads(); }), Unit::count);
  sheet.result("loads", over_axes(axes, "({T} + {M} - 1)", sheet),
               product(axes, [](const Axis& one) { return one.input_tile(); }), Unit::count);
  sheet.result("reuse", "{reads} / {loads}",
               product(axes, [](const Axis& one) { return one.reuse(); }));
  const bool is_usual = std::all_of(axes.begin(), axes.end(),
                                    [](const Axis& one) { return one.tile >= one.radius(); });
  sheet.result("reuse at the array's corner",
               is_usual
                   ? over_axes(axes, "(({T} x {M} - {r} x ({r} + 1) / 2) / ({T} + {r}))", sheet)
                   : "without what is beyond the array",
               product(axes, [](const Axis& one) { return one.boundary_reuse(); }));
}

void add_block_needs(const StencilAxes& axes, const Given& given, Sheet& sheet) {
  const double loads =
      bench::product(axes, [](const bench::StencilAxis& one) { return one.input_tile(); });
  const double threads = std::ceil(loads / given["loads-per-thread"]);
  const double bytes = loads * given["element"];
  const double blocks =
      threads > max_threads_per_block
          ? 0
          : std::min(max_blocks_per_sm, std::floor(given["sm-threads"] / threads));
  sheet.let("input elements", loads, Unit::count, "loads");
  sheet.let("per thread", given["loads-per-thread"], Unit::count, "loads per thread");
  sheet.let("size", given["element"], Unit::count, "element");
  sheet.result("threads", "{input elements} / {per thread}", threads, Unit::count);
  sheet.result("shared memory", "{input elements} x {size}", bytes, Unit::bytes);
  sheet.result("blocks per SM", "min(32, floor({sm-threads} / {threads}))", blocks, Unit::count);
  sheet.result("shared memory in use", "{blocks per SM} x {shared memory}", blocks * bytes,
               Unit::bytes);
  if (threads > max_threads_per_block) {
    sheet.warn("No block has more than 1,024 threads: raise --loads-per-thread.");
  }
}

void add_halo_outside(const StencilAxes& axes, Sheet& sheet) {
  const double from_shared = bench::product(axes, reads_inside);
  const double all =
      bench::product(axes, [](const bench::StencilAxis& one) { return one.reads(); });
  const bool is_usual = std::all_of(axes.begin(), axes.end(), [](const bench::StencilAxis& one) {
    return one.tile >= one.radius();
  });
  sheet.result(
      "without halo: from shared memory",
      is_usual ? over_axes(axes, "({T} x {M} - {r} x ({r} + 1))", sheet) : "reads within the tile",
      from_shared, Unit::count);
  sheet.result("without halo: from global memory", "reads - those", all - from_shared, Unit::count);
}

double shared_elements(const simt::record::Kernel& kernel) {
  return counted::bytes_from_shared_memory(kernel) / sizeof(float);
}

/// Adds the rungs that use this tile.
void name_rungs(const StencilAxes& axes, Sheet& sheet) {
  const double tile = axes[0].tile;
  const double mask = axes[0].mask;
  constexpr double rung_tile = 16;
  constexpr double coarsened_tile = 40;
  const std::vector<CountedFigure> tile_figures = {
      {"reuse", counted::shared_bytes_per_global_byte, Unit::number},
      {"threads", counted::threads_per_block},
      {"shared memory", counted::shared_bytes_per_block, Unit::bytes}};
  if (axes.size() == 1 && ((tile == 8 && mask < tile) || tile == 256)) {
    sheet.counted_by({.op = "stencil",
                      .rung = "window_sum_shared",
                      .problem = fmt::format("f32 {:.0f},window={:.0f},edge=clamp", tile, mask),
                      .figures = {{"reuse", counted::shared_bytes_per_global_byte, Unit::number}}});
  } else if (axes.size() == 2 && tile == rung_tile && axes[1].tile == rung_tile) {
    const std::string masks = fmt::format("{:.0f}x{:.0f}", axes[0].mask, axes[1].mask);
    sheet.counted_by({.op = "stencil",
                      .rung = "tile_input",
                      .problem = fmt::format("f32 32x32,mask={},edge=clamp", masks),
                      .figures = tile_figures});
    sheet.counted_by({.op = "stencil",
                      .rung = "halo_from_cache",
                      .problem = fmt::format("f32 16x16,mask={},edge=clamp", masks),
                      .remark = "without halo",
                      .figures = {{"from shared memory", shared_elements}}});
  } else if (axes.size() == 2 && tile == coarsened_tile && axes[1].tile == tile && mask == 9 &&
             axes[1].mask == mask) {
    sheet.counted_by({.op = "stencil",
                      .rung = "tile_input_coarsened",
                      .problem = "f32 40x40,mask=9x9,edge=clamp",
                      .figures = tile_figures});
  }
}

void compute_stencil(const Given& given, Sheet& sheet) {
  const StencilAxes axes = axes_of(given);
  std::string shape;
  for (const bench::StencilAxis& axis : axes) {
    shape += fmt::format("{}{:.0f}", shape.empty() ? "" : "x",
                         given.has("tile") ? axis.input_tile() : axis.tile);
  }
  sheet.plain_result(given.has("tile") ? "input tile" : "output tile", shape, shape);
  add_reuse(axes, sheet);
  add_block_needs(axes, given, sheet);
  add_halo_outside(axes, sheet);
  name_rungs(axes, sheet);
}

}  // namespace

CommandSpec::Action setup_reuse_stencil(Parser app) {
  app.purpose(
      "A block computes T outputs per axis, each from M inputs around it, and first loads their "
      "T + M - 1 inputs into shared memory. Computes how often each element loaded is read "
      "(inside the array, and at its corner, where nothing is read beyond), threads, shared "
      "memory and blocks per SM, and what is read from global memory where the tile has no halo.");
  app.example("rung reuse stencil --tile 8 --mask 5", "one-dimensional");
  app.example("rung reuse stencil --input-tile 48x48 --mask 9x9 --loads-per-thread 4",
              "4 loads per thread");
  app.example("rung reuse stencil --tile 8,16,32 --mask 3,5,9 --dims 2", "a line for each pair");
  const Calculator calculator(app, "reuse stencil",
                              {{.name = "--tile",
                                .help = "outputs per axis, as in 16 or 16x16",
                                .optional = true,
                                .symbol = "T",
                                .accepted = {.most = 1e6},
                                .kind = InputKind::shape,
                                .extents = {1, 2, 3}},
                               {.name = "--input-tile",
                                .help = "in place of --tile: inputs per axis, T + M - 1",
                                .optional = true,
                                .accepted = {.most = 1e6},
                                .kind = InputKind::shape,
                                .extents = {1, 2, 3}},
                               {.name = "--mask",
                                .help = "inputs per output and axis, odd: 5 or 9x9",
                                .symbol = "M",
                                .accepted = {.most = 1e4},
                                .kind = InputKind::shape,
                                .extents = {1, 2, 3}},
                               {.name = "--dims",
                                .help = "axes, of which tile and mask may give one for all: 1 to 3",
                                .optional = true,
                                .accepted = {.most = 3}},
                               {.name = "--loads-per-thread",
                                .help = "elements that a thread loads",
                                .fallback = "1",
                                .accepted = {.most = 1e6}},
                               {.name = "--sm-threads",
                                .help = "threads that an SM holds",
                                .fallback = "2048",
                                .accepted = {.most = 1e6}},
                               element_size_input()});
  return calculator.action(compute_stencil);
}

}  // namespace rung::workbench
