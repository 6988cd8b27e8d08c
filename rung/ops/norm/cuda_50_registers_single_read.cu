// SPDX-License-Identifier: Apache-2.0
// norm / registers, single read
//
// Idea     a row is spread over the registers of its threads - part of a warp for short rows, up
//          to 1024 threads for long ones, 32 elements each - and stays there: the two passes of an
//          exact variance, and y, all come from one read. One block a row, many of them on a
//          multiprocessor, so that some always load while others reduce and write.
// Changes  against warp_per_row: x is read once in all; the threads of a row grow with it; its
//          warps meet once (cuda_parts.hpp). y is stored such that the caches give it up first.
// Cost     what must be: x once, y once.
// Limits   contiguous rows of up to 32768 elements, 8192 of f64. Rows whose length or address cuts
//          packs: f32 and f64 half that, and their weights are loaded one by one.
// Tried    H200, copy 4200 GB/s, f32 65536x1024 and 16384x4096: this 4012 and 4007 GB/s. Blocks
//          that stay, gamma and beta in registers, rows through a ring in shared memory by cp.async
//          or bulk copies: 3801 and 3688; the deeper the ring, the slower. Plain stores: 3829 and
//          3890. bf16 4096x16384: elements kept widened from pass to pass, in 56 registers, 3581;
//          widened anew, in 40, 3845; 64 of them a thread 3765 (but 8192x32768 4027).
// Source   W. Guo, T. Dao et al., QuACK, 2025 (threads by row length).
#include "rung/ops/norm/cuda_registers.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int packs_cut = 4;
template <class T>
constexpr int most_threads_cut = sizeof(T) == 4 ? 1024 : 512;

std::int64_t packs_of(const Norm::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.columns(), width) + (all_packs_whole(args) ? 0 : 1);  // cut at either end
}

Support supports(const Norm::Args& args, const Context& context) {
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  constexpr std::int64_t most_rows = 0x7fffff00;
  if (args.rows() > most_rows) return unsupported("more than 2^31 rows");
  const std::int64_t threads = args.x.dtype == DType::f32 ? 1024 : 512;
  if (packs_of(args) > threads * (all_packs_whole(args) ? 8 : packs_cut)) {
    return unsupported("the row is longer than the registers of a block hold");
  }
  return supported;
}

double estimate(const Norm::Args& args, const Context& context) {
  // A block that fills a multiprocessor alone has nobody to load while it reduces.
  const bool alone = args.x.dtype == DType::f32 && args.columns() > 16384;
  return seconds(args, context, 1, !all_packs_whole(args) ? 0.4 : alone ? 0.78 : 0.83);
}

template <class T>
void launch_rows_of(Context& context, const Call<T>& call, RowBlock block,
                    void (*kernel)(Call<T>)) {
  block.shared_bytes = sizeof(RegisterShared<Accumulator<T>>);
  launch_call(context, call, block, kernel);
}

/// Calls f<kind>() for the kind of the call; short rows, which share a warp, are of no usual kind.
template <class T, class F>
void with_kind(const Call<T>& call, const RowBlock& block, F&& f) {
  const Usual kind = block.threads >= 32 ? usual(call) : Usual::no;
  if (kind == Usual::gamma_and_beta) return f.template operator()<Usual::gamma_and_beta>();
  if (kind == Usual::gamma) return f.template operator()<Usual::gamma>();
  f.template operator()<Usual::no>();
}

/// 32 elements a thread, f64 16; where a row takes more than 512 threads, 64 of 16 bits. At least 8
/// threads, whose packs are a line of the cache.
template <class T>
void launch_whole(Context& context, const Call<T>& call) {
  constexpr int kept = kept_packs<T>;
  const std::int64_t packs = call.n / pack_width<T>;
  const RowBlock block = row_block(packs, kept, 8);
  if constexpr (sizeof(T) == 8) {
    launch_rows_of(context, call, block, norm_registers<T, kept, 512, 1, Usual::no>);
  } else {
    with_kind(call, block, [&]<Usual kind>() {
      if constexpr (sizeof(T) == 4) {
        if (block.threads <= 512 && kind != Usual::no) {
          launch_rows_of(context, call, block, norm_registers<T, kept, 512, 2, kind>);
        } else {
          launch_rows_of(context, call, block, norm_registers<T, kept, 1024, 1, kind>);
        }
      } else if (block.threads <= 512) {
        launch_rows_of(context, call, block, norm_registers<T, kept, 512, 3, kind>);
      } else {
        launch_rows_of(context, call, row_block(packs, 8, 512), norm_registers<T, 8, 512, 2, kind>);
      }
    });
  }
}

void run(const Norm::Args& args, Context& context) {
  const bool whole = all_packs_whole(args);
  with_call(args, [&]<class T>(const Call<T>& call) {
    if (whole) return launch_whole(context, call);
    launch_rows_of(context, call, row_block(packs_of(args), packs_cut, 1, most_threads_cut<T>),
                   norm_registers_cut<T, packs_cut, most_threads_cut<T>>);
  });
}

const Rung<Norm> self{{.name = "registers_single_read",
                       .step = 50,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
