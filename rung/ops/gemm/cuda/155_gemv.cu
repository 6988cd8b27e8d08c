// SPDX-License-Identifier: Apache-2.0
// gemm / gemv
//
// Idea     a matrix times a vector is reading the matrix. Each thread starts eight loads of 16
//          bytes, of the matrix and of what they are multiplied by, before it waits for the first;
//          no thread waits for another until its sums are made.
// Changes  against few_rows: no barrier per step, nothing staged in shared memory, three blocks per
//          SM. Threads that narrow matrices have no columns for go along k. Where several blocks
//          share a sum, the last to finish adds up what they left, in fixed order: one launch.
// Cost     the matrix once; the vector from the caches, at the rate of the matrix.
// Limits   memory; of small ones the latency of a load, of the sums across a block and, where
//          blocks share sums, of a ticket.
// Tried    -
// Source   cuBLAS gemv kernels' names in a profile; NVIDIA, threadFenceReduction sample, for the
//          ticket.
#include "rung/ops/gemm/cuda/155_gemv.cuh"

#include <cmath>

#include "rung/core/tensor.hpp"
#include "rung/device/last_block.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/strip.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int threads = gemv_threads;
constexpr int warps = gemv_warps;
constexpr int blocks_per_sm = gemv_blocks;
constexpr std::int64_t max_tickets = gemv_tickets;

/// y = x M of matrices M, k x n; x is p's A, of one row where lanes are along n.
template <class T>
struct GemvCall {
  Finish<T> finish;
  std::int64_t strips, depth;  // this and what follows as in GemvPlan
  int splits, lanes;
  Accumulator<T>* partial;
  unsigned* tickets;
};

/// Which part of the call a block makes.
struct GemvWork {
  int batch;
  std::int64_t strip;
  int split;
  std::int64_t first_k, end_k;

  template <class T>
  __device__ explicit GemvWork(const GemvCall<T>& call) {
    const std::int64_t strip_of_all = blockIdx.x / call.splits;
    split = static_cast<int>(blockIdx.x % call.splits);
    batch = static_cast<int>(strip_of_all / call.strips);
    strip = strip_of_all % call.strips;
    first_k = split * call.depth;
    end_k = smaller(call.finish.p.k(), first_k + call.depth);
  }
};

/// The sums of `lanes` neighbouring lanes, Size each, over all others of their warp and then over
/// all warps: sums[i] of the block. Always in the same order.
template <int Size, class Sum>
__device__ __forceinline__ void add_up(Sum (&mine)[Size], int lanes, Sum (&of_warps)[warps][256],
                                       Sum (&sums)[256]) {
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
#pragma unroll
  for (int i = 0; i < Size; ++i) {
    for (int distance = lanes; distance < warp_size; distance *= 2) {
      mine[i] += shuffle_xor(mine[i], distance);
    }
    if (lane < lanes) of_warps[warp][lane * Size + i] = mine[i];
  }
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x);
  if (at < lanes * Size) {
    Sum sum = of_warps[0][at];
#pragma unroll
    for (int i = 1; i < warps; ++i) sum += of_warps[i][at];
    sums[at] = sum;
  }
  __syncthreads();
}

template <class T>
struct GemvLayout {
  Accumulator<T> of_warps[warps][256];
  Accumulator<T> sums[256];
  int scratch;
};

/// From the threads' sums of a strip of lanes * Size columns, from first_column on, to C.
template <int Size, class T>
__device__ __forceinline__ void finish_strip_of(const GemvCall<T>& call, const GemvWork& work,
                                                int lanes, Accumulator<T> (&mine)[Size],
                                                std::int64_t row, std::int64_t first_column) {
  using Sum = Accumulator<T>;
  auto& layout = shared<GemvLayout<T>>();
  const auto& p = call.finish.p;
  const int at = static_cast<int>(threadIdx.x);
  const int width = lanes * Size;
  add_up(mine, lanes, layout.of_warps, layout.sums);
  if (call.splits > 1) {
    const std::int64_t strip = work.batch * call.strips + work.strip;
    Sum* const partial = call.partial + strip * call.splits * width;
    if (at < width) partial[work.split * width + at] = layout.sums[at];
    __syncthreads();
    if (!is_last_block(call.tickets + strip, call.splits, layout.scratch)) return;
#pragma unroll
    for (int i = 0; i < Size; ++i) mine[i] = 0;
#pragma unroll 4
    for (int split = at / lanes; split < call.splits; split += threads / lanes) {
#pragma unroll
      for (int i = 0; i < Size; ++i) mine[i] += partial[split * width + at % lanes * Size + i];
    }
    add_up(mine, lanes, layout.of_warps, layout.sums);
  }
  const std::int64_t column = first_column + at;
  if (at >= width || column >= p.n()) return;
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
    finish(target, work.batch, row, column, layout.sums[at]);
  });
}

/// How many numbers from 0 on, `apart` from each other, are below `end`.
__device__ __forceinline__ std::int64_t count_of(std::int64_t end, int apart) {
  return end <= 0 ? 0 : (end + apart - 1) / apart;
}

/// A warp or a block per element of C. Wide: all lines along k begin at multiples of 16 bytes.
template <class T, bool Wide>
__global__ void __launch_bounds__(threads, blocks_per_sm) gemm_gemv_lines(GemvCall<T> call) {
  using Sum = Accumulator<T>;
  constexpr int size = gemv_size<T, Wide>;
  constexpr int loads = gemv_loads<T, Wide>;
  const auto& p = call.finish.p;
  const GemvWork work(call);
  const bool line_per_warp = call.lanes == 0;
  const int lane = line_per_warp ? lane_of_thread() : static_cast<int>(threadIdx.x);
  const int along = line_per_warp ? warp_size : threads;
  const std::int64_t element =
      line_per_warp ? work.strip * warps + static_cast<int>(threadIdx.x) / warp_size : work.strip;
  if (element >= p.m() * p.n()) return;  // a warp without work: no barrier follows
  const std::int64_t row = p.m() == 1 ? 0 : element % p.m();
  const std::int64_t column = p.m() == 1 ? element : element / p.m();
  const T* const line = p.b.data + work.batch * p.b.strides[0] + column * p.b.strides[2];
  const T* const x = p.a.data + work.batch * p.a.strides[0] + row * p.a.strides[1];
  const std::int64_t line_stride = Wide ? 1 : p.b.strides[1];
  const std::int64_t x_stride = Wide ? 1 : p.a.strides[2];
  Sum sums[1] = {};
  const std::int64_t first = work.first_k + lane * size;
  const std::int64_t whole = work.end_k - (work.end_k - work.first_k) % size;
  const T* matrix_from = line + first * line_stride;
  const T* vector_from = x + first * x_stride;
  const std::int64_t matrix_apart = along * size * line_stride;
  const std::int64_t vector_apart = along * size * x_stride;
  for (std::int64_t left = count_of(whole - first, along * size); left > 0; left -= loads) {
    RawPack<T, size> matrix[loads];
    RawPack<T, size> vector[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      matrix[i] = vector[i] = raw(Pack<T, size>{});  // what does not exist adds nothing
      if (i < left) {
        matrix[i] = load_raw_constant<size>(matrix_from);
        vector[i] = load_raw_constant<size>(vector_from);
      }
      matrix_from += matrix_apart;
      vector_from += vector_apart;
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const Pack<T, size> m = unpack(matrix[i]);
      const Pack<T, size> v = unpack(vector[i]);
#pragma unroll
      for (int j = 0; j < size; ++j) sums[0] += convert<Sum>(v[j]) * convert<Sum>(m[j]);
    }
  }
  if (whole + lane < work.end_k) {
    sums[0] += convert<Sum>(x[(whole + lane) * x_stride]) *
               convert<Sum>(line[(whole + lane) * line_stride]);
  }
  if (!line_per_warp) return finish_strip_of(call, work, 1, sums, row, column);
#pragma unroll
  for (int distance = 1; distance < warp_size; distance *= 2) {
    sums[0] += shuffle_xor(sums[0], distance);
  }
  if (lane != 0) return;
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
    finish(target, work.batch, row, column, sums[0]);
  });
}

/// M's n is contiguous: lanes take neighbouring columns, as far as there are; all others share k.
/// Wide: all lines are whole packs of 16 bytes.
template <class T, bool Wide>
__global__ void __launch_bounds__(threads, blocks_per_sm) gemm_gemv_columns(GemvCall<T> call) {
  using Sum = Accumulator<T>;
  constexpr int size = gemv_size<T, Wide>;
  constexpr int loads = gemv_loads<T, Wide>;
  const auto& p = call.finish.p;
  const GemvWork work(call);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = (work.strip * call.lanes + thread % call.lanes) * size;
  const int apart = threads / call.lanes;  // steps of k between a thread's
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
      values[i] = raw(Pack<T, size>{});
      factors[i] = raw(Pack<T, 1>{});
      if (i < left) {
        values[i] = load_raw_constant<size>(matrix_from);
        factors[i] = load_raw_constant<1>(vector_from);
      }
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

__global__ void gemm_gemv_zero(unsigned* tickets) {
  tickets[blockIdx.x * static_cast<unsigned>(threads) + threadIdx.x] = 0;
}

/// Zero between calls; the context's own, so that calls of several streams do not meet.
unsigned* tickets_of(Context& context) {
  struct Tickets {
    Tensor words;
  };
  Tensor& words = context.memo<Tickets>().words;
  if (words.ref().data == nullptr) {
    words = Tensor(DType::i32, Extents{max_tickets}, context.device());
    launch(context, {.grid = max_tickets / threads, .block = threads}, gemm_gemv_zero,
           words.data<unsigned>());
  }
  return words.data<unsigned>();
}

/// The product whose C has one row.
template <class T>
Finish<T> with_one_row(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  if (finish.p.m() != 1) finish.p = transpose(finish.p);
  return finish;
}

/// launch + max(memory, waves of blocks, each some rounds of loads) + the sums [+ a ticket]
template <class T>
GemvPlan plan_gemv(const Product<T, Accumulator<T>>& p, const Gemm::Args& args,
                   const Context& context) {
  constexpr double latency = 0.9e-6;      // of a round of loads
  constexpr double sum_seconds = 0.2e-6;  // across a warp; twice that across a block
  constexpr double ticket_seconds = 1.6e-6;
  constexpr double memory_share = 0.75;  // of the nominal rate
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const std::int64_t n = p.n();
  const std::int64_t k = p.k();
  const std::int64_t batch = p.c.shape[0];
  const auto& m = p.b;
  GemvPlan plan;
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
  const std::int64_t size = plan.wide ? width : 1;
  const std::int64_t loads = plan.wide ? gemv_loads<T, true> : gemv_loads<T, false>;
  // Where neither axis is contiguous, an element costs a sector.
  const double extra = contiguous ? 1 : 32.0 / sizeof(T);
  const double memory = Gemm::cost(args).bytes * extra / rates.bytes_per_second / memory_share;
  GemvPlan best;
  const auto consider = [&](int lanes, std::int64_t strips, std::int64_t along) {
    for (const std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192}) {
      if (splits > 1 &&
          (lanes == 0 || k < along * size * splits * 2 || strips * batch > max_tickets)) {
        break;
      }
      const std::int64_t depth =
          larger<std::int64_t>(tiles_of(tiles_of(k, size), splits), 1) * size;
      const double rounds =
          std::ceil(static_cast<double>(depth) / static_cast<double>(along * size * loads));
      const double blocks = static_cast<double>(strips * batch * splits);
      const double waves = std::ceil(blocks / (sms * blocks_per_sm));
      const double seconds = launch_seconds + std::max(memory, waves * rounds * latency) +
                             sum_seconds * (lanes == 0 ? 1 : 2) + (splits > 1 ? ticket_seconds : 0);
      if (best.seconds == 0 || seconds < best.seconds) {
        best = plan;
        best.lanes = lanes;
        best.strips = strips;
        best.depth = depth;
        best.splits = static_cast<int>(larger<std::int64_t>(tiles_of(k, depth), 1));
        best.seconds = seconds;
      }
    }
  };
  if (plan.lines) {
    consider(0, tiles_of(n, warps), warp_size);
    consider(1, n, threads);
  } else {
    const std::int64_t most = plan.wide ? 8 : 32;
    int lanes = 1;
    while (lanes < most && lanes * size < n) lanes *= 2;
    consider(lanes, tiles_of(n, lanes * size), threads / lanes);
  }
  return best;
}

constexpr std::int64_t most_blocks = 0x7fffffff;

Support supports(const Gemm::Args& args, const Context&) {
  if (args.has_bytes()) return unsupported("8-bit operands");
  if (args.m() != 1 && args.n() != 1) return unsupported("C has several rows and columns");
  if (std::max(args.m(), args.n()) > std::int64_t{1} << 30) {
    return unsupported("more than 2^30 rows or columns");
  }
  return args.k() <= std::int64_t{1} << 40 ? supported : unsupported("more than 2^40 steps of k");
}

/// Calls f with the typed product whose C has one row.
template <class F>
auto with_gemv(const Gemm::Args& args, F&& f) {
  return visit<float, double, f16, bf16>(args.a.dtype,
                                         [&]<class T>() { return f(with_one_row<T>(args)); });
}

double estimate(const Gemm::Args& args, const Context& context) {
  return with_gemv(args,
                   [&](const auto& finish) { return plan_gemv(finish.p, args, context).seconds; });
}

template <class T>
void launch_gemv(Context& context, const Finish<T>& finish, const GemvPlan& plan) {
  const std::int64_t at_once = most_blocks / (plan.strips * plan.splits);
  for (std::int64_t first = 0; first < finish.p.c.shape[0]; first += at_once) {
    const Finish<T> part = batches(finish, first, smaller(at_once, finish.p.c.shape[0] - first));
    const std::int64_t strips = plan.strips * part.p.c.shape[0];
    GemvCall<T> call{.finish = part,
                     .strips = plan.strips,
                     .depth = plan.depth,
                     .splits = plan.splits,
                     .lanes = plan.lanes,
                     .partial = nullptr,
                     .tickets = nullptr};
    if (plan.splits > 1) {
      call.tickets = tickets_of(context);
      const int width = plan.lines ? 1 : plan.lanes * (plan.wide ? gemv_size<T, true> : 1);
      const auto sums = static_cast<std::size_t>(strips * plan.splits * width);
      call.partial = static_cast<Accumulator<T>*>(context.workspace(sums * sizeof(Accumulator<T>)));
    }
    const LaunchShape shape{
        .grid = strips * plan.splits, .block = threads, .shared_bytes = sizeof(GemvLayout<T>)};
    if (plan.lines) {
      plan.wide ? launch(context, shape, gemm_gemv_lines<T, true>, call)
                : launch(context, shape, gemm_gemv_lines<T, false>, call);
    } else {
      plan.wide ? launch(context, shape, gemm_gemv_columns<T, true>, call)
                : launch(context, shape, gemm_gemv_columns<T, false>, call);
    }
  }
}

void run(const Gemm::Args& args, Context& context) {
  with_gemv(args, [&](const auto& finish) {
    run_gemv(context, finish, plan_gemv(finish.p, args, context));
  });
}

const Rung<Gemm> self{{.name = "gemv",
                       .step = 155,
                       .after = "few_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = 1, .columns = 32},
                       .estimate = estimate,
                       .run = run}};

}  // namespace

namespace gemm_cuda::inline RUNG_TARGET {

void run_gemv(Context& context, const Finish<float>& finish, const GemvPlan& plan) {
  launch_gemv(context, finish, plan);
}
void run_gemv(Context& context, const Finish<double>& finish, const GemvPlan& plan) {
  launch_gemv(context, finish, plan);
}
void run_gemv(Context& context, const Finish<f16>& finish, const GemvPlan& plan) {
  launch_gemv(context, finish, plan);
}
void run_gemv(Context& context, const Finish<bf16>& finish, const GemvPlan& plan) {
  launch_gemv(context, finish, plan);
}

}  // namespace gemm_cuda::inline RUNG_TARGET
}  // namespace rung
