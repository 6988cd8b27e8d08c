// SPDX-License-Identifier: Apache-2.0
// pool / separable
//
// Idea     A window is reduced along its rows, then along its columns: a block first pools x down
//          the rows of each window, for all columns, into shared memory, and then pools these
//          results along the columns.
// Changes  Against shared_rows: kh + kw taps per output instead of kh kw. The kh loads from global
//          memory are coalesced whatever the stride, with several in flight. Shared memory holds a
//          row of results per row of y instead of x, and rows of y are numbered across planes, so
//          that small images fill a block too.
// Cost     kh / sh loads per element of x, all but the first from the L1 or L2 cache; a store to
//          shared memory per column of x and row of y, and kw loads per output.
// Limits   Contiguous rows of up to 48 KiB in the arithmetic type; maximum, with its position,
//          average, l2.
#include <type_traits>

#include "rung/ops/pool/cuda/detail/images.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int max_shared = 48 << 10;
constexpr int usual_shared = 16 << 10;  // allows eight blocks per SM
constexpr int loads = 4;                // columns per thread at a time

/// Maximum and its row: the first of equal maxima, the last of several NaN.
template <class Sum>
struct Maximum {
  Sum value;
  int row;
};

template <Pooling kind, bool with_position, class T>
__global__ void __launch_bounds__(threads)
    pool_separable(Images<T> p, std::int64_t all_rows, int group, int pitch) {
  using Sum = Accumulator<T>;
  using Kept = std::conditional_t<with_position, Maximum<Sum>, Sum>;
  Kept* const tile = &shared<Kept>();
  const int lane = static_cast<int>(threadIdx.x);
  const int lanes = static_cast<int>(blockDim.x);
  const int width = static_cast<int>(p.columns.in);
  const std::int64_t first = std::int64_t{blockIdx.x} * group;
  const int rows = static_cast<int>(smaller<std::int64_t>(group, all_rows - first));
  const auto place_of = [&](int r) {
    std::int64_t rest = first + r;
    OutputPosition at{};
    at.oh = take_axis(rest, p.rows.out);
    at.c = take_axis(rest, p.y.shape[1]);
    at.n = rest;
    return at;
  };

  for (int r = static_cast<int>(threadIdx.y); r < rows; r += static_cast<int>(blockDim.y)) {
    const OutputPosition at = place_of(r);
    const PoolTaps taps = p.rows.taps(at.oh);
    const int row = static_cast<int>(p.rows.start(at.oh) + taps.begin * p.rows.dilation);
    const T* const from = &p.x(at.n, at.c, row, 0);
    const std::int64_t step = p.rows.dilation * p.x.strides[2];
    for (int first_column = lane; first_column < width; first_column += loads * lanes) {
      Pooled<kind, Sum> pooled[loads];
      const T* x = from + first_column;
      for (int i = 0; i < static_cast<int>(taps.count()); ++i, x += step) {
        T values[loads];
#pragma unroll
        for (int l = 0; l < loads; ++l) {
          if (first_column + l * lanes < width) values[l] = x[l * lanes];
        }
#pragma unroll
        for (int l = 0; l < loads; ++l) {
          if (first_column + l * lanes >= width) continue;
          if constexpr (with_position) {
            pooled[l].take_at(convert<Sum>(values[l]), i);
          } else {
            pooled[l].take(convert<Sum>(values[l]));
          }
        }
      }
#pragma unroll
      for (int l = 0; l < loads; ++l) {
        const int column = first_column + l * lanes;
        if (column >= width) break;
        if constexpr (with_position) {
          const int at_row = row + static_cast<int>(pooled[l].position * p.rows.dilation);
          tile[r * pitch + column] = {pooled[l].value, at_row};
        } else {
          tile[r * pitch + column] = pooled[l].value;
        }
      }
    }
  }
  __syncthreads();

  for (int r = static_cast<int>(threadIdx.y); r < rows; r += static_cast<int>(blockDim.y)) {
    OutputPosition at = place_of(r);
    for (int ow = lane; ow < static_cast<int>(p.columns.out); ow += lanes) {
      at.ow = ow;
      const PoolTaps taps = p.columns.taps(ow);
      const int column = static_cast<int>(p.columns.start(ow) + taps.begin * p.columns.dilation);
      const int dilation = static_cast<int>(p.columns.dilation);
      const Kept* from = tile + r * pitch + column;
      if constexpr (with_position) {
        Maximum<Sum> best = *from;
        int best_column = column;
        for (int j = 1; j < static_cast<int>(taps.count()); ++j) {
          from += dilation;
          const bool is_nan = from->value != from->value;
          const bool both = is_nan && best.value != best.value;
          // Row-major order of the window decides among equal maxima, and among several NaN.
          const bool later = from->row >= best.row;
          const bool replaces =
              both ? later
                   : is_nan || from->value > best.value || (from->value == best.value && !later);
          if (!replaces) continue;
          best = *from;
          best_column = column + j * dilation;
        }
        finish(p, at, best.value);
        write_index(p, at, best.row * p.columns.in + best_column);
      } else {
        Sum total = *from;
        for (int j = 1; j < static_cast<int>(taps.count()); ++j) {
          from += dilation;
          if constexpr (kind == Pooling::max) {
            Pooled<kind, Sum> pooled{.value = total};
            pooled.take(*from);
            total = pooled.value;
          } else {
            total += *from;
          }
        }
        const Pooled<kind, Sum> pooled{.value = total};
        finish(p, at, pooled.result(divisor_of<kind>(p, at.oh, at.ow)));
      }
    }
  }
}

/// Returns the pitch of a row in shared memory: odd, so that rows of the block begin in different
/// banks.
int pitch_of(const Pool::Args& args) { return static_cast<int>(args.columns.in) | 1; }
int row_bytes(const Pool::Args& args) {
  const int element = args.x.dtype == DType::f64 ? 8 : 4;
  return pitch_of(args) * (args.has_indices() ? 2 * element : element);
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() == Pooling::weighted) return unsupported("maximum, average and l2");
  if (args.x.strides[3] != 1) return unsupported("the rows of x must be contiguous");
  if (args.columns.in > max_shared || row_bytes(args) > max_shared) {
    return unsupported("a row must fit in 48 KiB");
  }
  const std::int64_t rows = args.images() * args.channels() * args.rows.out;
  return rows <= 0x7fffffff ? supported : unsupported("2^31 rows of y and more");
}

/// Partition of y's rows: a block computes `group` rows, `at_once` at a time.
struct Cut {
  std::int64_t rows;
  int lanes, at_once, group;
};
Cut cut_of(const Pool::Args& args) {
  Cut cut{.rows = args.images() * args.channels() * args.rows.out, .lanes = 32};
  const int bytes = larger(row_bytes(args), 1);
  // Lanes: a power of two that covers the columns of a row.
  while (cut.lanes > 4 && cut.lanes / 2 >= args.columns.in) cut.lanes /= 2;
  cut.at_once = threads / cut.lanes;
  // Rows: as many as fit with eight blocks per SM, but few enough for several blocks per SM.
  constexpr std::int64_t few_blocks = 1024;
  const std::int64_t fitting =
      smaller<std::int64_t>(usual_shared / bytes, ceil_div(cut.rows, few_blocks));
  cut.group = static_cast<int>(fitting > cut.at_once ? fitting / cut.at_once * cut.at_once
                                                     : clamped(max_shared / bytes, 1, cut.at_once));
  return cut;
}

Work work(const Pool::Args& args, const Context&) {
  const Cut cut = cut_of(args);
  const std::int64_t down = ceil_div(args.columns.in, std::int64_t{loads} * cut.lanes);
  return pool_facts(ceil_div(cut.rows, std::int64_t{cut.group}),
                    ceil_div(cut.group, cut.at_once) * (1 + down * args.rows.kernel));
}

void run(const Pool::Args& args, Context& context) {
  const Cut cut = cut_of(args);
  const auto start = [&]<Pooling kind, bool with_position>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      launch(context,
             {.grid = ceil_div(cut.rows, std::int64_t{cut.group}),
              .block = {cut.lanes, cut.at_once},
              .shared_bytes = static_cast<std::size_t>(cut.group * row_bytes(args))},
             pool_separable<kind, with_position, T>, images_of<T>(args), cut.rows, cut.group,
             pitch_of(args));
    });
  };
  if (args.kind() == Pooling::average) return start.template operator()<Pooling::average, false>();
  if (args.kind() == Pooling::l2) return start.template operator()<Pooling::l2, false>();
  if (args.has_indices()) return start.template operator()<Pooling::max, true>();
  start.template operator()<Pooling::max, false>();
}

const Rung<Pool> self{{.name = "separable",
                       .step = 40,
                       .after = "shared_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
