// SPDX-License-Identifier: Apache-2.0
// norm / cluster rows
//
// Idea     a row longer than the registers of a block is spread over the 2, 4 or 8 blocks of a
//          cluster: each holds its part, and the blocks put their sums together through each
//          other's shared memory. The row is still read once.
// Changes  against registers_single_read: rows of up to 32768 packs of 16 bytes - 131072 of f32,
//          262144 of bf16 - and no block of 1024 threads with 64 registers each.
// Cost     what must be; two barriers of the cluster a row (one for RMS norm).
// Limits   compute capability 9; contiguous rows of whole, aligned packs.
// Tried    nothing on a GPU yet.
// Source   W. Guo, T. Dao et al., QuACK, 2025.
#include "rung/device/ptx_cluster.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda_registers.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 512;
constexpr int packs = 8;
constexpr int most_blocks = 8;

template <class W>
struct Shared {
  RegisterShared<W> block;
  W sum;                  // what the other blocks read
  Moments<W> moments[2];  // of this row and the one before, which a slower block may still read
};

/// The threads of a row are those of a cluster.
template <class W>
struct OneCluster {
  Shared<W>& scratch = shared<Shared<W>>();
  int rank = ptx::cluster_rank();
  int blocks = ptx::cluster_size();
  int turn = 0;

  __device__ __forceinline__ int thread() const {
    return rank * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  }
  __device__ __forceinline__ int threads() const { return blocks * static_cast<int>(blockDim.x); }
  template <class Body>
  __device__ __forceinline__ void for_each(std::int64_t rows, Body&& body) {
    const std::int64_t step = gridDim.x / blocks;
    for (std::int64_t row = blockIdx.x / blocks; row < rows; row += step) body(row, true);
    ptx::cluster_sync();  // shared memory that others may still read must not go away
  }

  /// The blocks' values, put together in the order of ranks: the same in every block.
  template <class V, class F>
  __device__ __forceinline__ V exchange(V& mine, V value, F combine) {
    if (threadIdx.x == 0) mine = value;
    ptx::cluster_sync();
    V all = *ptx::cluster_map(&mine, 0);
    for (int other = 1; other < blocks; ++other) {
      all = combine(all, *ptx::cluster_map(&mine, other));
    }
    return all;
  }
  /// Written again only after the barrier of the moments, which comes after all have read it.
  __device__ __forceinline__ W total(W sum) {
    return exchange(scratch.sum, row_reduce(sum, Plus{}, scratch.block.sums), Plus{});
  }
  __device__ __forceinline__ Moments<W> total(Moments<W> moments) {
    turn ^= 1;
    return exchange(scratch.moments[turn], row_reduce(moments, AddMoments{}, scratch.block.moments),
                    AddMoments{});
  }
};

template <class T>
__global__ void __launch_bounds__(threads) norm_cluster_rows(Call<T> call) {
  normalise_rows<OneCluster<Accumulator<T>>, packs>(call);
}

std::int64_t packs_of(const Norm::Args& args) {
  return args.columns() / static_cast<std::int64_t>(16 / size_of(args.x.dtype));
}

Support supports(const Norm::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("clusters need compute capability 9.0");
  }
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  if (!all_packs_whole(args)) return unsupported("rows of whole, aligned packs of 16 bytes");
  if (packs_of(args) > std::int64_t{most_blocks} * threads * packs) {
    return unsupported("the row is longer than the registers of a cluster hold");
  }
  return supported;
}

double estimate(const Norm::Args& args, const Context& context) {
  // While a block of 512 can hold the row, its own barrier is the cheaper one.
  return seconds(args, context, 1, packs_of(args) <= threads * packs ? 0.8 : 0.96);
}

void run(const Norm::Args& args, Context& context) {
  std::int64_t blocks = 2;
  while (blocks * threads * packs < packs_of(args)) blocks *= 2;
  with_call(args, [&]<class T>(const Call<T>& call) {
    constexpr std::size_t shared_bytes = sizeof(Shared<Accumulator<T>>);
    const std::int64_t resident =
        resident_blocks(context, norm_cluster_rows<T>, threads, shared_bytes) / blocks;
    launch(context,
           {.grid = blocks * std::min(std::max<std::int64_t>(resident, 1), call.rows),
            .block = threads,
            .shared_bytes = shared_bytes,
            .cluster = blocks},
           norm_cluster_rows<T>, call);
  });
}

const Rung<Norm> self{{.name = "cluster_rows",
                       .step = 60,
                       .after = "registers_single_read",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
