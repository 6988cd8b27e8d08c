// SPDX-License-Identifier: Apache-2.0
// gemm / few rows
//
// Idea     where C has few rows - or few columns: then the transposed product has few rows - the
//          other operand is the cost. It is streamed from memory to registers, 16 bytes per lane,
//          and never staged; the few rows come from shared memory, all of them for each chunk.
// Changes  against split_k: no row of a tile is computed that does not exist, so that a matrix
//          times a vector is as fast as memory; k is shared by the lanes and warps of a block
//          before it is cut into slices, so that short products take one launch.
// Cost     B once for 16 rows (4 of 16 bits), A once for a strip of 32 or 64 columns; 8 bytes per
//          element of C and slice, where there are slices.
// Limits   memory up to some 16 rows of f32; beyond, multiply-adds. 16-bit operands are converted
//          to f32 in registers: tensor cores are better from some 8 rows on.
// Tried    -
// Source   cuBLAS gemv kernels' names in a profile; CUTLASS, gemv.
#include "rung/ops/gemm/cuda/150_few_rows.cuh"

#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_cost.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_few_rows(Context& context, const Finish<float>& finish, const FewPlan& plan) {
  launch_few_rows(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::int64_t max_rows = 32;
constexpr std::int64_t max_k = std::int64_t{1} << 40;

/// The product whose C has no more rows than columns.
template <class T>
Finish<T> with_few_rows(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  if (finish.p.n() < finish.p.m()) finish.p = transpose(finish.p);
  return finish;
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.a.dtype == DType::f64 || args.has_bytes()) {
    return unsupported("this rung multiplies f32, f16 and bf16");
  }
  if (args.m() > max_rows && args.n() > max_rows) {
    return unsupported("C has more than 32 rows and more than 32 columns");
  }
  // A grid has fewer than 2^31 blocks along x: of 32 columns, for each row at the worst.
  if (std::max(args.m(), args.n()) > std::int64_t{1} << 30) {
    return unsupported("more than 2^30 rows or columns");
  }
  return args.k() <= max_k ? supported : unsupported("more than 2^40 steps of k");
}

/// start + max(memory, waves of blocks, each a chain of steps; multiply-adds) [+ slices]
template <class T>
double few_seconds(const Product<T, float>& p, const Gemm::Args& args, const Context& context,
                   int rows, int slices) {
  constexpr double start = 1.5e-6;
  constexpr double step_latency = 0.7e-6;    // from a load to the next of the same registers
  constexpr double memory_share = 0.85;      // of the nominal rate
  constexpr double arithmetic_share = 0.55;  // with the loads of A from shared memory
  constexpr double slice_launch = 2.5e-6;    // the second kernel, behind the first
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const bool k_major = few_k_major(p.b);
  constexpr int chunk = 16 / static_cast<int>(sizeof(T));
  const double width = k_major ? 32 : 8 * chunk;
  const double step = k_major ? 32 * chunk : 128;
  const double blocks_per_sm = rows == 1 || (sizeof(T) == 4 && rows == 4) ? 3 : 2;
  const auto m = static_cast<double>(p.m());
  const auto n = static_cast<double>(p.n());
  const auto batch = static_cast<double>(p.c.shape[0]);
  const double steps = std::ceil(static_cast<double>(p.k()) / slices / step);
  const double blocks = std::ceil(m / rows) * std::ceil(n / width) * batch * slices;
  const double waves = std::ceil(blocks / (sms * blocks_per_sm));
  const Lines lines = few_lines(p.b);
  const double extra = lines == Lines::aligned      ? 1
                       : lines == Lines::contiguous ? 1.4
                                                    : 32.0 / sizeof(T);  // a sector per element
  const double memory = Gemm::cost(args).bytes * extra / rates.bytes_per_second / memory_share;
  const double chains = waves * steps * step_latency * (lines == Lines::strided ? 2 : 1);
  const double multiply = std::ceil(blocks / sms) * steps * step * width * rows * 2 /
                          (rates.operations_per_second / sms * arithmetic_share);
  double seconds = launch_seconds + start + std::max({memory, chains, multiply});
  if (slices > 1) seconds += slice_launch + 8 * slices * m * n * batch / rates.bytes_per_second;
  return seconds;
}

template <class T>
FewPlan plan_few(const Product<T, float>& p, const Gemm::Args& args, const Context& context) {
  FewPlan best;
  best.rows = p.m() == 1 ? 1 : p.m() <= 4 ? 4 : few_max_rows<T>;
  const double elements =
      static_cast<double>(p.m()) * static_cast<double>(p.n()) * static_cast<double>(p.c.shape[0]);
  for (const int slices : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    if (slices > 1 && (p.k() < std::int64_t{256} * slices ||
                       elements * 4 * slices > static_cast<double>(slice_workspace))) {
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

/// Calls f with the typed product whose C has few rows.
template <class F>
auto with_few(const Gemm::Args& args, F&& f) {
  return visit<float, f16, bf16>(args.a.dtype,
                                 [&]<class T>() { return f(with_few_rows<T>(args)); });
}

double estimate(const Gemm::Args& args, const Context& context) {
  return with_few(args,
                  [&](const auto& finish) { return plan_few(finish.p, args, context).seconds; });
}

void run(const Gemm::Args& args, Context& context) {
  with_few(args, [&](const auto& finish) {
    run_few_rows(context, finish, plan_few(finish.p, args, context));
  });
}

const Rung<Gemm> self{{.name = "few_rows",
                       .step = 150,
                       .after = "split_k",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = few_max_rows<float>, .columns = 32},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
