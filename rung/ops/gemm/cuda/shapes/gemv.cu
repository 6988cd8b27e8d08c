// SPDX-License-Identifier: Apache-2.0
// gemm / gemv
//
// Idea     the time of a matrix times a vector is that of reading the matrix. Each thread issues
//          eight 16-byte loads of the matrix, and those of the vector, before it waits for the
//          first; threads synchronize only to combine their sums. Lines along k use dots' kernel,
//          lines along n the kernel here.
// Changes  against few_rows: no barrier per step, no staging in shared memory, three blocks per SM.
//          In a narrow matrix, threads without a column share k; one to eight warps share a line
//          along k. If several blocks share a sum, the last to finish combines the partial sums in
//          a fixed order: one launch.
// Cost     the matrix once; the vector from the caches, at the bandwidth of the matrix.
// Limits   memory bandwidth; for small matrices the latency of a load, of the reduction across a
//          block and, if blocks share sums, of a ticket.
// Source   cuBLAS gemv kernels' names in a profile.
#include <cmath>

#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/shapes/dots.cuh"

namespace rung {
namespace {

using namespace gemm_cuda;

/// Computes y = x M with M contiguous along n: lanes hold adjacent columns, as many as exist, and
/// the remaining threads share k. Wide: all lines are whole packs of 16 bytes.
template <class T, bool Wide>
__global__ void __launch_bounds__(sums_threads, sums_blocks) gemm_gemv_columns(SumsCall<T> call) {
  using Sum = Accumulator<T>;
  constexpr int size = sums_size<T, Wide>;
  constexpr int loads = sums_loads<T, Wide>;
  const auto& p = call.finish.p;
  const SumsWork work(call);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = (work.strip * call.lanes + thread % call.lanes) * size;
  const int apart = sums_threads / call.lanes;  // steps of k between the loads of a thread
  const std::int64_t first = work.first_k + thread / call.lanes;
  const T* matrix_from = p.b.data + work.batch * p.b.strides[0] + first * p.b.strides[1] +
                         column * (Wide ? 1 : p.b.strides[2]);
  const T* vector_from = p.a.data + work.batch * p.a.strides[0] + first * p.a.strides[2];
  const std::int64_t matrix_apart = apart * p.b.strides[1];
  const std::int64_t vector_apart = apart * p.a.strides[2];
  Sum sums[size] = {};
  std::int64_t left = column < p.n() ? count_of(work.end_k - first, apart) : 0;
  for (; left > 0; left -= loads) {
    RawPack<T, size> values[loads];
    RawPack<T, 1> factors[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      values[i] = load_raw_if<size>(matrix_from, i < left);
      factors[i] = load_raw_if<1>(vector_from, i < left);
      matrix_from += matrix_apart;
      vector_from += vector_apart;
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const Pack<T, size> value = unpack(values[i]);
      const Sum factor = convert<Sum>(unpack(factors[i])[0]);
#pragma unroll
      for (int j = 0; j < size; ++j) sums[j] += factor * convert<Sum>(value[j]);
    }
  }
  finish_strip_of(call, work, call.lanes, sums, 0, work.strip * call.lanes * size);
}

/// Returns the product, transposed if needed so that C has one row.
template <class T>
Finish<T> with_one_row(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  if (finish.p.m() != 1) finish.p = transpose(finish.p);
  return finish;
}

/// Returns the plan of least time: launch + max(memory, waves of blocks, each several rounds of
/// loads) + reduction [+ ticket].
template <class T>
SumsPlan plan_gemv(const Product<T, Accumulator<T>>& p, const Gemm::Args& args,
                   const Context& context) {
  constexpr double latency = 1.2e-6;      // per round of loads
  constexpr double sum_seconds = 0.2e-6;  // reduction across a warp; twice as long across a block
  constexpr double ticket_seconds = 1.6e-6;
  constexpr double memory_share = 0.75;  // of the nominal bandwidth
  constexpr std::int64_t most_splits = 192;
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const std::int64_t n = p.n();
  const std::int64_t k = p.k();
  const std::int64_t batch = p.c.shape[0];
  const auto& m = p.b;
  SumsPlan plan;
  plan.lines = n <= 1 || (k > 1 && std::abs(m.strides[1]) <= std::abs(m.strides[2]));
  const bool contiguous = plan.lines ? m.strides[1] == 1 || k <= 1 : m.strides[2] == 1 || n <= 1;
  plan.wide =
      contiguous && (plan.lines ? begins_wide(m.data, m.strides[2], n, m.strides[0], batch)
                                : begins_wide(m.data, m.strides[1], k, m.strides[0], batch));
  if (plan.lines) {
    plan.wide = plan.wide && (p.a.strides[2] == 1 || k <= 1) &&
                begins_wide(p.a.data, 0, 1, p.a.strides[0], batch);
  } else {
    plan.wide = plan.wide && n % width == 0;
  }
  if (!contiguous) plan.requests = 32;
  const std::int64_t size = plan.wide ? width : 1;
  const std::int64_t steps = plan.lines ? size : 1;  // of k, per load
  const std::int64_t loads = plan.wide ? sums_loads<T, true> : sums_loads<T, false>;
  // If neither axis is contiguous, an element costs a sector.
  const double extra = contiguous ? 1 : 32.0 / sizeof(T);
  const double memory = Gemm::cost(args).bytes * extra / rates.bytes_per_second / memory_share;
  SumsPlan best;
  const auto consider_splits = [&](std::int64_t strips, std::int64_t along, std::int64_t splits) {
    const std::int64_t depth =
        larger<std::int64_t>(tiles_of(tiles_of(k, steps), splits), 1) * steps;
    const double rounds =
        std::ceil(static_cast<double>(depth) / static_cast<double>(along * steps * loads));
    const double blocks = static_cast<double>(strips * batch * splits);
    const double waves = std::ceil(blocks / (sms * sums_blocks));
    const double seconds = launch_seconds + std::max(memory, waves * rounds * latency) +
                           sum_seconds * (plan.lines && plan.warps == 1 ? 1 : 2) +
                           (splits > 1 ? ticket_seconds : 0);
    if (best.seconds != 0 && seconds >= best.seconds) return;
    best = plan;
    best.strips = strips;
    best.depth = depth;
    best.splits = static_cast<int>(larger<std::int64_t>(tiles_of(k, depth), 1));
    best.seconds = seconds;
  };
  const auto consider = [&](std::int64_t strips, std::int64_t along) {
    consider_splits(strips, along, 1);
    if ((plan.lines && plan.warps < sums_warps) || strips * batch > sums_tickets) return;
    // The minimum number of splits with at most `rounds` rounds of loads per thread.
    for (const std::int64_t rounds : {32, 24, 16, 12, 8, 6, 4, 3, 2, 1}) {
      const std::int64_t splits = smaller(tiles_of(k, along * steps * loads * rounds), most_splits);
      if (splits > 1) consider_splits(strips, along, splits);
    }
  };
  if (plan.lines) {
    for (plan.warps = 1; plan.warps <= sums_warps; plan.warps *= 2) {
      consider(tiles_of(n, sums_warps / plan.warps), std::int64_t{plan.warps} * warp_size);
    }
  } else {
    const std::int64_t most = plan.wide ? 8 : 32;
    while (plan.lanes < most && plan.lanes * size < n) plan.lanes *= 2;
    consider(tiles_of(n, plan.lanes * size), sums_threads / plan.lanes);
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.has_bytes()) return unsupported("8-bit operands");
  if (args.m() != 1 && args.n() != 1) return unsupported("C has several rows and columns");
  if (std::max(args.m(), args.n()) > std::int64_t{1} << 30) {
    return unsupported("more than 2^30 rows or columns");
  }
  return args.k() <= std::int64_t{1} << 40 ? supported : unsupported("more than 2^40 steps of k");
}

/// Calls f with the typed product, transposed so that C has one row.
template <class F>
auto with_gemv(const Gemm::Args& args, F&& f) {
  return visit<float, double, f16, bf16>(args.a.dtype,
                                         [&]<class T>() { return f(with_one_row<T>(args)); });
}

Work work(const Gemm::Args& args, const Context& context) {
  return visit<float, double, f16, bf16>(args.a.dtype, [&]<class T>() {
    return sums_work<T>(args, context, plan_gemv(with_one_row<T>(args).p, args, context));
  });
}

template <class T>
void run_gemv(Context& context, const Finish<T>& finish, const SumsPlan& plan) {
  if (plan.lines) return run_dots(context, finish, plan);
  const int width = plan.lanes * (plan.wide ? sums_size<T, true> : 1);
  for_each_grid(finish, plan, [&](const Finish<T>& part, const LaunchShape& shape) {
    const SumsCall<T> call = sums_call(context, part, plan, width);
    plan.wide ? launch(context, shape, gemm_gemv_columns<T, true>, call)
              : launch(context, shape, gemm_gemv_columns<T, false>, call);
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_gemv(args, [&](const auto& finish) {
    run_gemv(context, finish, plan_gemv(finish.p, args, context));
  });
}

const Rung<Gemm> self{{.name = "gemv",
                       .after = "dots",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = 1, .columns = 32},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
