// SPDX-License-Identifier: Apache-2.0
// rung reuse: loads saved by tiling; this file: tiles in registers, a cache and shared memory.
#include "rung/bench/reuse.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "rung/workbench/reuse.hpp"

namespace rung::workbench {
namespace {

using bench::OperandLoads;

constexpr double max_threads = 1024;  // per block, since compute capability 2.0

/// Returns n^3 / tile if the tile divides n, else a formula that includes edge tiles.
std::string loads_formula(double n, double tile, const char* name) {
  if (std::fmod(n, tile) == 0) return fmt::format("{{n}}^3 / {{{}}}", name);
  return fmt::format("{{n}}^2 x ceil({{n}} / {{{}}})", name);
}

// --- register ------------------------------------------------------------------------------------

void add_register_loads(double n, double v1, double v2, Sheet& sheet) {
  const OperandLoads loads = bench::tiled_loads({n, n, n}, v1, v2);
  sheet.result("loads of A", loads_formula(n, v2, "v2"), loads.a, Unit::count);
  sheet.result("loads of B", loads_formula(n, v1, "v1"), loads.b, Unit::count);
}

void compute_register(const Given& given, Sheet& sheet) {
  const std::vector<double>& tile = given.shape("tile");
  const double n = given["n"];
  const double v3 = tile.size() > 2 ? tile[2] : 1;
  sheet.let("v1", tile[0]);
  sheet.let("v2", tile[1]);
  sheet.let("v3", v3);
  add_register_loads(n, tile[0], tile[1], sheet);
  const OperandLoads loads = bench::tiled_loads({n, n, n}, tile[0], tile[1]);
  sheet.result("loads", "{loads of A} + {loads of B}", loads.total(), Unit::count);
  sheet.result("against no tile", "2 x {n}^3 / {loads}", 2 * n * n * n / loads.total());
  sheet.result("registers", "{v1} x {v3} + {v2} x {v3} + {v1} x {v2}",
               bench::tile_registers(tile[0], tile[1], v3), Unit::count);
  sheet.remark(
      "v3, the steps of k that are loaded at once, takes registers and saves no loads: v3 = 1 "
      "leaves most registers to v1 x v2.");
  sheet.measured_by(
      fmt::format("rung bench gemm \"f32 {0:.0f}x{0:.0f}x{0:.0f}\" --backend cpu --rungs "
                  "register_tiled  # 4x8x4",
                  n));
}

CommandSpec::Action setup_register(Parser app) {
  app.purpose(
      "A tile of v1 x v2 elements of C in registers: an element of A is used for v2 columns once "
      "it is loaded, one of B for v1 rows. Computes the loads of C = A B and the registers.");
  app.example("rung reuse register 4x8x1 --n 1024");
  app.example("rung reuse register 2x2,4x4,4x8,8x8 --n 1024", "a line per tile");
  return Calculator(app, "reuse register",
                    {{.name = "tile",
                      .help = "v1 x v2 of C, x v3 steps of k (1 if left out): 4x8x1",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = {2, 3}},
                     matrix_size_input()})
      .action(compute_register);
}

// --- cache ---------------------------------------------------------------------------------------

void compute_cache(const Given& given, Sheet& sheet) {
  const std::vector<double>& block = given.shape("block");
  const double n = given["n"];
  const double size = given["element"];
  const bench::CacheBlocking cache = bench::cache_blocking(n, block[0], block[1]);
  sheet.let("b1", block[0]);
  sheet.let("b2", block[1]);
  sheet.let("size", size, Unit::count, "element");
  sheet.result("loads of A", "{n}^2", cache.loads.a, Unit::count);
  sheet.result("loads of B", loads_formula(n, block[0], "b1"), cache.loads.b, Unit::count);
  sheet.result("held at once", "{b1} x {n} + {b2} x {n} + {b1} x {b2}", cache.elements,
               Unit::count);
  const double bytes = cache.elements * size;
  sheet.result("bytes", "{held at once} x {size}", bytes, Unit::bytes);
  const double room = given["l1"] - bytes;
  sheet.plain_result("fits", room >= 0 ? "yes" : "no", room >= 0);
  sheet.result(room >= 0 ? "left over" : "too many",
               room >= 0 ? "{l1} - {bytes}" : "{bytes} - {l1}", std::abs(room), Unit::bytes);
  sheet.result("share of L1", "{bytes} / {l1}", bytes / given["l1"]);
  const double largest = bench::largest_cache_block(n, std::floor(given["l1"] / size));
  sheet.result("largest b1 = b2", "b (2 n + b) elements within L1", largest, Unit::count);
  sheet.measured_by(fmt::format(
      "rung bench gemm \"f32 {0:.0f}x{0:.0f}x{0:.0f}\" --backend cpu --rungs cache_tiled", n));
}

CommandSpec::Action setup_cache(Parser app) {
  app.purpose(
      "Cache blocking: b1 rows of A and b2 columns of B stay in the cache with their b1 x b2 tile "
      "of C. A is then loaded once, B n / b1 times. Computes the loads, and whether the blocks "
      "fit.");
  app.example("rung reuse cache 4x4 --n 1024 --l1 32K");
  app.example("rung reuse cache 8x8 --n 128,256,512 --l1 32K", "up to which n?");
  return Calculator(app, "reuse cache",
                    {{.name = "block",
                      .help = "b1 rows of A x b2 columns of B: 8x8",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = {2}},
                     matrix_size_input(),
                     {.name = "--l1",
                      .unit = Unit::bytes,
                      .help = "bytes of the cache",
                      .fallback = "32K"},
                     element_size_input()})
      .action(compute_cache);
}

// --- shared --------------------------------------------------------------------------------------

bench::SharedTile shared_tile(const std::vector<double>& shape) {
  if (shape.size() == 3) {  // L x S x V
    return {shape[0], shape[0], shape[1], shape[2], shape[2]};
  }
  return {shape[0], shape[1], shape[2], shape[3], shape[4]};
}

/// Adds the rungs that use this tile.
void name_shared_rungs(const bench::SharedTile& tile, const bench::ProductShape& shape,
                       Sheet& sheet) {
  const struct {
    const char* rung;
    bench::SharedTile tile;
  } rungs[] = {{"naive_coalesced", {1, 1, 1}},
               {"shared_tile", {32, 32, 32}},
               {"register_tile_1d", {128, 64, 16, 16, 1}},
               {"register_tile_2d", {128, 128, 8, 8, 8}}};
  for (const auto& [rung, own] : rungs) {
    if (own.rows == tile.rows && own.columns == tile.columns && own.step == tile.step &&
        own.thread_rows == tile.thread_rows && own.thread_columns == tile.thread_columns) {
      Counting counting{
          .op = "gemm",
          .rung = rung,
          .problem = fmt::format("f32 {:.0f}x{:.0f}x{:.0f}", shape.m, shape.n, shape.k),
          .figures = {{"from global memory", counted::bytes_from_global_memory, Unit::bytes},
                      {"in sectors of 32 bytes", counted::sector_bytes, Unit::bytes},
                      {"from shared memory", counted::bytes_from_shared_memory, Unit::bytes},
                      {"threads per block", counted::threads_per_block},
                      {"shared memory", counted::shared_bytes_per_block, Unit::bytes},
                      {"barriers per block", counted::barriers_per_block}}};
      if (own.rows == 1) counting.figures.resize(2);  // the rung has no tile
      sheet.counted_by(std::move(counting));
    }
  }
}

bench::ProductShape product_of(const Given& given) {
  if (given.has("n") == given.has("shape")) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--n: {}; accepted: one of --n and --shape",
                            given.has("n") ? "given with --shape" : "not given"));
  }
  if (given.has("n")) return {given["n"], given["n"], given["n"]};
  const std::vector<double>& shape = given.shape("shape");
  return {shape[0], shape[1], shape[2]};
}

/// Adds to the sheet the number of loads of A and B through tiles of rows x columns; as a formula
/// in n^3 for square matrices whose size is a multiple of the tile's.
void add_tile_loads(const bench::ProductShape& shape, double rows, double columns,
                    const std::string& where, bool per_thread, Sheet& sheet) {
  const OperandLoads loads = bench::tiled_loads(shape, rows, columns);
  sheet.let("down", rows, Unit::count, per_thread ? "v1" : "rows");
  sheet.let("across", columns, Unit::count, per_thread ? "v2" : "columns");
  const bool cube = shape.m == shape.k && shape.k == shape.n;
  const auto formula = [&](const char* exact, const char* general, double extent, double tile) {
    return cube && std::fmod(extent, tile) == 0 ? exact : general;
  };
  sheet.result("A from " + where,
               formula("{N}^3 / {across}", "{M} x {K} x ceil({N} / {across})", shape.n, columns),
               loads.a, Unit::count);
  sheet.result("B from " + where,
               formula("{N}^3 / {down}", "{K} x {N} x ceil({M} / {down})", shape.m, rows), loads.b,
               Unit::count);
}

void compute_shared(const Given& given, Sheet& sheet) {
  const bench::SharedTile tile = shared_tile(given.shape("tile"));
  if (std::fmod(tile.rows, tile.thread_rows) != 0 ||
      std::fmod(tile.columns, tile.thread_columns) != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tile: '{}' given; accepted: a thread's tile that divides the block's",
                            given.word("tile")));
  }
  const bench::ProductShape shape = product_of(given);
  const double size = given["element"];
  const bool square = given.has("n");
  sheet.let("M", shape.m, Unit::count, square ? "n" : "M");
  sheet.let("K", shape.k, Unit::count, square ? "n" : "K");
  sheet.let("N", shape.n, Unit::count, square ? "n" : "N");
  sheet.let("rows", tile.rows);
  sheet.let("columns", tile.columns);
  sheet.let("step", tile.step);
  sheet.let("v1", tile.thread_rows);
  sheet.let("v2", tile.thread_columns);
  sheet.let("size", size, Unit::count, "element");
  sheet.result("no tiles", "2 x {M} x {K} x {N} x {size}", shape.operations() * size, Unit::bytes);
  const OperandLoads global = bench::tiled_loads(shape, tile.rows, tile.columns);
  add_tile_loads(shape, tile.rows, tile.columns, "global memory", false, sheet);
  sheet.result("from global memory", "({A from global memory} + {B from global memory}) x {size}",
               global.total() * size, Unit::bytes);
  const OperandLoads shared = bench::tiled_loads(shape, tile.thread_rows, tile.thread_columns);
  add_tile_loads(shape, tile.thread_rows, tile.thread_columns, "shared memory", true, sheet);
  sheet.result("from shared memory", "({A from shared memory} + {B from shared memory}) x {size}",
               shared.total() * size, Unit::bytes);
  sheet.result("reuse of A", "{columns}", tile.columns, Unit::count);
  sheet.result("reuse of B", "{rows}", tile.rows, Unit::count);
  sheet.result("threads per block", "{rows} / {v1} x {columns} / {v2}", tile.threads(),
               Unit::count);
  sheet.result("shared memory", "({rows} + {columns}) x {step} x {size}",
               tile.shared_elements() * size, Unit::bytes);
  sheet.result("barriers per block", "2 x ceil({K} / {step})", tile.barriers(shape.k), Unit::count);
  sheet.result("useful operations", "2 x {M} x {K} x {N}", shape.operations(), Unit::count);
  sheet.result("operations of all threads", "2 x extents rounded up to whole tiles",
               tile.launched_operations(shape), Unit::count);
  if (tile.threads() > max_threads) {
    sheet.warn("No block has more than 1,024 threads: let a thread make more of C.");
  }
  name_shared_rungs(tile, shape, sheet);
}

CommandSpec::Action setup_shared(Parser app) {
  app.purpose(
      "Tiles in shared memory, and tiles of them in registers: a block makes L x L elements of C "
      "from tiles of A and B that are S steps of k deep, a thread V x V of them. Computes what is "
      "loaded from global to shared memory (2 n^3 / L) and from there to registers (2 n^3 / V), "
      "and what a block needs. Other shapes: T rows x U columns x S steps x v1 x v2 per thread.");
  app.example("rung reuse shared 128x8x8 --n 256", "gemm's register_tile_2d");
  app.example("rung reuse shared 16x16x1,32x32x1,64x16x4 --n 1024", "a line per tile");
  app.example("rung reuse shared 16x16x1 --shape 80x41x69", "of 80x41 by 41x69");
  app.example("rung reuse shared 128x64x16x8x4 --n 1024", "T x U x S x v1 x v2");
  InputSpec size = matrix_size_input();
  size.optional = true;
  return Calculator(app, "reuse shared",
                    {{.name = "tile",
                      .help = "L x S x V, or T x U x S x v1 x v2: 128x8x8",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = {3, 5}},
                     size,
                     {.name = "--shape",
                      .help = "in place of --n: A is M x K, B is K x N: 80x41x69",
                      .optional = true,
                      .symbol = "MxKxN",
                      .accepted = {.most = 1e7},
                      .kind = InputKind::shape,
                      .extents = {3}},
                     element_size_input()})
      .action(compute_shared);
}

CommandSpec::Action setup(Parser app) {
  auto actions = std::make_shared<std::vector<std::pair<Parser, CommandSpec::Action>>>();
  const struct {
    const char* name;
    const char* summary;
    CommandSpec::Action (*setup)(Parser app);
  } kinds[] = {
      {"register", "tiles in registers", setup_register},
      {"cache", "blocks in a cache", setup_cache},
      {"both", "both, and how long it takes at best on this machine", setup_reuse_both},
      {"shared", "tiles in shared memory", setup_shared},
      {"stencil", "tiles with a halo", setup_reuse_stencil},
  };
  for (const auto& kind : kinds) {
    const Parser one = app.add_command(kind.name, kind.summary);
    actions->emplace_back(one, kind.setup(one));
  }
  app.purpose(
      "Computes what tiling saves in loads, in matrix products C = A B of n x n and in stencils.\n"
      "`rung reuse COMMAND --help` lists the inputs.");
  app.example("rung reuse register 4x8x1 --n 1024");
  app.example("rung reuse stencil --tile 16x16 --mask 9x9");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "an input is missing or out of its range"}});
  return [actions] {
    for (const auto& [one, action] : *actions) {
      if (one.parsed()) return action();
    }
    return static_cast<int>(exit_usage);
  };
}

const Command self{{.name = "reuse",
                    .order = 78,
                    .summary = "what tiling saves in loads: registers, caches, shared memory",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
