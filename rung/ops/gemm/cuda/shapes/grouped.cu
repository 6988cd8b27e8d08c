// SPDX-License-Identifier: Apache-2.0
// gemm / grouped
//
// Idea     products of different shapes in one launch. Tiles are numbered across all products;
//          persistent blocks loop over every gridDim.x-th tile and find its product by binary
//          search.
// Changes  against mma_sync: a list of products in the kernel's parameters instead of one product;
//          small tiles. gemm_grouped() launches it; as a rung, it treats a batch as a list.
// Cost     one launch per up to 200 products, instead of one per product.
// Limits   f32 and f64 run without tensor cores. Large products have faster kernels of their own.
// Source   CUTLASS, "Grouped GEMM": the persistent scheduler.
#include <type_traits>
#include <vector>

#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"
#include "rung/ops/gemm/op/grouped.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int threads = 128;
constexpr int tile = 64;  // rows and columns of a tile
constexpr int blocks_per_sm = 4;
// A launch takes up to 32764 bytes of parameters.
constexpr int max_items = 200;

/// Matrix of a list. Strides in elements, of rows and columns.
template <class T>
struct Item {
  T* data;
  std::int64_t strides[2];

  [[nodiscard]] static Item of(const View<T, 3>& view) {
    return {view.data, {view.strides[1], view.strides[2]}};
  }
  [[nodiscard]] __device__ View<T, 3> view(std::int64_t rows, std::int64_t columns) const {
    View<T, 3> view{};
    view.data = data;
    view.shape[0] = 1;
    view.shape[1] = rows;
    view.shape[2] = columns;
    view.strides[1] = strides[0];
    view.strides[2] = strides[1];
    return view;
  }
};

template <class In, class Out>
struct GroupItem {
  Item<const In> a, b;
  Item<Out> c;
  Item<const Out> bias, residual;
  int m, n, k;
  int first_tile;  // number of tiles of the preceding items
};

template <class In, class Out>
struct GroupJob {
  GroupItem<In, Out> items[max_items];
  int count;
  int tiles;
  GemmSum<In> alpha, beta;
  Activation activation;

  /// Returns the product of a tile, by binary search over first tiles. No product is empty.
  [[nodiscard]] __device__ const GroupItem<In, Out>& item_of(int number) const {
    int low = 0;
    int high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (items[middle].first_tile <= number ? low : high) = middle;
    }
    return items[low];
  }
  [[nodiscard]] __device__ Product<In, Out> product(const GroupItem<In, Out>& item) const {
    return {item.a.view(item.m, item.k),
            item.b.view(item.k, item.n),
            item.c.view(item.m, item.n),
            item.bias.view(item.m, item.n),
            alpha,
            beta,
            activation,
            item.residual.view(item.m, item.n)};
  }
};

/// Tile without tensor cores: a thread computes 8 x 4 elements, with rows 8 apart and columns 16
/// apart.
template <class Sum>
struct PlainTiles {
  static constexpr int steps = 16;
  Sum a[tile][steps + 1];  // laid out like A; the odd pitch spreads rows over the banks
  Sum b[steps][tile];
};
template <class P, class Sum = typename P::Sum>
__device__ void make_plain_tile(const P& p, PlainTiles<Sum>& tiles, std::int64_t first_row,
                                std::int64_t first_column) {
  constexpr int steps = PlainTiles<Sum>::steps;
  const auto row = [](int i) { return static_cast<int>(threadIdx.x) / 16 + 8 * i; };
  const auto column = [](int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; };
  const auto a = p.a.at(0);
  const auto b = p.b.at(0);
  Sum sums[8][4] = {};
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    load_tile<tile, steps, threads>(a, first_row, k,
                                    [&](int r, int step, Sum v) { tiles.a[r][step] = v; });
    load_tile<steps, tile, threads>(b, k, first_column,
                                    [&](int step, int c, Sum v) { tiles.b[step][c] = v; });
    __syncthreads();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      Sum a_values[8];
      Sum b_values[4];
#pragma unroll
      for (int i = 0; i < 8; ++i) a_values[i] = tiles.a[row(i)][step];
#pragma unroll
      for (int j = 0; j < 4; ++j) b_values[j] = tiles.b[step][column(j)];
      multiply_add(sums, a_values, b_values);
    }
    __syncthreads();
  }
  finish_tile<1>(
      p, 0, sums, [&](int i) { return first_row + row(i); },
      [&](int j) { return first_column + column(j); });
}

/// Tile by mma.sync, 32 x 32 per warp. The pitch is mma_sync's.
template <class T>
struct MmaTiles {
  static constexpr int steps = 32;
  static constexpr int pitch = 40;
  alignas(16) T a[tile][pitch];
  alignas(16) T b[tile][pitch];
};
template <class T>
union MmaLayout {
  MmaTiles<T> tiles;
  StripStage stages[threads / 32];
};
template <class P, class T = typename P::In>
__device__ void make_mma_tile(const P& p, MmaLayout<T>& layout, std::int64_t first_row,
                              std::int64_t first_column) {
  constexpr int steps = MmaTiles<T>::steps;
  constexpr int along = 4;
  MmaTiles<T>& tiles = layout.tiles;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;
  const auto a = p.a.at(0);
  const auto b = p.b.at(0);
  float sums[2][along][4] = {};
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    load_tile<tile, steps, threads>(
        a, first_row, k, [&](int row, int step, float v) { tiles.a[row][step] = convert<T>(v); });
    load_tile<steps, tile, threads>(b, k, first_column, [&](int step, int column, float v) {
      tiles.b[column][step] = convert<T>(v);
    });
    __syncthreads();
    const int row = warp_row + lane / 4;
    const int column = warp_column + lane / 4;
#pragma unroll
    for (int first = 0; first < steps / 2; first += 8) {  // in 4-byte words
      const int at = first + lane % 4;
      std::uint32_t b_words[along][2];
#pragma unroll
      for (int j = 0; j < along; ++j) {
        b_words[j][0] = word(tiles.b[column + 8 * j], at);
        b_words[j][1] = word(tiles.b[column + 8 * j], at + 4);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t a_words[4] = {
            word(tiles.a[row + 16 * i], at), word(tiles.a[row + 16 * i + 8], at),
            word(tiles.a[row + 16 * i], at + 4), word(tiles.a[row + 16 * i + 8], at + 4)};
#pragma unroll
        for (int j = 0; j < along; ++j) ptx::mma<T>(sums[i][j], a_words, b_words[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    finish_strip<32>(p, layout.stages[warp], 0, first_row + warp_row + 16 * i,
                     first_column + warp_column, [&](int at) { return sums[i][at / 4][at % 4]; });
  }
  __syncthreads();  // the next tile's operands overwrite the strips
}

template <class In>
using GroupLayout = std::conditional_t<sizeof(In) == 2, MmaLayout<In>, PlainTiles<GemmSum<In>>>;

template <class In, class Out>
__global__ void __launch_bounds__(threads)
    gemm_grouped_tiles(const __grid_constant__ GroupJob<In, Out> job) {
  auto& layout = shared<GroupLayout<In>>();
  for (int number = static_cast<int>(blockIdx.x); number < job.tiles;
       number += static_cast<int>(gridDim.x)) {
    const GroupItem<In, Out>& item = job.item_of(number);
    const Product<In, Out> p = job.product(item);
    const int at = number - item.first_tile;
    const int along = (item.n + tile - 1) / tile;
    const std::int64_t first_row = std::int64_t{at / along} * tile;
    const std::int64_t first_column = std::int64_t{at % along} * tile;
    if constexpr (sizeof(In) == 2) {
      make_mma_tile(p, layout, first_row, first_column);
    } else {
      make_plain_tile(p, layout, first_row, first_column);
    }
  }
}

std::int64_t tiles_in(const Gemm::Args& args) {
  return tiles_of(args.m(), tile) * tiles_of(args.n(), tile);
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_wide_types(args, context); !types) return types;
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  if (args.m() > longest || args.n() > longest || args.k() > longest) {
    return unsupported("more than 2^30 rows, columns or steps of k");
  }
  // The tiles of a full launch, up to max_items products, are counted in an int.
  return static_cast<double>(tiles_of(args.m(), tile)) *
                     static_cast<double>(tiles_of(args.n(), tile)) <=
                 0x1p31 / 256
             ? supported
             : unsupported("more than 2^23 tiles of C");
}

/// Collects the matrices of products in `job`, and launches it whenever it is full.
template <class In, class Out>
class Group {
 public:
  explicit Group(Context& context) : context_(context) {}

  void add(const Product<In, Out>& p) {
    job_.alpha = p.alpha;
    job_.beta = p.beta;
    job_.activation = p.activation;
    for (std::int64_t batch = 0; batch < p.c.shape[0]; ++batch) {
      const Product<In, Out> one = slice(p, 0, batch, 1);
      job_.items[job_.count++] = {Item<const In>::of(one.a),
                                  Item<const In>::of(one.b),
                                  Item<Out>::of(one.c),
                                  Item<const Out>::of(one.bias),
                                  Item<const Out>::of(one.residual),
                                  static_cast<int>(one.m()),
                                  static_cast<int>(one.n()),
                                  static_cast<int>(one.k()),
                                  job_.tiles};
      job_.tiles += static_cast<int>(tiles_of(one.m(), tile) * tiles_of(one.n(), tile));
      if (job_.count == max_items) launch_all();
    }
  }
  void launch_all() {
    if (job_.tiles > 0) {
      const std::int64_t most = std::int64_t{blocks_per_sm} * context_.info().sms;
      launch(context_,
             {.grid = smaller<std::int64_t>(job_.tiles, most),
              .block = threads,
              .shared_bytes = sizeof(GroupLayout<In>)},
             gemm_grouped_tiles<In, Out>, job_);
    }
    job_.count = job_.tiles = 0;
  }

 private:
  Context& context_;
  GroupJob<In, Out> job_{};
};

void run_group(std::span<const Gemm::Args> list, Context& context) {
  if (list.empty()) return;
  with_product(list.front(), [&]<class P>(const P&) {
    Group<typename P::In, typename P::Out> group(context);
    for (const Gemm::Args& args : list) {
      group.add(product<typename P::In, typename P::Out>(args));
    }
    group.launch_all();
  });
}

void run(const Gemm::Args& args, Context& context) { run_group({&args, 1}, context); }

/// Returns the time of a product in a list that fills the device: its tiles' share of the SMs.
double seconds(const Gemm::Args& args, const Context& context) {
  const NominalRates rates = nominal_rates(context);
  const double share = size_of(args.a.dtype) == 2 ? 1.5 : 0.35;  // of the f32 peak
  const double k = args.alpha == 0 ? 0.0 : static_cast<double>(args.k());
  const double operations = 2.0 * tile * tile * (k + 64) * static_cast<double>(tiles_in(args)) *
                            static_cast<double>(args.batch());
  return std::max(operations / (rates.operations_per_second * share),
                  Gemm::cost(args).bytes / rates.bytes_per_second);
}

const Rung<Gemm> self{{.name = "grouped",
                       .after = "mma_sync",
                       .backend = device_backend,
                       .teaching = true,  // for one product: gemm_grouped() handles lists
                       .supports = supports,
                       .tile = {.rows = tile, .columns = tile},
                       .run = run}};
const GroupedKernel grouped{"grouped", device_backend, supports, seconds, run_group};

}  // namespace
}  // namespace rung
