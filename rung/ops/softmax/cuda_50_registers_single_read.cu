// SPDX-License-Identifier: Apache-2.0
// softmax / the row in registers
//
// Idea     each thread reads its part of the row once, in 16-byte loads that are all under way
//          before the first is used, and keeps it: maximum, exponentials and results are made from
//          registers. As many threads as the row is long: 8 for 64 elements, a warp up to 1024 f32
//          (32 elements a thread), then 16 elements a thread, up to 1024 threads.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions, and
//          rows of every length keep as many bytes under way.
// Cost     1 read and 1 write an element. An exponential each: exp2 of the argument times log2(e),
//          of which a multiprocessor does 16 a cycle, where memory brings it some 3 f32.
// Limits   contiguous rows of up to 16384 elements (backward f32: 8192; f64: half as many). Rows
//          that do not begin at multiples of 16 bytes are cut there; where x and y are misaligned
//          by different amounts, y is written element by element.
// Tried    -
// Source   QuACK (T. Dao and others, 2025) for threads a row.
#include "rung/ops/softmax/cuda_registers.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

template <class P, int packs, int threads>
__global__ void __launch_bounds__(threads) softmax_registers_single_read(Rows<2> rows, P p) {
  using T = typename P::In;
  using Y = typename P::Out;
  using Sum = typename P::Sum;
  constexpr int width = pack_width<T>;
  RowScratch<Sum>& scratch = shared<Shared<Sum>>().scratch;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    const T* x = p.x + (exists ? rows.template offset<0>(row) : 0);
    const int lead = lead_of<width>(x);
    const RowPacks<const T, width, int> in(x, exists ? rows.length : 0, lead);
    // What does not exist reads as -infinity, whose exponential is 0.
    const T nothing = convert<T>(-std::numeric_limits<Sum>::infinity());
    Sum values[packs][width];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<T, width> pack = in.load(pack_index(k), nothing);
#pragma unroll
      for (int i = 0; i < width; ++i) values[k][i] = convert<Sum>(pack[i]);
    }
    Sum maximum = no_maximum<Sum>;
    for_each_value(values, [&](Sum& value) { maximum = Larger{}(maximum, value); });
    maximum = row_reduce(maximum, Larger{}, scratch);
    Sum sum = 0;
    for_each_value(values, [&](Sum& value) {
      const Sum z = (value - maximum) * p.scale;
      const Sum e = power(z);
      sum += e;
      value = p.log ? z : e;
    });
    sum = row_reduce(sum, Plus{}, scratch);
    const Sum factor = p.log ? Sum(1) : reciprocal(sum);
    const Sum shift = p.log ? logarithm(sum) : Sum(0);
    const RowPacks<Y, width, int> out(p.y + (exists ? rows.template offset<1>(row) : 0),
                                      exists ? rows.length : 0, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      if (pack_index(k) >= out.packs()) continue;
      Pack<Y, width> pack;
#pragma unroll
      for (int i = 0; i < width; ++i) pack[i] = convert<Y>(values[k][i] * factor - shift);
      out.store(pack_index(k), pack);
    }
  });
}

/// y and dy stay as they are read, packed: 16-bit types take half the registers.
template <class P, int packs, int threads>
__global__ void __launch_bounds__(threads) softmax_backward_registers(Rows<3> rows, P p) {
  using T = typename P::In;
  using Y = typename P::Out;
  using Sum = typename P::Sum;
  constexpr int width = pack_width<T>;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    const std::int64_t length = exists ? rows.length : 0;
    const int lead = lead_of<width>(p.y + at[0]);
    const RowPacks<const T, width, int> y(p.y + at[0], length, lead);
    const RowPacks<const T, width, int> dy(p.dy + at[1], length, lead);
    Pack<T, width> values[packs];
    Pack<T, width> gradients[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      values[k] = y.load(pack_index(k), zero<T>());
      gradients[k] = dy.load(pack_index(k), zero<T>());
    }
    Sum sum = 0;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const Sum gradient = convert<Sum>(gradients[k][i]);
        sum += p.log ? gradient : gradient * convert<Sum>(values[k][i]);
      }
    }
    sum = row_reduce(sum, Plus{}, shared<Shared<Sum>>().scratch);
    const RowPacks<Y, width, int> dx(p.dx + at[2], length, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      if (pack_index(k) >= dx.packs()) continue;
      Pack<Y, width> pack;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        pack[i] = convert<Y>(gradient_of(convert<Sum>(values[k][i]), convert<Sum>(gradients[k][i]),
                                         sum, p.scale, p.log));
      }
      dx.store(pack_index(k), pack);
    }
  });
}

Support supports(const Softmax::Args& args, const Context&) {
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  const bool fits = visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    return fits_registers(packs_of_row<T>(args), args.backward ? kept_backward : kept_forward<T>);
  });
  return fits ? supported : unsupported("the row exceeds a block's registers");
}

double estimate(const Softmax::Args& args, const Context& context) {
  // Above 8192 elements a block fills a multiprocessor: nothing hides its barriers.
  return seconds(args, context, args.length() <= 8192 ? 1.05 : 1.2);
}

/// Launches `by_warp` where a warp holds a row, else `by_block`.
template <int N, class P>
void launch_kept(Context& context, const Softmax::Args& args, const Rows<N>& rows, const P& p,
                 Kept kept, void (*by_warp)(Rows<N>, P), void (*by_block)(Rows<N>, P)) {
  RowBlock block = register_block(packs_of_row<typename P::In>(args), kept);
  block.shared_bytes = sizeof(Shared<typename P::Sum>);
  launch_rows(context, rows, block, block.threads <= 32 ? by_warp : by_block, p);
}

void run(const Softmax::Args& args, Context& context) {
  constexpr int small = warp_block_threads;
  constexpr int large = most_threads;
  if (args.backward) {
    with_backward_types(args, [&]<class T, class Y>() {
      using P = Backward<T, Y>;
      constexpr Kept kept = kept_backward;
      launch_kept(context, args, args.rows, backward_of<T, Y>(args), kept,
                  softmax_backward_registers<P, kept.by_warp, small>,
                  softmax_backward_registers<P, kept.by_block, large>);
    });
  } else {
    with_forward_types(args, [&]<class T, class Y>() {
      using P = Forward<T, Y>;
      constexpr Kept kept = kept_forward<T>;
      launch_kept(context, args, forward_rows(args), forward_of<T, Y>(args), kept,
                  softmax_registers_single_read<P, kept.by_warp, small>,
                  softmax_registers_single_read<P, kept.by_block, large>);
    });
  }
}

const Rung<Softmax> self{{.name = "registers_single_read",
                          .step = 50,
                          .after = "warp_per_row",
                          .backend = device_backend,
                          .supports = supports,
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
