// SPDX-License-Identifier: Apache-2.0
// softmax / the row in registers and shared memory
//
// Idea     A row of up to 256 KiB fits in an SM: a block of 1024 threads keeps half of it in
//          registers, in the type of x, and half in shared memory, filled by asynchronous copies.
//          Each thread reads only elements it copied itself, so no barrier is needed.
// Changes  against registers_single_read: rows of up to 65536 f32, and 131072 f16 or bf16, elements
//          are read once.
// Cost     1 load and 1 store per element; two exponentials, because registers cannot hold the
//          first.
// Limits   Contiguous rows; f32, f16 and bf16 with results of the same type. Only one block fits
//          per SM, so its loads do not overlap its computation.
#include "rung/ops/softmax/cuda/detail/packed_row.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

struct alignas(128) LongShared {
  RowValues<Total<float>> scratch;
  [[nodiscard]] __device__ __forceinline__ PackedWords* stage() {
    return reinterpret_cast<PackedWords*>(this + 1);
  }
};

template <class T, RowKind kind>
__global__ void __launch_bounds__(max_threads)
    softmax_shared_single_read(Rows<2> rows, SoftmaxCall<T, T> p) {
  auto& memory = shared<LongShared>();
  const MergePowers<float> merge{Power<float>(p.scale)};
  int turn = 0;
  for_each_row(rows.count(), [&](std::int64_t row, bool) {
    const T* x = p.x + rows.template offset<0>(row);
    packed_row<long_packs, long_staged, kind, long_groups>(
        x, p.y + rows.template offset<1>(row), rows.length, lead_of_row<kind>(x), p, merge.power,
        memory.stage(), [&](const Total<float>& mine) {
          return row_all_reduce<true>(mine, merge, memory.scratch, turn);
        });
    turn ^= 1;
  });
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  const LongBlock block = visit<float, f16, bf16>(
      args.x.dtype, [&]<class T>() { return long_block(packs_of_row<T>(args)); });
  const bool fits =
      block.fits && block.stage_bytes + sizeof(LongShared) <= context.info().shared_per_block;
  return fits ? supported : unsupported("the row exceeds an SM");
}

Work work(const Softmax::Args& args, const Context&) {
  const std::int64_t packs =
      visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { return packs_of_row<T>(args); });
  const int threads = long_block(packs).threads;
  return row_work(args.count(), {.threads = threads}, ceil_div(packs, threads),
                  pack_path(args.length(), args.x.dtype), 64);
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const LongBlock block = long_block(packs_of_row<T>(args));
    launch_rows(context, args.rows,
                {.threads = block.threads,
                 .rows = 1,
                 .shared_bytes = sizeof(LongShared) + block.stage_bytes},
                is_regular<T, T>(args)   ? softmax_shared_single_read<T, RowKind::regular>
                : is_shifted<T, T>(args) ? softmax_shared_single_read<T, RowKind::shifted>
                                         : softmax_shared_single_read<T, RowKind::ragged>,
                call_of<T, T>(args));
  });
}

const Rung<Softmax> self{{.name = "shared_single_read",
                          .step = 55,
                          .after = "registers_single_read",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
