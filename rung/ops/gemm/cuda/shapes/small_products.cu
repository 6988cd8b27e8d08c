// SPDX-License-Identifier: Apache-2.0
// gemm / small products
//
// Idea     a batch of small products: a block processes several products at once, with their whole
//          operands in shared memory; its threads divide the elements of all these C.
// Changes  against sliced_k: no tile of fixed size, most of which a product of 13 x 65 x 61 would
//          leave empty, and no block per product. Each thread computes 2 x 2 to 8 x 8 elements of
//          one product's C; tile size and products per block depend on the shape. Contiguous
//          matrices are copied by cp.async as one array, and adjacent C are stored as one,
//          without index arithmetic per element.
// Cost     A, B and C once. A thread loads 2 t numbers from shared memory per t^2 multiply-adds.
// Limits   shared-memory bandwidth: half the multiply-add peak with 4 x 4 elements per thread. C of
//          up to 256 tiles of 8 x 8 (f64: 4 x 4); k of any length, in parts that fit.
// Source   MAGMA, "Fast batched matrix multiplication for small sizes", ISC 2016: several products
//          per block.
#include <cmath>

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int threads = 256;
constexpr int copies_in_flight = 8;                             // per thread
constexpr std::int64_t operand_bytes = std::int64_t{40} << 10;  // per block, in shared memory
constexpr std::int64_t most_bytes = std::int64_t{96} << 10;     // per block, including C

/// Blocks per SM, as registers allow.
template <int Tile, class Sum>
constexpr int small_blocks = Tile * sizeof(Sum) > 16 ? 2 : 4;

/// Launch plan of a batch, made on the host.
struct SmallPlan {
  int tile = 0;             // rows and columns of C per thread
  int products = 1;         // per block
  int depth = 1;            // steps of k in shared memory at a time
  int down = 1, along = 1;  // tiles per product
  // Operands, or C, of adjacent products form one array without gaps.
  bool flat_a = false, flat_b = false, flat_c = false;
  std::int64_t shared_bytes = 0;
  double resident = 1, rounds = 0, issued = 0;  // blocks per SM; per block: rounds, cycles
  double seconds = 0;
};

/// Strides of an operand in shared memory, in elements: between products, rows (of B: columns) and
/// steps of k.
struct SmallPlaces {
  int product, outer, step;
};
/// Returns the strides of an operand copied as one array, or step after step with an odd pitch.
__device__ __forceinline__ SmallPlaces small_places(bool flat, bool along_k, int outer, int depth) {
  if (!flat) return {depth * (outer | 1), 1, outer | 1};
  return along_k ? SmallPlaces{outer * depth, depth, 1} : SmallPlaces{outer * depth, 1, outer};
}

/// Iterator over the elements that a thread copies, line after line: a line has as many lanes as
/// elements (a power of two, at most 32), so that adjacent threads access adjacent addresses.
struct Walk {
  int lines, along, lanes, first;
  int more_products, more_lines;
  int product, line, at;

  __device__ Walk(int line_count, int length, int products) : lines(line_count), along(length) {
    const auto thread = static_cast<int>(threadIdx.x);
    lanes = 1;
    while (lanes < along && lanes < 32) lanes *= 2;
    first = thread % lanes;
    more_products = threads / lanes / lines;
    more_lines = threads / lanes % lines;
    product = first < along ? thread / lanes / lines : products;
    line = thread / lanes % lines;
    at = first;
  }
  __device__ void next() {
    at += lanes;
    if (at < along) return;
    at = first;
    product += more_products;
    line += more_lines;
    if (line >= lines) {
      line -= lines;
      ++product;
    }
  }
};

/// Starts copying an array without gaps, in pieces as large as its alignment allows.
template <int Bytes>
__device__ __forceinline__ void copy_pieces(const unsigned char* from, int bytes,
                                            unsigned char* to) {
  for (int at = static_cast<int>(threadIdx.x) * Bytes; at < bytes; at += threads * Bytes) {
    ptx::async_copy<Bytes>(to + at, from + at, smaller(Bytes, bytes - at));
  }
}
template <class T>
__device__ __forceinline__ void copy_flat(const T* from, int count, T* to) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  auto* const target = reinterpret_cast<unsigned char*>(to);
  const int size = count * static_cast<int>(sizeof(T));
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(from);
  if (address % 16 == 0) return copy_pieces<16>(bytes, size, target);
  if (address % 8 == 0) return copy_pieces<8>(bytes, size, target);
  if (address % 4 == 0) return copy_pieces<4>(bytes, size, target);
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads) to[at] = from[at];
}

/// Copies `steps` steps of k of an operand of several products to shared memory, element by
/// element.
template <class T>
__device__ void copy_operand(const T* from, std::int64_t product_stride, std::int64_t outer_stride,
                             std::int64_t k_stride, int products, int outer, int steps, T* to,
                             const SmallPlaces& places) {
  const bool along_k = outer == 1 || (steps > 1 && k_stride <= outer_stride);
  const std::int64_t along_stride = along_k ? k_stride : outer_stride;
  const std::int64_t line_stride = along_k ? outer_stride : k_stride;
  const int along_place = along_k ? places.step : places.outer;
  const int line_place = along_k ? places.outer : places.step;
  Walk walk(along_k ? outer : steps, along_k ? steps : outer, products);
  while (walk.product < products) {
    T values[copies_in_flight] = {};
    int at[copies_in_flight];
#pragma unroll
    for (int i = 0; i < copies_in_flight; ++i) {
      at[i] = -1;
      if (walk.product < products) {
        values[i] =
            from[walk.product * product_stride + walk.line * line_stride + walk.at * along_stride];
        at[i] = walk.product * places.product + walk.line * line_place + walk.at * along_place;
      }
      walk.next();
    }
#pragma unroll
    for (int i = 0; i < copies_in_flight; ++i) {
      if (at[i] >= 0) to[at[i]] = values[i];
    }
  }
}

/// Computes tile t of the block's consecutive products in thread t. The rows of a tile are `down`
/// apart, its columns `along`, so that adjacent threads read adjacent numbers.
template <int Tile, class P>
__global__ void __launch_bounds__(threads, (small_blocks<Tile, typename P::Sum>))
    gemm_small_products(P p, SmallPlan plan) {
  using In = typename P::In;
  using Sum = typename P::Sum;
  struct Start {
    alignas(16) unsigned char bytes[16];  // placeholder: the plan sets the size
  };
  unsigned char* const memory = shared<Start>().bytes;
  const auto m = static_cast<int>(p.m());
  const auto n = static_cast<int>(p.n());
  const SmallPlaces a_place =
      small_places(plan.flat_a, p.a.strides[2] <= p.a.strides[1], m, plan.depth);
  const SmallPlaces b_place =
      small_places(plan.flat_b, p.b.strides[1] <= p.b.strides[2], n, plan.depth);
  auto* const a_tile = reinterpret_cast<In*>(memory);
  // After A's elements, aligned to 16 bytes.
  constexpr int whole = vector_width<In>;
  auto* const b_tile = a_tile + (plan.products * a_place.product + whole - 1) / whole * whole;
  const std::int64_t first = std::int64_t{blockIdx.x} * plan.products;
  const auto products =
      static_cast<int>(smaller<std::int64_t>(plan.products, p.c.shape[0] - first));

  const int tiles = plan.down * plan.along;
  const auto thread = static_cast<int>(threadIdx.x);
  const int product = thread / tiles;
  const int row = thread % tiles / plan.along;
  const int column = thread % tiles % plan.along;
  const bool works = product < products;
  // Rows and columns beyond C repeat the last one and are not written.
  int a_places[Tile];
  int b_places[Tile];
#pragma unroll
  for (int i = 0; i < Tile; ++i) {
    a_places[i] = product * a_place.product + smaller(row + i * plan.down, m - 1) * a_place.outer;
    b_places[i] =
        product * b_place.product + smaller(column + i * plan.along, n - 1) * b_place.outer;
  }
  Sum sums[Tile][Tile] = {};
  for (std::int64_t k = 0; k < p.k(); k += plan.depth) {
    const auto steps = static_cast<int>(smaller<std::int64_t>(plan.depth, p.k() - k));
    if (k > 0) __syncthreads();  // all threads have read the previous steps
    const In* const a_from = p.a.data + first * p.a.strides[0] + k * p.a.strides[2];
    const In* const b_from = p.b.data + first * p.b.strides[0] + k * p.b.strides[1];
    if (plan.flat_a) {
      copy_flat(a_from, products * a_place.product, a_tile);
    } else {
      copy_operand(a_from, p.a.strides[0], p.a.strides[1], p.a.strides[2], products, m, steps,
                   a_tile, a_place);
    }
    if (plan.flat_b) {
      copy_flat(b_from, products * b_place.product, b_tile);
    } else {
      copy_operand(b_from, p.b.strides[0], p.b.strides[2], p.b.strides[1], products, n, steps,
                   b_tile, b_place);
    }
    ptx::async_wait_all();
    __syncthreads();
    if (!works) continue;
    const In* a = a_tile;
    const In* b = b_tile;
#pragma unroll(Tile == 8 ? 1 : Tile * sizeof(Sum) > 16 ? 2 : 4)
    for (int step = 0; step < steps; ++step) {
      Sum a_values[Tile];
      Sum b_values[Tile];
#pragma unroll
      for (int i = 0; i < Tile; ++i) a_values[i] = convert<Sum>(a[a_places[i]]);
#pragma unroll
      for (int i = 0; i < Tile; ++i) b_values[i] = convert<Sum>(b[b_places[i]]);
#pragma unroll
      for (int i = 0; i < Tile; ++i) {
#pragma unroll
        for (int j = 0; j < Tile; ++j) sums[i][j] += a_values[i] * b_values[j];
      }
      a += a_place.step;
      b += b_place.step;
    }
  }

  // C passes through shared memory: warps then write adjacent elements, and the epilogue is
  // compiled once.
  auto* const c_tile = reinterpret_cast<Sum*>(memory);
  __syncthreads();
  if (works) {
#pragma unroll
    for (int i = 0; i < Tile; ++i) {
#pragma unroll
      for (int j = 0; j < Tile; ++j) {
        const int at_row = row + i * plan.down;
        const int at_column = column + j * plan.along;
        if (at_row < m && at_column < n) {
          c_tile[(product * m + at_row) * n + at_column] = sums[i][j];
        }
      }
    }
  }
  __syncthreads();
  if (plan.flat_c) {
    auto* const c = p.c.data + first * p.c.strides[0];
    for (int at = thread; at < products * m * n; at += threads) {
      c[at] = convert<typename P::Out>(p.alpha * c_tile[at]);
    }
    return;
  }
  for (Walk walk(m, n, products); walk.product < products; walk.next()) {
    finish(p, static_cast<int>(first) + walk.product, walk.line, walk.at,
           c_tile[(walk.product * m + walk.line) * n + walk.at]);
  }
}

/// Returns whether matrices, and their lines along `along`, follow each other without gaps.
template <class View>
bool is_flat(const View& view, int along, int line) {
  return (view.shape[along] <= 1 || view.strides[along] == 1) &&
         (view.shape[line] <= 1 || view.strides[line] == view.shape[along]) &&
         (view.shape[0] <= 1 || view.strides[0] == view.shape[1] * view.shape[2]);
}
/// Returns whether an operand is copied as one array: lanes along `outer`, `pitch` elements apart,
/// then have at most four-way bank conflicts.
bool is_small_flat(const ConstTensorRef& operand, int outer, int depth) {
  const bool along_k = operand.strides[depth] <= operand.strides[outer];
  if (!(along_k ? is_flat(operand, depth, outer) : is_flat(operand, outer, depth))) return false;
  const std::int64_t words = static_cast<std::int64_t>(size_of(operand.dtype));
  return !along_k || operand.shape[depth] * words % 32 != 0;
}

/// Returns the plan of least time: launch + max(memory; instructions and shared memory of the SM
/// with the most blocks; waves of blocks, each a chain of copies and steps).
SmallPlan plan_small(const Gemm::Args& args, const Context& context) {
  constexpr double latency = 0.8e-6;        // of a round of copies to shared memory
  constexpr double epilogue = 0.5e-6;       // from the last step to the last store
  constexpr double memory_share = 0.8;      // of the nominal bandwidth
  constexpr double copy_instructions = 30;  // per element and lane, one by one
  constexpr double flat_instructions = 3;   // per element of an array copy, and of a plain C
  constexpr double overlap = 0.45;          // of the issue rate: copies and products alternate
  constexpr double step_cycles[] = {12, 28, 96};  // cycles per step of k of a warp alone
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double clock = rates.operations_per_second / sms / 256;
  const bool is_f64 = args.a.dtype == DType::f64;
  const std::int64_t sum_bytes = is_f64 ? 8 : 4;
  const auto element = static_cast<std::int64_t>(size_of(args.a.dtype));
  const double words = is_f64 ? 2 : 1;
  const std::int64_t k = args.alpha == 0 ? 0 : args.k();
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second / memory_share;
  const bool plain = args.beta == 0 && !args.has_epilogue() && is_flat(args.c, 2, 1);
  const bool flat_a = is_small_flat(args.a, 1, 2);
  const bool flat_b = is_small_flat(args.b, 2, 1);
  const double a_cost = flat_a ? flat_instructions : copy_instructions;
  const double b_cost = flat_b ? flat_instructions : copy_instructions;
  const double c_cost = plain ? flat_instructions : copy_instructions * 2;
  SmallPlan best;
  for (int choice = 0; choice < (is_f64 ? 2 : 3); ++choice) {
    const int tile = 2 << choice;
    const std::int64_t down = larger<std::int64_t>(tiles_of(args.m(), tile), 1);
    const std::int64_t along = larger<std::int64_t>(tiles_of(args.n(), tile), 1);
    if (args.m() > threads * tile || args.n() > threads * tile || down * along > threads) continue;
    const std::int64_t pitches = (args.m() | 1) + (args.n() | 1);
    const std::int64_t most =
        smaller(threads / (down * along), larger<std::int64_t>(args.batch(), 1));
    for (std::int64_t products = 1; products <= most;
         products = products == most ? most + 1 : smaller(products * 2, most)) {
      const std::int64_t fitting = operand_bytes / element / (products * pitches);
      const std::int64_t depth = clamped<std::int64_t>(k, 1, larger<std::int64_t>(fitting, 1));
      const std::int64_t shared_bytes = larger<std::int64_t>(
          element * products * depth * pitches + 32, sum_bytes * products * args.m() * args.n());
      if (shared_bytes > most_bytes || (products > 1 && depth < smaller<std::int64_t>(k, 16)))
        break;
      const double resident = smaller(tile * sum_bytes > 16 ? 2.0 : 4.0,
                                      std::floor(200e3 / static_cast<double>(shared_bytes + 1024)));
      const double blocks = static_cast<double>(tiles_of(args.batch(), products));
      const double operands = static_cast<double>(products * pitches * k);
      const double warps = std::ceil(static_cast<double>(products * down * along) / 32);
      const double steps = static_cast<double>(k) * warps;
      const double from_shared = steps * 2 * tile * words;
      const double copies =
          static_cast<double>(products) *
          (static_cast<double>(args.m() * k) * a_cost + static_cast<double>(args.n() * k) * b_cost +
           static_cast<double>(args.m() * args.n()) * c_cost);
      const double issued =
          (steps * (2 * tile * (element == 2 ? 2 : 1) + tile * tile * words + 3) + copies / 32) / 4;
      const double rounds =
          flat_a && flat_b && depth >= k
              ? 1
              : static_cast<double>(tiles_of(k, depth)) *
                    std::ceil(operands / static_cast<double>(tiles_of(k, depth) + 1) / threads /
                              copies_in_flight);
      const double chain =
          rounds * latency + static_cast<double>(k) * step_cycles[choice] / clock + epilogue;
      const double seconds =
          launch_seconds + larger(memory, larger(std::ceil(blocks / sms) *
                                                     larger(issued, from_shared) / clock / overlap,
                                                 std::ceil(blocks / sms / resident) * chain));
      if (best.tile == 0 || seconds < best.seconds) {
        best = {.tile = tile,
                .products = static_cast<int>(products),
                .depth = static_cast<int>(depth),
                .down = static_cast<int>(down),
                .along = static_cast<int>(along),
                .flat_a = flat_a && depth >= k,
                .flat_b = flat_b && depth >= k,
                .flat_c = plain,
                .shared_bytes = shared_bytes,
                .resident = resident,
                .rounds = rounds + static_cast<double>(k) / 8,
                .issued = larger(issued, from_shared),
                .seconds = seconds};
      }
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_wide_types(args, context); !types) return types;
  return plan_small(args, context).tile != 0
             ? supported
             : unsupported("C has more than 256 tiles of 8 x 8 (f64: 4 x 4), or 96 KiB");
}

Work work(const Gemm::Args& args, const Context& context) {
  const SmallPlan plan = plan_small(args, context);
  const double blocks = static_cast<double>(tiles_of(args.batch(), plan.products));
  return {.blocks = blocks,
          .resident = plan.resident,
          .rounds = plan.rounds,
          .steps = unevenness(blocks, context) * plan.issued,
          .path = plan.flat_a && plan.flat_b ? "flat" : ""};
}

template <int Tile, class P>
void multiply(Context& context, const P& p, const SmallPlan& plan) {
  constexpr std::int64_t at_once = std::int64_t{1} << 30;  // a grid has fewer than 2^31 blocks
  for (std::int64_t first = 0; first < p.c.shape[0]; first += at_once) {
    const P part = slice(p, 0, first, smaller(at_once, p.c.shape[0] - first));
    launch(context,
           {.grid = tiles_of(part.c.shape[0], plan.products),
            .block = threads,
            .shared_bytes = static_cast<std::size_t>(plan.shared_bytes)},
           gemm_small_products<Tile, P>, part, plan);
  }
}

void run(const Gemm::Args& args, Context& context) {
  const SmallPlan plan = plan_small(args, context);
  with_product(args, [&]<class P>(const P& p) {
    if (plan.tile == 2) return multiply<2>(context, p, plan);
    if constexpr (sizeof(typename P::Sum) == 4) {
      if (plan.tile == 8) return multiply<8>(context, p, plan);
    }
    multiply<4>(context, p, plan);
  });
}

const Rung<Gemm> self{{.name = "small_products",
                       .after = "sliced_k",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = 64, .columns = 64},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
