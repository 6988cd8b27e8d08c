// SPDX-License-Identifier: Apache-2.0
// reduce / atomic finish
//
// Idea     each block adds its sum to the result by one atomic: no partial sums in memory, no
//          second pass.
// Changes  against vectorized: the last pass is replaced by one atomic per block, which the L2
//          cache serializes. A launch before it, which waits for nothing, sets the result to 0.
// Cost     one atomic per block on one address, overlapped with other blocks' loads.
// Limits   one sum of contiguous i32 or i64. Atomics arrive in any order: integer sums do not
//          depend on it, but a sum of floats would round differently from run to run.
// Source   J. Luitjens, "Faster parallel reductions on Kepler" (2014).
#include "rung/core/bounds.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

// Unsigned: CUDA's 64-bit atomics are unsigned, and sums wrap as the contract requires.
using Sum = unsigned long long;
constexpr int unrolled = 4;
using Scratch = WarpValues<Sum, pass_threads>;

template <class Y>
__global__ void reduce_atomic_finish_zero(Y* y) {
  *y = 0;
}

template <class T, class Y>
__global__ void __launch_bounds__(pass_threads)
    reduce_atomic_finish(const T* x, std::int64_t n, Y* y) {
  const std::int64_t step = std::int64_t{gridDim.x} * pass_threads;
  Sum sums[unrolled] = {};
  for (std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + threadIdx.x; i < n;
       i += unrolled * step) {
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      if (i + u * step < n) sums[u] += static_cast<Sum>(static_cast<std::int64_t>(x[i + u * step]));
    }
  }
  const Sum sum =
      block_reduce<pass_threads>((sums[0] + sums[1]) + (sums[2] + sums[3]),
                                 [](Sum a, Sum b) { return a + b; }, Sum{0}, shared<Scratch>());
  if (threadIdx.x == 0) atomicAdd(y, static_cast<Y>(sum));
}

template <class T, class Y>
std::int64_t blocks_of(const Reduce::Args& args, const Context& context) {
  return smaller(
      resident_blocks(context, reduce_atomic_finish<T, Y>, pass_threads, sizeof(Scratch)),
      ceil_div(args.terms.size(), pass_threads * unrolled));
}

template <class T, class Y>
void reduce_atomically(const Reduce::Args& args, Context& context) {
  const std::int64_t n = args.terms.size();
  Y* y = static_cast<Y*>(args.y.data);
  launch(context, {.grid = 1, .block = 1}, reduce_atomic_finish_zero<Y>, y);
  launch(context,
         {.grid = blocks_of<T, Y>(args, context),
          .block = pass_threads,
          .shared_bytes = sizeof(Scratch)},
         reduce_atomic_finish<T, Y>, static_cast<const T*>(args.x.data), n, y);
}

Support supports(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum) return unsupported("sums only");
  if (args.x.dtype != DType::i32 && args.x.dtype != DType::i64) return unsupported("i32 and i64");
  if (args.has_segments()) return unsupported("no segments");
  if (args.kept.size() != 1) return unsupported("all axes must be reduced");
  if (!args.terms.is_contiguous()) return unsupported("x must be contiguous");
  return supported;
}

/// Calls f<T, Y>() with the types of x and y.
template <class F>
void with_types(const Reduce::Args& args, const F& f) {
  visit<std::int32_t, std::int64_t>(args.x.dtype, [&]<class T>() {
    if (args.y.dtype == DType::i32) {
      f.template operator()<T, unsigned>();
    } else {
      f.template operator()<T, unsigned long long>();
    }
  });
}

void run(const Reduce::Args& args, Context& context) {
  with_types(args, [&]<class T, class Y>() { reduce_atomically<T, Y>(args, context); });
}

const Rung<Reduce> self{{.name = "atomic_finish",
                         .step = 110,
                         .after = "vectorized",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .run = run}};

}  // namespace
}  // namespace rung
