// SPDX-License-Identifier: Apache-2.0
// loss on a CPU: which rows count, chunks of rows on a team of threads, the result, estimates.
#include <algorithm>
#include <cstddef>

#include "rung/cpu/team.hpp"
#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung::loss_cpu {
namespace {

/// Below this many elements a second thread costs more than it does (some 5 us).
constexpr std::int64_t min_elements = 1 << 14;

struct Partial {
  double loss;
  std::int64_t counted;
};

}  // namespace

std::int64_t count_rows(const Loss::Args& args, std::int64_t begin, std::int64_t end) {
  const auto labels = LossLabels::of(args);
  if (!labels.ignores) return end - begin;
  std::int64_t counted = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    counted += labels.counts(labels.at(args.rows.template offset<Loss::row_target>(row))) ? 1 : 0;
  }
  return counted;
}

void write_result(const Loss::Args& args, double sum, std::int64_t counted) {
  if (args.options.reduction == LossReduction::mean && counted > 0) {
    sum /= static_cast<double>(counted);
  }
  if (args.result.dtype == DType::f64) {
    *static_cast<double*>(args.result.data) = sum;
  } else {
    *static_cast<float*>(args.result.data) = static_cast<float>(sum);
  }
}

RowsKernel scalar_rows_of(DType dtype) {
  return visit<float, double, f16, bf16>(dtype,
                                         []<class T>() -> RowsKernel { return scalar_rows<T>; });
}

void chunked(const Loss::Args& args, Context& context, int threads) {
  const Chunks chunks(args);
  const bool has_vectors = args.reads_contiguous();
  const VectorKernel vector_kernel = has_vectors ? vector_rows(args.x.dtype) : nullptr;
  const RowsKernel scalar_kernel = scalar_rows_of(args.x.dtype);
  const bool scatters = has_vectors && args.options.dx.data != nullptr && !args.writes_contiguous();
  if (args.count() * args.classes() < min_elements) threads = 1;
  threads =
      static_cast<int>(std::min<std::int64_t>(threads, std::max<std::int64_t>(chunks.count(), 1)));
  // A row of dx per thread, no more than dx itself has: every thread has a chunk of rows.
  constexpr std::size_t line = 64;
  const std::size_t spare_bytes =
      scatters ? round_up(static_cast<std::size_t>(args.classes()) * size_of(args.x.dtype), line)
               : 0;
  const std::size_t partial_bytes =
      round_up(static_cast<std::size_t>(chunks.count() + 1) * sizeof(Partial), line);
  auto* const memory = static_cast<std::byte*>(
      context.workspace(partial_bytes + static_cast<std::size_t>(threads) * spare_bytes));
  auto* const partial = reinterpret_cast<Partial*>(memory);
  const auto begin_of = [&](std::int64_t chunk) { return chunk * chunks.each; };
  const auto end_of = [&](std::int64_t chunk) {
    return std::min(chunks.rows, (chunk + 1) * chunks.each);
  };
  cpu::run_team(threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(chunks.count());
    std::int64_t counted = chunks.rows;
    if (args.ignores()) {
      for (std::int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
        partial[chunk].counted = count_rows(args, begin_of(chunk), end_of(chunk));
      }
      team.wait();
      counted = 0;
      for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk)
        counted += partial[chunk].counted;
    }
    const double factor = factor_of(args, counted);
    void* const spare =
        scatters ? memory + partial_bytes + static_cast<std::size_t>(team.rank()) * spare_bytes
                 : nullptr;
    for (std::int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
      partial[chunk].loss = has_vectors
                                ? vector_kernel(args, factor, begin_of(chunk), end_of(chunk), spare)
                                : scalar_kernel(args, factor, begin_of(chunk), end_of(chunk));
    }
    team.wait();
    if (team.rank() != 0) return;
    double sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk) sum += partial[chunk].loss;
    write_result(args, sum, counted);
  });
}

double scalar_seconds(const Loss::Args& args) {
  // Elements on a 2-core Emerald Rapids vCPU; what a row costs besides (f32 1000x1), on Zen 5.
  const bool exponentials = args.options.kind == LossKind::cross_entropy;
  const double element = exponentials ? 9e-9 : 2e-9;
  const double a_row = exponentials ? 12e-9 : 0;
  return static_cast<double>(args.count()) *
         (a_row + static_cast<double>(args.classes()) * element);
}

double chunked_seconds(const Loss::Args& args) {
  // Rows of 1 to 32 f32 on a 2-core Zen 5 vCPU: 10 to 21 ns each, of hinge 6.
  constexpr double an_element = 0.4e-9;
  const double a_row = args.options.kind == LossKind::cross_entropy ? 12e-9 : 5e-9;
  const auto rows = static_cast<double>(args.count());
  const double all = args.reads_contiguous()
                         ? rows * (a_row + an_element * static_cast<double>(args.classes()))
                         : 0.99 * scalar_seconds(args);
  return args.count() * args.classes() < min_elements ? all : all / 2;
}

}  // namespace rung::loss_cpu
