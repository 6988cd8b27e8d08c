// SPDX-License-Identifier: Apache-2.0
// gemm / few rows
//
// Idea     with few rows in C (or few columns: the transposed product then has few rows), the time
//          is that of reading the other operand. It streams from memory to registers, 16 bytes per
//          lane, without staging; the few rows are read from shared memory, all of them per chunk.
// Changes  against split_k: few padding rows are computed; the lanes and warps of a block share k
//          before it is split into slices, so short products take one launch.
// Cost     B once per 16 rows (8 of f64, 4 of 16 bits), A once per strip of 8 to 64 columns; with
//          split-K, a partial sum is written and read per element of C and slice.
// Limits   memory bandwidth up to about 16 rows of f32; beyond, multiply-adds. 16-bit operands are
//          converted to f32 in registers: tensor cores are faster from about 8 rows on.
// Source   cuBLAS gemv kernels' names in a profile; CUTLASS, gemv.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/shapes/few_rows.cuh"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_few_rows(Context& context, const Finish<RUNG_SPLIT_TYPE>& finish, const FewPlan& plan) {
  launch_few_rows(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::int64_t max_rows = 64;
constexpr std::int64_t max_k = std::int64_t{1} << 40;

/// Returns the product, transposed if needed so that C has no more rows than columns.
template <class T>
Finish<T> with_few_rows(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  if (finish.p.n() < finish.p.m()) finish.p = transpose(finish.p);
  return finish;
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.has_bytes()) return unsupported("8-bit operands");
  if (args.m() > max_rows && args.n() > max_rows) {
    return unsupported("C has more than 64 rows and more than 64 columns");
  }
  if (args.m() == 1 || args.n() == 1) return unsupported("C has one row or column: gemv");
  // A grid has fewer than 2^31 blocks along x; a block covers at least 32 columns of one row.
  if (std::max(args.m(), args.n()) > std::int64_t{1} << 30) {
    return unsupported("more than 2^30 rows or columns");
  }
  return args.k() <= max_k ? supported : unsupported("more than 2^40 steps of k");
}

/// Returns the seconds: launch + max(memory; waves of blocks, each a chain of steps and a
/// reduction; multiply-adds) [+ slices].
template <class T>
double few_seconds(const Product<T, Accumulator<T>>& p, const Gemm::Args& args,
                   const Context& context, int rows, int slices) {
  constexpr double start = 0.4e-6;           // reduction across lanes and warps, and the stores
  constexpr double wide_latency = 0.6e-6;    // between loads of the same registers
  constexpr double single_latency = 1.2e-6;  // the same for loads of single elements, plus
  constexpr double more_latency = 0.6e-6;    // this much per 16 rows of A
  constexpr double next_wave = 1.6e-6;       // end of a block and start of the next
  constexpr double memory_share = sizeof(T) == 2 ? 0.45 : 0.85;  // of the nominal bandwidth
  constexpr double arithmetic_share = 0.55;  // of the peak, with loads of A from shared memory
  constexpr double slice_launch = 2.5e-6;    // the second kernel, launched behind the first
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  double width = 0;
  double step = 0;
  double blocks_per_sm = 0;
  double step_latency = 0;
  with_few_shape<T>(p.b, rows, [&]<int Rows, bool KMajor, bool Wide>() {
    using Shape = FewShape<T, Rows, KMajor, Wide>;
    width = Shape::width;
    step = Shape::step;
    blocks_per_sm = Shape::blocks;
    step_latency = Wide ? wide_latency : single_latency + more_latency * Rows / 16;
    rows = Rows;
  });
  const auto m = static_cast<double>(p.m());
  const auto n = static_cast<double>(p.n());
  const auto batch = static_cast<double>(p.c.shape[0]);
  const double steps = std::ceil(static_cast<double>(p.k()) / slices / step);
  const double blocks = std::ceil(m / rows) * std::ceil(n / width) * batch * slices;
  const double waves = std::ceil(blocks / (sms * blocks_per_sm));
  const Lines lines = few_lines(p.b);
  // A request of 32 elements costs one sector more where the line is unaligned, one sector per
  // element where it is strided.
  const double extra = lines == Lines::aligned      ? 1
                       : lines == Lines::contiguous ? 1 + 1.0 / sizeof(T)
                                                    : 32.0 / sizeof(T);
  const double memory = Gemm::cost(args).bytes * extra / rates.bytes_per_second / memory_share;
  const double chains = waves * steps * step_latency * (lines == Lines::strided ? 2 : 1) +
                        (waves - 1) * next_wave + start;
  const double operations = sizeof(T) == 8 ? 4 : 2;  // f64 at half the rate
  const double multiply = std::ceil(blocks / sms) * steps * step * width * rows * operations /
                          (rates.operations_per_second / sms * arithmetic_share);
  double seconds = launch_seconds + std::max({memory + start, chains, multiply + start});
  if (slices > 1) {
    seconds +=
        slice_launch + 2 * sizeof(Accumulator<T>) * slices * m * n * batch / rates.bytes_per_second;
  }
  return seconds;
}

template <class T>
FewPlan plan_few(const Product<T, Accumulator<T>>& p, const Gemm::Args& args,
                 const Context& context) {
  FewPlan best;
  best.rows = p.m() <= 4 ? 4 : few_max_rows<T>;
  const double elements =
      static_cast<double>(p.m()) * static_cast<double>(p.n()) * static_cast<double>(p.c.shape[0]);
  for (const int slices : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    if (slices > 1 &&
        (p.k() < std::int64_t{128} * slices ||
         elements * sizeof(Accumulator<T>) * slices > static_cast<double>(slice_workspace))) {
      break;
    }
    const double seconds = few_seconds(p, args, context, best.rows, slices);
    if (best.seconds == 0 || seconds < best.seconds) {
      best.slices = slices;
      best.seconds = seconds;
    }
  }
  return best;
}

/// Calls f with the typed product, transposed so that C has few rows.
template <class F>
auto with_few(const Gemm::Args& args, F&& f) {
  return visit<float, double, f16, bf16>(args.a.dtype,
                                         [&]<class T>() { return f(with_few_rows<T>(args)); });
}

template <class T>
Work few_work(const Product<T, Accumulator<T>>& p, const Gemm::Args& args, const Context& context,
              const FewPlan& plan) {
  Work work;
  with_few_shape<T>(p.b, plan.rows, [&]<int Rows, bool KMajor, bool Wide>() {
    using Shape = FewShape<T, Rows, KMajor, Wide>;
    const std::int64_t tiles = tiles_of(p.m(), Rows) * tiles_of(p.n(), Shape::width) * args.batch();
    const std::int64_t steps = tiles_of(tiles_of(p.k(), plan.slices), Shape::step);
    work.blocks = tiles * plan.slices;
    work.resident = Shape::blocks;
    work.rounds = steps * (Wide ? 1 : 2);
    const double uneven = unevenness(work.blocks, context);
    work.steps = uneven * static_cast<double>(steps);
    work.operations = uneven * 2.0 * Shape::step * Shape::width * Rows *
                      static_cast<double>(steps) * static_cast<double>(tiles * plan.slices) *
                      (sizeof(T) == 8 ? 2 : 1);
  });
  const Lines lines = few_lines(p.b);
  // An element of a strided line costs a sector.
  const double sectors = lines == Lines::strided ? 32.0 / sizeof(T) : 1;
  const double sums = plan.slices == 1 ? 0 : 2 * sizeof(Accumulator<T>) * plan.slices;
  work.bytes = Gemm::cost(args).bytes * sectors +
               sums * static_cast<double>(p.m() * args.batch()) * static_cast<double>(p.n());
  work.launches = plan.slices == 1 ? 1 : 2;
  work.path = lines == Lines::strided   ? "strided"
              : lines == Lines::aligned ? (sizeof(T) == 2 ? "16 bits" : "")
                                        : (sizeof(T) == 2 ? "elements of 16 bits" : "elements");
  return work;
}

Work work(const Gemm::Args& args, const Context& context) {
  return visit<float, double, f16, bf16>(args.a.dtype, [&]<class T>() {
    const auto finish = with_few_rows<T>(args);
    return few_work(finish.p, args, context, plan_few(finish.p, args, context));
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_few(args, [&](const auto& finish) {
    run_few_rows(context, finish, plan_few(finish.p, args, context));
  });
}

const Rung<Gemm> self{{.name = "few_rows",
                       .after = "split_k",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = few_max_rows<float>, .columns = 32},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
