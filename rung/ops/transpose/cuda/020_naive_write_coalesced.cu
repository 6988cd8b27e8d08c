// SPDX-License-Identifier: Apache-2.0
// transpose / naive, coalesced writes
//
// Idea     one thread per element; neighboring threads write neighboring elements of y.
// Changes  against naive_read_coalesced: the order in which threads are numbered. Loads are the
//          better side to scatter: a fully loaded sector may still be in L1 or L2 when its other
//          elements are read, whereas a partially written sector has to be merged.
// Cost     a warp's load of 4-byte elements touches up to 32 sectors; its store 4.
// Limits   the general rung of the GPU: every permutation, stride and element size. It suits
//          permutations that keep runs, for which loads and stores both coalesce.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/elementwise.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

template <class T>
__global__ void __launch_bounds__(elementwise_threads)
    transpose_naive_write_coalesced(const T* x, T* y, Collapsed<2> axes, std::int64_t first) {
  const std::int64_t k = first + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (k >= axes.count) return;
  // offsets of element k in y and x: its index along each axis times the stride
  std::int64_t at[2];
  axes.offsets(k, at);
  y[at[0]] = x[at[1]];
}

/// Returns the work; the sectors at the ends of x's runs are loaded more than once.
Work work(const Transpose::Args& args, const Context&) {
  constexpr std::int64_t sector = 32;
  const Moves& m = args.moves;
  return {.bytes = m.bytes() + m.elements() / m.run * round_up(m.run * m.element_bytes, sector),
          .blocks = ceil_div<std::int64_t>(m.elements(), elementwise_threads),
          .resident = 2048 / elementwise_threads};
}

void run(const Transpose::Args& args, Context& context) {
  with_words<1, 2, 4, 8, 16>(args, [&]<class T>() {
    launch_elements<T>(context, transpose_naive_write_coalesced<T>, args, Along::y);
  });
}

const Rung<Transpose> self{{.name = "naive_write_coalesced",
                            .step = 20,
                            .after = "naive_read_coalesced",
                            .backend = device_backend,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
