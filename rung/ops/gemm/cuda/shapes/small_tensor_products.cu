// SPDX-License-Identifier: Apache-2.0
// gemm / small tensor products
//
// Idea     a batch of small 16-bit products on tensor cores: a block holds the whole operands of a
//          few products in shared memory, and a warp computes 16 x 32 of one product's C, all of k
//          at once. While the warps multiply, cp.async loads the operands of the next few products.
// Changes  against small_products: mma.sync and ldmatrix instead of multiply-adds of widened
//          elements; against ldmatrix_pipeline: no tile of 64 x 64, most of which is empty, and no
//          ring that is filled and drained per product. If C has at most 16 columns, its transpose
//          is computed: half as many tiles.
// Cost     A, B and C once. Per 16 steps of k a warp reads 1.5 KiB of shared memory for four mma
//          instructions.
// Limits   memory bandwidth. Operands of one product must fit in 96 KiB. Lines at odd addresses (in
//          elements) are copied element by element, through registers.
// Source   MAGMA, "Fast batched matrix multiplication for small sizes", ISC 2016.
#include <cmath>
#include <utility>

#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/small_operand.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int warps = small_threads / 32;
constexpr int blocks_at_most = 5;  // per SM, as registers allow
constexpr int tile_rows = 16;      // per warp
constexpr int tile_columns = 32;
constexpr int depth = small_padding;  // steps of k per instruction
constexpr int element = small_element;
constexpr std::int64_t stage_bytes_at_most = 96 << 10;
constexpr std::int64_t shared_bytes_of_sm = 220 << 10;

template <class T>
struct SmallCall {
  Finish<T> finish;
  SmallOperand a, b;
  int products;  // per group, which a block holds in shared memory
  int groups;
  int down, along;  // tiles per product
};

/// Staging strips, which precede the operand stages in shared memory.
struct SmallStrips {
  StripStage of_warp[warps];
};

/// Returns the line that a lane passes to ldmatrix for the four 8 x 8 matrices of a fragment, two
/// along the operand's own axis and two along k. The second matrix is the next along the own axis
/// for A, and along k for B.
template <bool OfA, class T>
__device__ __forceinline__ const T* fragment_line(const SmallOperand& operand, const T* matrix,
                                                  int first_outer) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int below = 8 * (OfA ? lane / 8 % 2 : lane / 16);
  const int behind = 8 * (OfA ? lane / 16 : lane / 8 % 2);
  const int within = lane % 8;
  return matrix + (operand.k_major ? operand.place(first_outer + below + within, behind)
                                   : operand.place(first_outer + below, behind + within));
}
template <class T>
__device__ __forceinline__ void load_fragment(std::uint32_t (&to)[4], const SmallOperand& operand,
                                              const T* line) {
  if (operand.k_major) {
    ptx::load_matrix<4, false>(to, line);
  } else {
    ptx::load_matrix<4, true>(to, line);
  }
}

/// Writes alpha times a warp's sums to a C of T whose groups of four are aligned: half the shared
/// memory traffic and a sixth of the instructions of finish_strip.
template <class T>
__device__ __forceinline__ void store_scaled(const View<T, 3>& c, float alpha, StripStage& stage,
                                             int batch, int first_row, int first_column,
                                             const float (&sums)[tile_columns / 8][4]) {
  constexpr int pitch = tile_columns + 8;  // 20 words: eight rows of lanes hit all banks
  static_assert(tile_rows * pitch * element <= static_cast<int>(sizeof(StripStage)));
  T* const tile = reinterpret_cast<T*>(stage.bytes);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();  // the previous tile has been read
#pragma unroll
  for (int j = 0; j < tile_columns / 8; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Pack<float, 2> pair{{alpha * sums[j][2 * half], alpha * sums[j][2 * half + 1]}};
      store_wide(tile + (lane / 4 + 8 * half) * pitch + 8 * j + lane % 4 * 2, convert<T>(pair));
    }
  }
  __syncwarp();
  const int column = first_column + lane % 8 * 4;
  const auto left = static_cast<int>(smaller<std::int64_t>(c.shape[2] - column, 4));
  int row = first_row + lane / 8;
  T* to = &c(batch, row, column);
#pragma unroll
  for (int i = 0; i < tile_rows / 4; ++i, row += 4, to += 4 * c.strides[1]) {
    if (row >= c.shape[1] || left <= 0) break;
    const Pack<T, 4> group = load_wide<4>(tile + (row - first_row) * pitch + lane % 8 * 4);
    if (left == 4) {
      store_wide(to, group);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (j < left) to[j] = group[j];
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(small_threads, blocks_at_most)
    gemm_small_tensor_products(SmallCall<T> call) {
  auto& strips = shared<SmallStrips>();
  auto* const stages = reinterpret_cast<T*>(&strips + 1);
  const auto& p = call.finish.p;
  const int stage_elements = call.products * (call.a.elements() + call.b.elements());
  const auto products_of = [&](int group) {
    return static_cast<int>(
        smaller<std::int64_t>(call.products, p.c.shape[0] - std::int64_t{group} * call.products));
  };
  const auto copy = [&](int group, T* stage) {
    const std::int64_t first = std::int64_t{group} * call.products;
    const int products = products_of(group);
    copy_small(call.a, p.a.data + first * call.a.matrix_stride, products, stage);
    copy_small(call.b, p.b.data + first * call.b.matrix_stride, products,
               stage + call.products * call.a.elements());
  };
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int tiles = call.down * call.along;
  const auto k = static_cast<int>(p.k());
  const int a_step = call.a.k_major ? depth : depth * call.a.pitch;
  const int b_step = call.b.k_major ? depth : depth * call.b.pitch;
  const int b_half = tile_columns / 2 * (call.b.k_major ? call.b.pitch : 1);
  const auto narrow = with_output<T>(p);
  const bool scaled = call.finish.narrow && is_plain(p) && has_wide_groups(narrow.c);
  int turn = 0;
  const int groups_of_block =
      tiles_of(call.groups - static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  if (call.a.is_padded() || call.b.is_padded()) {
    clear_small(stages, smaller(groups_of_block, 2) * stage_elements);
    __syncthreads();
  }
  copy(static_cast<int>(blockIdx.x), stages);
  ptx::async_commit();
  for (int group = static_cast<int>(blockIdx.x); group < call.groups;
       group += static_cast<int>(gridDim.x), turn ^= 1) {
    const T* const a = stages + turn * stage_elements;
    const T* const b = a + call.products * call.a.elements();
    if (call.groups - group > static_cast<int>(gridDim.x)) {
      copy(group + static_cast<int>(gridDim.x), stages + (turn ^ 1) * stage_elements);
    }
    ptx::async_commit();
    ptx::async_wait<1>();
    __syncthreads();
    const int works = products_of(group) * tiles;
    for (int work = warp; work < works; work += warps) {
      const int product = work / tiles;
      const int row = work % tiles / call.along * tile_rows;
      const int column = work % tiles % call.along * tile_columns;
      // The second 16 columns can be outside C.
      const bool both = column + tile_columns / 2 < p.n();
      float sums[tile_columns / 8][4] = {};
      const T* a_line = fragment_line<true>(call.a, a + product * call.a.elements(), row);
      const T* b_line = fragment_line<false>(call.b, b + product * call.b.elements(), column);
      for (int step = 0; step < k; step += depth, a_line += a_step, b_line += b_step) {
        std::uint32_t a_words[4];
        load_fragment(a_words, call.a, a_line);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (half == 1 && !both) continue;
          std::uint32_t b_words[4];
          load_fragment(b_words, call.b, b_line + half * b_half);
          ptx::mma<T>(sums[2 * half], a_words, {b_words[0], b_words[1]});
          ptx::mma<T>(sums[2 * half + 1], a_words, {b_words[2], b_words[3]});
        }
      }
      const int batch = group * call.products + product;
      if (scaled) {
        store_scaled(narrow.c, p.alpha, strips.of_warp[warp], batch, row, column, sums);
        continue;
      }
      with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
        finish_strip<tile_columns>(target, strips.of_warp[warp], batch, row, column,
                                   [&](int i) { return sums[i / 4][i % 4]; });
      });
    }
    __syncthreads();  // all warps have read the stage that is filled next
  }
}

struct SmallTensorPlan {
  bool transposed = false;  // computes the transposed C
  SmallOperand a, b;
  int products = 0;  // 0: the operands of one product do not fit
  int down = 1, along = 1;
  int stage_bytes = 0;
  int resident = 1;             // blocks per SM
  double rounds = 0, each = 0;  // per group; instructions per product
  double seconds = 0;
};

/// Returns the plan of least time: launch + max(memory; instructions of the SM with the most
/// groups; rounds of groups, each a chain of a copy, steps and an epilogue).
SmallTensorPlan plan_small(const Gemm::Args& args, const Context& context) {
  constexpr double start = 0.5e-6;
  constexpr double memory_share = 0.75;     // of the nominal bandwidth
  constexpr double latency = 1.2e-6;        // of copies until they arrive in shared memory
  constexpr double step_seconds = 0.06e-6;  // 16 steps of k of a warp alone
  constexpr double strip_seconds = 0.5e-6;  // epilogue of a warp alone
  constexpr double issue_share = 0.4;       // of the issue rate
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double clock = rates.operations_per_second / sms / 256;
  const std::int64_t k = args.alpha == 0 ? 0 : args.k();
  SmallTensorPlan plan;
  // Avoids overflow in small_operand(); larger products are refused anyway.
  if (args.m() > 4096 || args.n() > 4096 || k > 4096) return plan;
  plan.a = small_operand(args.a, args.a.data, 1, 2, k);
  plan.b = small_operand(args.b, args.b.data, 2, 1, k);
  // With up to 16 columns the transposed C has half as many tiles. Its stores are not vectorized.
  plan.transposed = args.m() > tile_rows && args.n() <= tile_rows && args.n() % 4 != 0;
  if (plan.transposed) std::swap(plan.a, plan.b);
  const std::int64_t rows = plan.transposed ? args.n() : args.m();
  const std::int64_t columns = plan.transposed ? args.m() : args.n();
  const std::int64_t bytes =
      (std::int64_t{plan.a.elements()} + plan.b.elements()) * std::int64_t{element};
  const auto of_block = static_cast<std::int64_t>(context.info().shared_per_block);
  const auto of_sm = static_cast<std::int64_t>(context.info().shared_per_sm);
  constexpr auto strips = static_cast<std::int64_t>(sizeof(SmallStrips));
  const std::int64_t most = smaller(stage_bytes_at_most, (of_block - strips) / 2);
  if (bytes > most) return plan;
  plan.down = static_cast<int>(tiles_of(rows, tile_rows));
  plan.along = static_cast<int>(tiles_of(columns, tile_columns));
  const std::int64_t tiles = larger(plan.down * plan.along, 1);
  const auto batch = static_cast<double>(args.batch());
  // Enough products per block for a tile per warp, if there are enough blocks.
  const double per_slot = batch / (sms * blocks_at_most);
  plan.products = static_cast<int>(
      clamped<std::int64_t>(smaller<std::int64_t>(warps / tiles, most / bytes), 1,
                            larger<std::int64_t>(static_cast<std::int64_t>(per_slot), 1)));
  plan.stage_bytes = static_cast<int>(plan.products * bytes);
  const auto groups_of = [&](int products) { return std::ceil(batch / products); };
  const double groups = groups_of(plan.products);
  const auto fitting = [&](int stages) {
    return static_cast<int>(smaller<std::int64_t>(
        blocks_at_most, smaller(shared_bytes_of_sm, of_sm) / (stages * plan.stage_bytes + strips)));
  };
  plan.resident = fitting(1);
  if (groups > sms * plan.resident) plan.resident = larger(fitting(2), 1);

  const auto copy_instructions = [](const SmallOperand& operand) {
    const double pieces =
        double{1} * operand.lines * operand.along * element / static_cast<double>(operand.piece);
    return pieces / 32 * (operand.piece == element ? 12 : 8) * 1.5;
  };
  const double steps = std::ceil(static_cast<double>(k) / depth);
  const double each = static_cast<double>(tiles) * (steps * 18 + 250) + copy_instructions(plan.a) +
                      copy_instructions(plan.b);
  const double issued = std::ceil(groups / sms) * plan.products * each / 4 / clock / issue_share;
  const double chain = latency + std::ceil(static_cast<double>(plan.products * tiles) / warps) *
                                     (steps * step_seconds + strip_seconds);
  plan.rounds = 1 + std::ceil(static_cast<double>(plan.products * tiles) / warps) * (steps / 8 + 1);
  plan.each = each;
  const double rounds = std::ceil(groups / (sms * plan.resident));
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second / memory_share;
  plan.seconds = launch_seconds + start + std::max({memory, issued, rounds * chain});
  return plan;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f16 && args.a.dtype != DType::bf16) {
    return unsupported("only f16 and bf16 operands");
  }
  if (context.info().compute_capability < 80) {
    return unsupported("mma.sync of m16n8k16 needs compute capability 8.0");
  }
  if (args.m() == 0 || args.n() == 0) return unsupported("C is empty");
  return plan_small(args, context).products != 0
             ? supported
             : unsupported(
                   "the operands of one product exceed 96 KiB, or half of a block's shared memory");
}

Work work(const Gemm::Args& args, const Context& context) {
  const SmallTensorPlan plan = plan_small(args, context);
  const double groups = static_cast<double>(tiles_of(args.batch(), plan.products));
  const double blocks = std::min(groups, double{1} * context.info().sms * plan.resident);
  return {.blocks = blocks,
          .resident = plan.resident,
          .rounds = groups / blocks * plan.rounds,
          .steps = unevenness(blocks, context) * groups / blocks * plan.products * plan.each};
}

void run(const Gemm::Args& args, Context& context) {
  const SmallTensorPlan plan = plan_small(args, context);
  visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    Finish<T> finish = finish_of<T>(args);
    if (plan.transposed) finish.p = transpose(finish.p);
    constexpr std::int64_t at_once = std::int64_t{1} << 30;  // groups are counted by an int
    for (std::int64_t first = 0; first < args.batch(); first += at_once) {
      const Finish<T> part = batches(finish, first, smaller(at_once, args.batch() - first));
      const SmallCall<T> call{
          .finish = part,
          .a = plan.a,
          .b = plan.b,
          .products = plan.products,
          .groups = static_cast<int>(tiles_of(part.p.c.shape[0], plan.products)),
          .down = plan.down,
          .along = plan.along};
      const int grid = smaller(call.groups, plan.resident * context.info().sms);
      const int stages = call.groups > grid ? 2 : 1;
      launch(context,
             {.grid = grid,
              .block = small_threads,
              .shared_bytes = sizeof(SmallStrips) + static_cast<std::size_t>(stages) *
                                                        static_cast<std::size_t>(plan.stage_bytes)},
             gemm_small_tensor_products<T>, call);
    }
  });
}

const Rung<Gemm> self{{.name = "small_tensor_products",
                       .after = "small_products",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = tile_rows, .columns = tile_columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
