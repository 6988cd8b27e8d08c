// SPDX-License-Identifier: Apache-2.0
// reduce / staged rows
//
// Idea     many contiguous rows of a few elements: a block copies about 16 KiB of them to shared
//          memory with 16-byte loads at any alignment, and each thread folds whole rows.
// Changes  against short_rows: 16-byte loads. There, one lane folds a row whose length is no
//          multiple of 16 bytes, so that a warp's load fetches single elements, a row's length
//          apart.
// Cost     x is read once. Rows of an even number of words have bank conflicts: they use half of
//          the banks.
// Limits   rows without gaps between them, up to 128 bytes and no multiple of 16; no products.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/device/row_chunk.hpp"
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int staged_bytes = 16 << 10;  // approximate bytes of rows per block
constexpr Index longest_staged_row = 128;

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_staged_rows(const void* x, RowChunks chunks, Index place_step, Result result, F fold) {
  using T = typename F::Element;
  start_dependent();
  const RowChunk chunk(chunks);
  const T* const from = static_cast<const T*>(x) + chunk.offset;
  T* const rows = behind_as(&shared<T>(), from);
  copy_in(rows, from, chunk.count);
  ptx::async_wait_all();
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < chunk.rows; row += block_threads) {
    const T* const elements = rows + row * chunks.length;
    typename F::State state = fold.identity();
    int i = 0;
#pragma unroll 1
    for (; i + 4 <= chunks.length; i += 4) fold.take(state, load<4>(elements + i), i);
#pragma unroll
    for (int u = 0; u < 3; ++u) {
      if (i + u < chunks.length) fold.take(state, Pack<T, 1>{{elements[i + u]}}, i + u);
    }
    store_state<F>(result, (chunk.first + row) * place_step, state, chunks.length);
  }
}

/// Returns the partition of the rows into groups, whose size is a multiple of a block's threads
/// unless that leaves too few groups per SM.
RowChunks staged_chunks(const Reduce::Args& args, const Context& context) {
  RowChunks chunks{.rows = args.results(),
                   .length = static_cast<int>(args.terms.size()),
                   .group = 1,
                   .lanes = 1};
  chunks.group = rows_of_group(chunks, size_of(args.x.dtype), block_threads, staged_bytes, context);
  return chunks;
}

template <class F>
void launch_staged_rows(const Reduce::Args& args, Context& context, const F& fold) {
  const RowChunks chunks = staged_chunks(args, context);
  launch(context,
         {.grid = chunks.blocks(),
          .block = block_threads,
          .shared_bytes = static_cast<std::size_t>(chunks.bytes<typename F::Element>()),
          .dependent = can_depend(context)},
         reduce_staged_rows<F>, args.x.data, chunks, args.kept.strides[1][0], result_of(args),
         fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_staged_rows(const Reduce::Args& args, Context& context);
template <>
void run_staged_rows<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_staged_rows(args, context, fold); });
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (const Support rows = require_rows(args); !rows) return rows;
  const Index length = args.terms.size();
  const bool follow = !args.has_segments() && args.terms.is_contiguous() && args.kept.rank == 1 &&
                      args.kept.strides[0][0] == length;
  if (!follow) return unsupported("contiguous rows that follow one another");
  const auto bytes = length * static_cast<Index>(size_of(args.x.dtype));
  if (bytes > longest_staged_row || bytes % load_bytes == 0) {
    return unsupported("rows of up to 128 bytes, no multiple of 16");
  }
  const Index most = Index{0x7fffffff} * block_threads;
  return args.results() <= most ? supported : unsupported("2^39 rows and more");
}

Work work(const Reduce::Args& args, const Context& context) {
  const RowChunks chunks = staged_chunks(args, context);
  const Index trips = ceil_div(chunks.group, block_threads);  // rows per thread
  return {.blocks = chunks.blocks(),
          .resident = 2048 / block_threads,
          .rounds = 1,
          .steps = trips * (1 + chunks.length),
          .path = fold_path(args)};
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_staged_rows<T>(args, context); });
}

const Rung<Reduce> self{{.name = "staged_rows",
                         .after = "short_rows",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
