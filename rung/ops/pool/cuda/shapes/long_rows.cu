// SPDX-License-Identifier: Apache-2.0
// pool / long rows
//
// Idea     A block computes part of one row of y, four outputs per thread, 256 apart: the row's
//          index and the start of its taps are computed once per block, and a thread computes only
//          the indices of one axis. The loads of four outputs are in flight together.
// Changes  Against narrow_indices, in which a window of two taps takes 200 instructions of index
//          arithmetic.
// Cost     kh kw loads per output, most of them from the L1 cache. Lanes beyond the end of a row
//          idle.
// Limits   Windows of 2 or 3 columns, contiguous rows of y; maximum and average, no indices.
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int group = 4;  // outputs per thread, `threads` apart
constexpr int piece = threads * group;

template <Pooling kind, int Columns, class T>
__global__ void __launch_bounds__(threads)
    pool_long_rows(Images<T> p, NarrowWindows g, Divisor pieces) {
  using Sum = Accumulator<T>;
  std::uint32_t number = blockIdx.x;
  const int first = pieces.take(number) * piece + static_cast<int>(threadIdx.x);
  OutputPosition at{};
  at.oh = g.height.take(number);
  at.c = g.channels.take(number);
  at.n = number;
  const NarrowTaps rows = g.rows.taps(static_cast<int>(at.oh));
  const T* row =
      &p.x(at.n, at.c, g.rows.start(static_cast<int>(at.oh)), 0) + rows.begin * g.row_step;
  T* const y = &p.y(at.n, at.c, at.oh, 0);
  const int width = static_cast<int>(g.width.value);

  // A missing tap reads the first column, and its value is ignored.
  int offset[group][Columns];
  bool has[group][Columns];
#pragma unroll
  for (int o = 0; o < group; ++o) {
    const int ow = first + o * threads;
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
      const int column = g.columns.start(ow) + j * g.columns.dilation;
      has[o][j] = ow < width && column >= 0 && column < g.columns.in;
      offset[o][j] = has[o][j] ? column : 0;
    }
  }
  const std::int64_t element_step = p.x.strides[3];
  Pooled<kind, Sum> pooled[group];
  for (int i = rows.begin; i < rows.end; ++i, row += g.row_step) {
    T values[group][Columns];
#pragma unroll
    for (int o = 0; o < group; ++o) {
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        if (has[o][j]) values[o][j] = row[offset[o][j] * element_step];
      }
    }
#pragma unroll
    for (int o = 0; o < group; ++o) {
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        if (has[o][j]) pooled[o].take(convert<Sum>(values[o][j]));
      }
    }
  }

  const int down =
      kind == Pooling::average ? g.rows.counted(static_cast<int>(at.oh), p.count_padding) : 1;
  const Sum bias = p.bias.data != nullptr ? convert<Sum>(p.bias(at.c)) : Sum(0);
#pragma unroll
  for (int o = 0; o < group; ++o) {
    const int ow = first + o * threads;
    if (ow >= width) break;
    const int across = kind == Pooling::average ? g.columns.counted(ow, p.count_padding) : 1;
    Sum value = pooled[o].result(static_cast<Sum>(down * across));
    if (p.bias.data != nullptr) value += bias;
    y[ow] = convert<T>(activate<T>(p.activation, value));
  }
}

std::int64_t blocks_of(const Pool::Args& args) {
  return args.images() * args.channels() * args.rows.out *
         ceil_div(args.columns.out, std::int64_t{piece});
}

Support supports(const Pool::Args& args, const Context&) {
  if ((args.kind() != Pooling::max && args.kind() != Pooling::average) || args.has_indices()) {
    return unsupported("maximum and average, no indices");
  }
  if (args.columns.kernel != 2 && args.columns.kernel != 3) {
    return unsupported("windows of 2 or 3 columns");
  }
  if (args.y.strides[3] != 1) return unsupported("the rows of y must be contiguous");
  return supports_narrow(args, blocks_of(args));
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(blocks_of(args), args.rows.kernel);
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t blocks = blocks_of(args);
  const auto start = [&]<Pooling kind, int Columns>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      launch(context, {.grid = blocks, .block = threads}, pool_long_rows<kind, Columns, T>,
             images_of<T>(args), narrow_windows(args),
             Divisor::of(ceil_div(args.columns.out, std::int64_t{piece})));
    });
  };
  const auto with_columns = [&]<Pooling kind>() {
    if (args.columns.kernel == 2) return start.template operator()<kind, 2>();
    start.template operator()<kind, 3>();
  };
  if (args.kind() == Pooling::max) return with_columns.template operator()<Pooling::max>();
  with_columns.template operator()<Pooling::average>();
}

const Rung<Pool> self{{.name = "long_rows",
                       .after = "narrow_indices",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
