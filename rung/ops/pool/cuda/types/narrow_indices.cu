// SPDX-License-Identifier: Apache-2.0
// pool / narrow indices
//
// Idea     One thread per output, with all indices in 32 bits: an output's position takes three
//          multiplications instead of three divisions, and the range of its taps within the image a
//          few comparisons. The loads of a row, or of four columns of it, are in flight together.
// Changes  Against every_call, which spends 300 to 600 instructions on a window of 9 taps, mostly
//          on index arithmetic: about a third of that.
// Cost     kh kw loads per output, most of them from the L1 cache.
// Limits   Fewer than 2^31 outputs; images of up to 2^29 along an axis.
// Source   H. Warren, Hacker's Delight, section 10-9.
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int batch = 4;  // columns whose loads are in flight together

/// Computes one output per thread. `Columns` is the number of a window's columns; 0: any number.
template <Pooling kind, bool with_position, int Columns, class T>
__global__ void __launch_bounds__(threads)
    pool_narrow_indices(Images<T> p, NarrowWindows g, std::uint32_t count) {
  using Sum = Accumulator<T>;
  const std::uint32_t thread = blockIdx.x * threads + threadIdx.x;
  if (thread >= count) return;
  const OutputPosition at = g.place(thread);
  const NarrowTaps rows = g.rows.taps(static_cast<int>(at.oh));
  const NarrowTaps columns = g.columns.taps(static_cast<int>(at.ow));
  const int h = g.rows.start(static_cast<int>(at.oh)) + rows.begin * g.rows.dilation;
  const int w = g.columns.start(static_cast<int>(at.ow));
  const T* row = &p.x(at.n, at.c, 0, 0) + h * p.x.strides[2] + w * p.x.strides[3];
  int position_of_row = h * g.columns.in + w;

  Pooled<kind, Sum> pooled;
  int position = -1;
  const auto take = [&](T element, int i, int j) {
    const Sum v = convert<Sum>(element);
    if constexpr (kind == Pooling::weighted) {
      pooled.take_weighted(v, p.weight(i, j));
    } else if constexpr (with_position) {
      if (v > pooled.value || v != v || position < 0) {
        pooled.value = v;
        position = position_of_row + j * g.columns.dilation;
      }
    } else {
      pooled.take(v);
    }
  };
  constexpr int rows_at_once = Columns > 0 ? 3 : 1;
#pragma unroll rows_at_once
  for (int i = rows.begin; i < rows.end; ++i, row += g.row_step) {
    if constexpr (Columns > 0) {
      T values[Columns];
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        if (j >= columns.begin && j < columns.end) values[j] = row[j * g.column_step];
      }
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        if (j >= columns.begin && j < columns.end) take(values[j], i, j);
      }
    } else {
      for (int first = columns.begin; first < columns.end; first += batch) {
        T values[batch];
#pragma unroll
        for (int b = 0; b < batch; ++b) {
          if (first + b < columns.end) values[b] = row[(first + b) * g.column_step];
        }
#pragma unroll
        for (int b = 0; b < batch; ++b) {
          if (first + b < columns.end) take(values[b], i, first + b);
        }
      }
    }
    position_of_row += g.rows.dilation * g.columns.in;
  }

  if constexpr (kind == Pooling::weighted) {
    finish(p, at, pooled.result(divisor_of<kind>(p, at.oh, at.ow)));
  } else {
    finish(p, at, pooled.result(narrow_divisor<kind, Sum>(g.rows, g.columns, at, p.count_padding)));
  }
  if constexpr (with_position) write_index(p, at, position);
}

Support supports(const Pool::Args& args, const Context&) {
  return supports_narrow(args, args.y.size());
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(ceil_div(args.y.size(), std::int64_t{threads}),
                    args.rows.kernel * ceil_div(args.columns.kernel, std::int64_t{batch}));
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  const std::int64_t width = args.columns.kernel;
  const auto start = [&]<Pooling kind, bool with_position, int Columns>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      launch(context, {.grid = ceil_div(count, std::int64_t{threads}), .block = threads},
             pool_narrow_indices<kind, with_position, Columns, T>, images_of<T>(args),
             narrow_windows(args), static_cast<std::uint32_t>(count));
    });
  };
  const auto with_columns = [&]<Pooling kind, bool with_position>() {
    if (width == 2) return start.template operator()<kind, with_position, 2>();
    if (width == 3) return start.template operator()<kind, with_position, 3>();
    start.template operator()<kind, with_position, 0>();
  };
  switch (args.kind()) {
    case Pooling::max:
      if (args.has_indices()) return with_columns.template operator()<Pooling::max, true>();
      return with_columns.template operator()<Pooling::max, false>();
    case Pooling::average:
      return with_columns.template operator()<Pooling::average, false>();
    case Pooling::l2:
      return start.template operator()<Pooling::l2, false, 0>();
    case Pooling::weighted:
      return start.template operator()<Pooling::weighted, false, 0>();
  }
}

const Rung<Pool> self{{.name = "narrow_indices",
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
