// SPDX-License-Identifier: Apache-2.0
// norm / threads
//
// Idea     rows are divided among threads in equal shares; few long rows are shared, block by
//          block: statistics of the blocks, a barrier, then y. Blocks do not depend on the threads,
//          so the bits do not either.
// Changes  against row_pipeline: all cores.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
// Source   -
#include <algorithm>

#include "rung/cpu/team.hpp"
#include "rung/ops/norm/cpu/detail/kernels.hpp"
#include "rung/ops/norm/shared/cpu/plan.hpp"

// The plan of a call: how its memory is laid out, which thread does which rows, and whether y is
// stored non-temporally.
namespace rung::norm_cpu {
namespace {

/// Below this many elements a second thread costs more than it does (some 5 us).
constexpr std::int64_t min_elements = 1 << 15;

/// A larger y is not in a cache when somebody reads it. Half of a usual last-level cache, which x
/// shares; what the system tells of it may be the sum over all of a machine's.
constexpr double stays_in_cache = 16 << 20;

Kernels kernels(DType dtype) {
  return visit<float, double, f16, bf16>(dtype, []<class T>() { return kernels_for<T>(); });
}

/// The rows that are neighbors in memory, one element apart in all that is as large as x; 1 when
/// there are none.
std::int64_t adjacent_rows_of(const norm_lines::Lines& lines) {
  if (lines.rows.rank == 0) return 1;
  const int inner = lines.rows.rank - 1;
  for (const int tensor :
       {norm_lines::row_x, norm_lines::row_residual, norm_lines::row_y, norm_lines::row_sum}) {
    if (lines.rows.strides[tensor][inner] != 1) return 1;
  }
  return lines.rows.shape[inner];
}

/// Each tensor's rows are contiguous; gamma and beta are copied where they are not.
bool rows_are_contiguous(const norm_lines::Lines& lines) {
  if (lines.columns.rank > 1) return false;
  if (lines.columns.rank == 0) return true;
  for (const int tensor : {norm_lines::column_x, norm_lines::column_residual, norm_lines::column_y,
                           norm_lines::column_sum}) {
    if (lines.columns.strides[tensor][0] != 1) return false;
  }
  return true;
}

Call make_call(const Norm::Args& args) {
  Call call;
  call.args = &args;
  call.lines = norm_lines::lines_of(args);
  call.n = call.lines.columns.size();
  call.adjacent_rows = adjacent_rows_of(call.lines);
  call.access = rows_are_contiguous(call.lines) ? Access::along
                : call.adjacent_rows > 1        ? Access::across
                                                : Access::gathered;
  // A y that replaces something is in a cache already.
  const bool in_place = args.y.data == args.x.data || args.residual.data != nullptr;
  const auto bytes = static_cast<double>(call.n * call.lines.rows.size()) *
                     static_cast<double>(size_of(args.y.dtype));
  call.streams = call.access == Access::along && call.n >= 64 && bytes > stays_in_cache &&
                 (!in_place || args.sum.data != nullptr) && args.y.data != args.x.data;
  return call;
}

/// gamma or beta, contiguous and in the arithmetic type: as it is, or copied to `copy`.
const void* weights(const ConstTensorRef& tensor, const Collapsed<6>& columns, int which,
                    std::int64_t n, DType type, std::byte*& copy, bool fill) {
  if (tensor.data == nullptr) return nullptr;
  const bool contiguous =
      columns.rank == 0 || (columns.rank == 1 && columns.strides[which][0] == 1);
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  if (contiguous && tensor.dtype == arithmetic) return tensor.data;
  std::byte* const place = copy;
  copy += static_cast<std::size_t>(n + 16) * size_of(arithmetic) / 64 * 64 + 64;
  if (!fill) return place;
  if (contiguous && tensor.dtype == type) {
    kernels(type).widen(tensor.data, n, place);
    return place;
  }
  visit<float, double, f16, bf16>(tensor.dtype, [&]<class T>() {
    auto* to = reinterpret_cast<Accumulator<T>*>(place);
    const auto* from = static_cast<const T*>(tensor.data);
    std::int64_t at[6];
    for (std::int64_t i = 0; i < n; ++i) {
      columns.offsets(i, at);
      to[i] = static_cast<Accumulator<T>>(from[at[which]]);
    }
  });
  return place;
}

}  // namespace

void normalize(const Norm::Args& args, Context& context, int threads) {
  Call call = make_call(args);
  const std::int64_t n = call.n;
  const std::int64_t rows = call.lines.rows.size();
  if (rows == 0) return;
  const std::int64_t blocks = blocks_of(n);
  if (rows * std::max<std::int64_t>(n, 1) < min_elements) threads = 1;
  // Rows that are several blocks long and fewer than would keep all threads busy are shared.
  const bool shares =
      threads > 1 && call.access == Access::along && blocks > 1 && rows < 4 * threads;

  // A panel of rows across is four lines of the cache wide: shares that begin at one waste none.
  const std::int64_t unit = call.access == Access::across ? 64 : 1;
  const std::int64_t units = (rows + unit - 1) / unit;
  // A thread without a row needs no copy of one.
  if (!shares) threads = static_cast<int>(std::min<std::int64_t>(threads, units));

  // The workspace: copies of gamma and beta, then what each thread needs (or all, of shared rows).
  const auto rounded = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  std::size_t each = 0;
  if (shares) each = static_cast<std::size_t>(blocks) * sizeof(Moments<double>);
  if (call.access == Access::gathered) {
    each = 2 * static_cast<std::size_t>(n) * size_of(args.x.dtype);
  }
  const std::size_t parts = static_cast<std::size_t>(shares ? rows : threads);
  std::byte* measure = nullptr;
  const auto place_weights = [&](std::byte*& at, bool fill) {
    call.gamma = weights(args.gamma, call.lines.columns, norm_lines::column_gamma, n, args.x.dtype,
                         at, fill);
    call.beta =
        weights(args.beta, call.lines.columns, norm_lines::column_beta, n, args.x.dtype, at, fill);
  };
  place_weights(measure, false);
  const auto copies = static_cast<std::size_t>(measure - static_cast<std::byte*>(nullptr));
  const std::size_t bytes = copies + parts * rounded(each);
  auto* memory = bytes > 0 ? static_cast<std::byte*>(context.workspace(bytes)) : nullptr;
  place_weights(memory, true);

  const Kernels with = kernels(args.x.dtype);
  if (shares) {
    auto* moments = reinterpret_cast<Moments<double>*>(memory);
    cpu::run_team(threads, [&](const cpu::Team& team) {
      const cpu::Range part = team.share(rows * blocks);
      const BlocksJob job{&call, part.begin, part.end, moments};
      with.statistics(job);
      team.wait();
      with.write(job);
    });
    return;
  }
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range part = team.share(units);
    std::byte* scratch = memory + static_cast<std::size_t>(team.rank()) * rounded(each);
    with.rows({&call, part.begin * unit, std::min(rows, part.end * unit), scratch});
  });
}

double seconds(const Norm::Args& args, int threads) {
  const Cost cost = Norm::cost(args);
  const Call call = make_call(args);
  // Elements copied one at a time cost as much as in two_pass; a second thread helps by a half.
  const double rate = call.access == Access::gathered ? 2e9 : 40e9;
  const double speedup = args.rows() * args.columns() < min_elements ? 1 : 0.5 + 0.5 * threads;
  return 1e-7 + cost.bytes / rate / speedup;
}

}  // namespace rung::norm_cpu

namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context& context) {
  return norm_cpu::seconds(args, context.threads());
}

void run(const Norm::Args& args, Context& context) {
  norm_cpu::normalize(args, context, context.threads());
}

const Rung<Norm> self{
    {.name = "threads", .step = 90, .after = "row_pipeline", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
