// SPDX-License-Identifier: Apache-2.0
// norm_backward / threads
//
// Idea     the shares of rows are divided among threads; after a barrier each adds up some columns
//          of the shares' sums, always in the order of the shares.
// Changes  against simd: all cores, and the same bits.
// Cost     as simd.
// Limits   contiguous rows.
// Tried    -
// Source   -
#include "rung/cpu/isa.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/norm_backward/cpu/detail/plan.hpp"

// The plan of a call: what the vector kernels take, which thread does which rows, the workspace.
namespace rung::norm_backward_cpu {
namespace {

/// Below this many elements a second thread costs more than it does.
constexpr std::int64_t min_elements = 1 << 15;

DType arithmetic(const NormBackward::Args& args) {
  return args.x.dtype == DType::f64 ? DType::f64 : DType::f32;
}

bool gamma_is_ready(const NormBackward::Args& args, const Collapsed<6>& columns) {
  const bool contiguous =
      columns.rank == 0 ||
      (columns.rank == 1 && columns.strides[NormBackward::column_gamma][0] == 1);
  return contiguous && args.gamma.dtype == arithmetic(args);
}

void copy_gamma(const NormBackward::Args& args, const Collapsed<6>& columns, void* to) {
  visit<float, double, f16, bf16>(args.gamma.dtype, [&]<class T>() {
    auto* copy = static_cast<Accumulator<T>*>(to);
    for (std::int64_t i = 0; i < columns.size(); ++i) {
      const std::int64_t at = columns.template offset<NormBackward::column_gamma>(i);
      copy[i] = static_cast<Accumulator<T>>(static_cast<const T*>(args.gamma.data)[at]);
    }
  });
}

}  // namespace

Support supports(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (lines.columns.rank == 0) return supported;
  bool contiguous = lines.columns.rank == 1;
  for (const int tensor :
       {NormBackward::column_x, NormBackward::column_dy, NormBackward::column_dx}) {
    contiguous = contiguous && lines.columns.strides[tensor][0] == 1;
  }
  return contiguous ? supported : unsupported("the rows of x, dy and dx must be contiguous");
}

double seconds(const NormBackward::Args& args, int threads) {
  // On a 2-core Zen 5 vCPU. Rows are what a short one costs, however many threads there are: the
  // choice of naive must not depend on them.
  constexpr double start = 90e-9, bytes_per_second = 30e9;
  // Without AVX-512 a part of a vector of halves is loaded element by element.
  const bool by_element = size_of(args.x.dtype) == 2 && cpu::isa() != cpu::Isa::avx512;
  const double a_row = by_element ? 40e-9 : 13.5e-9;
  const auto rows = static_cast<double>(NormBackward::lines_of(args).rows.size());
  if (args.x.size() < min_elements) threads = 1;
  return start + rows * a_row +
         NormBackward::cost(args).bytes / bytes_per_second / (0.5 + 0.5 * threads);
}

void differentiate(const NormBackward::Args& args, Context& context, int threads) {
  Call call;
  call.args = &args;
  call.lines = NormBackward::lines_of(args);
  call.rows = call.lines.rows.size();
  call.n = call.lines.columns.size();
  const std::size_t size = size_of(arithmetic(args));
  call.chunks = chunks_of(call.rows, call.n, size);
  if (call.rows * call.n < min_elements) threads = 1;

  const auto rounded = [](std::int64_t bytes) {
    return static_cast<std::size_t>(bytes + 63) / 64 * 64;
  };
  const auto row_bytes = call.n * static_cast<std::int64_t>(size);
  const bool copies = args.gamma.data != nullptr && !gamma_is_ready(args, call.lines.columns);
  const std::size_t gamma_bytes = copies ? rounded(row_bytes) : 0;
  const std::size_t sum_bytes = call.wants_sums() ? rounded(2 * call.chunks * row_bytes) : 0;
  auto* memory = gamma_bytes + sum_bytes > 0
                     ? static_cast<std::byte*>(context.workspace(gamma_bytes + sum_bytes))
                     : nullptr;
  call.gamma = copies ? memory : args.gamma.data;
  call.sums = memory + gamma_bytes;
  if (copies) copy_gamma(args, call.lines.columns, memory);

  const Kernels with = kernels(args.x.dtype);
  const auto ranks = call.wants_sums() ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    const cpu::Range chunks = team.share(call.chunks);
    with.rows(call, chunks.begin, chunks.end);
    if (!call.wants_sums()) return;
    team.wait();
    const cpu::Range columns = team.share(call.n);
    with.columns(call, columns.begin, columns.end);
  });
}

}  // namespace rung::norm_backward_cpu

namespace rung {
namespace {

Support supports(const NormBackward::Args& args, const Context&) {
  return norm_backward_cpu::supports(args);
}

double estimate(const NormBackward::Args& args, const Context& context) {
  return norm_backward_cpu::seconds(args, context.threads());
}

void run(const NormBackward::Args& args, Context& context) {
  norm_backward_cpu::differentiate(args, context, context.threads());
}

const Rung<NormBackward> self{{.name = "threads",
                               .step = 30,
                               .after = "simd",
                               .supports = supports,
                               .estimate = estimate,
                               .run = run}};

}  // namespace
}  // namespace rung
