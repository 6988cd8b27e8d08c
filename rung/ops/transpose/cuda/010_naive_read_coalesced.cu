// SPDX-License-Identifier: Apache-2.0
// transpose / naive, coalesced reads
//
// Idea     one thread per element; neighboring threads read neighboring elements of x.
// Changes  baseline.
// Cost     a warp's load of 4-byte elements touches 4 sectors of 32 bytes; its store touches 32
//          sectors and writes 4 bytes of each. Unless L2 merges the other 28 bytes in time, the
//          store moves 8 times the traffic.
// Limits   every layout, 4-byte elements.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
#include "rung/ops/transpose/cuda/detail/elementwise.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

template <class T>
__global__ void __launch_bounds__(elementwise_threads)
    transpose_naive_read_coalesced(const T* x, T* y, Collapsed<2> axes, std::int64_t first) {
  const std::int64_t k = first + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (k >= axes.count) return;
  // offsets of element k in y and x: its index along each axis times the stride
  std::int64_t at[2];
  axes.offsets(k, at);
  y[at[0]] = x[at[1]];
}

Support supports(const Transpose::Args& args, const Context&) {
  if (args.moves.empty() || args.moves.element_bytes == 4) return supported;
  return unsupported("takes elements of 4 bytes");
}

void run(const Transpose::Args& args, Context& context) {
  with_words<4>(args, [&]<class T>() {
    launch_elements<T>(context, transpose_naive_read_coalesced<T>, args, Along::x);
  });
}

const Rung<Transpose> self{{.name = "naive_read_coalesced",
                            .step = 10,
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};

}  // namespace
}  // namespace rung
