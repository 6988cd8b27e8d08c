// SPDX-License-Identifier: Apache-2.0
// gemm / dots: the kernel, and the reductions over a warp, a block and blocks that it shares with
// gemv.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in dots.cu.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/last_block.hpp"
#include "rung/device/load.hpp"
#include "rung/device/load_if.hpp"
#include "rung/device/tile/epilogue.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/shared/cuda/facts.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int sums_threads = 256;
constexpr int sums_warps = sums_threads / warp_size;
constexpr int sums_blocks = 3;               // per SM
constexpr std::int64_t sums_tickets = 4096;  // maximum of sums, or strips, shared by blocks

/// Elements per load, and loads per thread that are in flight together.
template <class T, bool Wide>
constexpr int sums_size = Wide ? vector_width<T> : 1;
template <class T, bool Wide>
constexpr int sums_loads = Wide || sizeof(T) == 8 ? 8 : 16;

/// Launch plan, made on the host.
struct SumsPlan {
  bool lines =
      false;          // lanes are along k: C has any number of rows; else they are along n: one row
  bool wide = false;  // loads of 16 bytes
  int lanes = 1;      // of a warp along n
  int warps = sums_warps;   // per element of C, if `lines`: 1, 2, 4 or all of a block
  int splits = 1;           // blocks that share a strip of C
  std::int64_t strips = 1;  // strips per matrix; one or several blocks compute a strip
  std::int64_t depth = 0;   // steps of k per block
  int requests = 2;         // lines that a warp touches per load instruction
  double seconds = 0;
};

template <class T>
bool begins_wide(const T* data, std::int64_t line_stride, std::int64_t lines,
                 std::int64_t batch_stride, std::int64_t batch) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         (lines <= 1 || line_stride % width == 0) && (batch <= 1 || batch_stride % width == 0);
}

/// Returns the work of these sums: a thread waits for each round of its loads.
template <class T>
Work sums_work(const Gemm::Args& args, const Context& context, const SumsPlan& plan) {
  const std::int64_t size = plan.wide ? 16 / static_cast<std::int64_t>(sizeof(T)) : 1;
  const std::int64_t loads = plan.wide ? sums_loads<T, true> : sums_loads<T, false>;
  const std::int64_t along = plan.lines ? plan.warps * warp_size * size : sums_threads / plan.lanes;
  const double rounds =
      std::ceil(static_cast<double>(plan.depth) / static_cast<double>(along * loads));
  const double blocks = static_cast<double>(plan.strips * args.batch() * plan.splits);
  // The last wave takes as long as a full one.
  const double waves = larger(blocks / (sums_blocks * context.info().sms), 1.0);
  return {.blocks = blocks,
          .resident = sums_blocks,
          .rounds = rounds * std::ceil(waves) / waves,
          .steps = unevenness(blocks, context) * rounds * plan.requests,
          .path = plan.requests >= 32             ? "lines apart"
                  : plan.splits > 1               ? "splits"
                  : !plan.wide                    ? (plan.lines ? "lines of elements" : "elements")
                  : plan.lines && plan.warps == 1 ? "a warp each"
                                                  : ""};
}

/// Kernel arguments of y = x M for matrices M, k x n; x is p's A, which has one row if lanes are
/// along n.
template <class T>
struct SumsCall {
  Finish<T> finish;
  std::int64_t strips, depth;  // this and the following fields as in SumsPlan
  int splits, lanes, warps;
  Accumulator<T>* partial;
  unsigned* tickets;
};

/// Part of the product that a block computes.
struct SumsWork {
  int batch;
  std::int64_t strip;
  int split;
  std::int64_t first_k, end_k;

  template <class T>
  __device__ explicit SumsWork(const SumsCall<T>& call) {
    const std::int64_t strip_of_all = blockIdx.x / call.splits;
    split = static_cast<int>(blockIdx.x % call.splits);
    batch = static_cast<int>(strip_of_all / call.strips);
    strip = strip_of_all % call.strips;
    first_k = split * call.depth;
    end_k = smaller(call.finish.p.k(), first_k + call.depth);
  }
};

/// Reduces Size sums of each of `lanes` adjacent lanes across the other lanes of the warp and then
/// across all sums_warps; the result is sums[i] of the block. The order is fixed.
template <int Size, class Sum>
__device__ __forceinline__ void add_up(Sum (&mine)[Size], int lanes,
                                       Sum (&of_warps)[sums_warps][256], Sum (&sums)[256]) {
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
    for (int i = 1; i < sums_warps; ++i) sum += of_warps[i][at];
    sums[at] = sum;
  }
  __syncthreads();
}

template <class T>
struct SumsLayout {
  Accumulator<T> of_warps[sums_warps][256];
  Accumulator<T> sums[256];
  int scratch;
};

/// Combines the sums of sums_threads threads for a strip of lanes * Size columns from first_column
/// on, and writes C.
template <int Size, class T>
__device__ __forceinline__ void finish_strip_of(const SumsCall<T>& call, const SumsWork& work,
                                                int lanes, Accumulator<T> (&mine)[Size],
                                                std::int64_t row, std::int64_t first_column) {
  using Sum = Accumulator<T>;
  auto& layout = shared<SumsLayout<T>>();
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
    for (int split = at / lanes; split < call.splits; split += sums_threads / lanes) {
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

/// Returns the number of multiples of `apart`, from 0, below `end`.
__device__ __forceinline__ std::int64_t count_of(std::int64_t end, int apart) {
  return end <= 0 ? 0 : (end + apart - 1) / apart;
}

/// Computes one element of C per call.warps warps. Wide: all lines along k begin at multiples of 16
/// bytes.
template <class T, bool Wide>
__global__ void __launch_bounds__(sums_threads, sums_blocks) gemm_dots(SumsCall<T> call) {
  using Sum = Accumulator<T>;
  constexpr int size = sums_size<T, Wide>;
  constexpr int loads = sums_loads<T, Wide>;
  const auto& p = call.finish.p;
  const SumsWork work(call);
  const int along = call.warps * warp_size;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % along;
  const std::int64_t element = work.strip * (sums_threads / along) + thread / along;
  const bool exists = element < p.m() * p.n();
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
  std::int64_t left = exists ? count_of(whole - first, along * size) : 0;
  for (; left > 0; left -= loads) {
    RawPack<T, size> matrix[loads];
    RawPack<T, size> vector[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {  // elements beyond the end are zero
      matrix[i] = load_raw_if<size>(matrix_from, i < left);
      vector[i] = load_raw_if<size>(vector_from, i < left);
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
  if (exists && whole + lane < work.end_k) {
    sums[0] += convert<Sum>(x[(whole + lane) * x_stride]) *
               convert<Sum>(line[(whole + lane) * line_stride]);
  }
  if (call.warps == sums_warps) return finish_strip_of(call, work, 1, sums, row, column);
#pragma unroll
  for (int distance = 1; distance < warp_size; distance *= 2) {
    sums[0] += shuffle_xor(sums[0], distance);
  }
  if (call.warps > 1) {
    auto& of_warp = shared<SumsLayout<T>>().sums;
    const int warp = thread / warp_size;
    if (thread % warp_size == 0) of_warp[warp] = sums[0];
    __syncthreads();
    for (int i = 1; i < call.warps && lane == 0; ++i) sums[0] += of_warp[warp + i];
  }
  if (lane != 0 || !exists) return;
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
    finish(target, work.batch, row, column, sums[0]);
  });
}

/// Returns the context's ticket counters, which are zero between calls. Each context has its own,
/// so that streams do not share them. Defined in dots.cu.
unsigned* sums_tickets_of(Context& context);

/// Returns the kernel arguments of a plan for the matrices of `part`.
template <class T>
SumsCall<T> sums_call(Context& context, const Finish<T>& part, const SumsPlan& plan, int width) {
  SumsCall<T> call{.finish = part,
                   .strips = plan.strips,
                   .depth = plan.depth,
                   .splits = plan.splits,
                   .lanes = plan.lanes,
                   .warps = plan.warps,
                   .partial = nullptr,
                   .tickets = nullptr};
  if (plan.splits > 1) {
    const auto sums = static_cast<std::size_t>(plan.strips * part.p.c.shape[0] * plan.splits) *
                      static_cast<std::size_t>(width);
    call.tickets = sums_tickets_of(context);
    call.partial = static_cast<Accumulator<T>*>(context.workspace(sums * sizeof(Accumulator<T>)));
  }
  return call;
}

/// Calls f(part of the batch, launch shape) for as many matrices at a time as a grid allows.
template <class T, class F>
void for_each_grid(const Finish<T>& finish, const SumsPlan& plan, F&& f) {
  constexpr std::int64_t most_blocks = 0x7fffffff;
  const std::int64_t at_once = most_blocks / (plan.strips * plan.splits);
  for (std::int64_t first = 0; first < finish.p.c.shape[0]; first += at_once) {
    const Finish<T> part = batches(finish, first, smaller(at_once, finish.p.c.shape[0] - first));
    f(part, LaunchShape{.grid = plan.strips * part.p.c.shape[0] * plan.splits,
                        .block = sums_threads,
                        .shared_bytes = sizeof(SumsLayout<T>)});
  }
}

/// Launches gemm_dots. Defined in dots.cu.
void run_dots(Context& context, const Finish<float>& finish, const SumsPlan& plan);
void run_dots(Context& context, const Finish<double>& finish, const SumsPlan& plan);
void run_dots(Context& context, const Finish<f16>& finish, const SumsPlan& plan);
void run_dots(Context& context, const Finish<bf16>& finish, const SumsPlan& plan);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
