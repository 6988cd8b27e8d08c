// SPDX-License-Identifier: Apache-2.0
// loss / the row in registers
//
// Idea     each thread reads its part of the row once, in 16-byte loads that are all in flight
//          before the first is used, and keeps it until the gradient is made of it. As many threads
//          as the row is long: one for a digit's 10 classes, a warp for 1024, a block for 32768.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions, rows
//          of every length in the same number of threads' registers.
// Cost     x once, dx once; one exponential per element for the sum, which is kept as well.
// Limits   contiguous rows of up to 32768 elements (f32 16384, f64 8192; squared: half as many are
//          kept, its targets too).
// Tried    -
// Source   softmax's ladder (ops/softmax/cuda/050_registers_single_read.cu).
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int max_threads = 1024;
constexpr int packs = 4;  // of a thread

template <class T>
constexpr int width = 16 / static_cast<int>(sizeof(T));

template <class T>
__global__ void __launch_bounds__(max_threads)
    loss_registers_single_read(Rows<4> rows, RowLoss<T> p) {
  using Sum = Accumulator<T>;
  constexpr int w = width<T>;
  auto& scratch = shared<Shared<Sum>>();
  const Sum factor = p.factor();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    const Row<T> row(rows, p, number, exists);
    const std::int64_t length = row.works ? rows.length : 0;
    const T* x = p.x + row.at[Loss::row_x];
    const int lead = lead_of<w>(x);
    const RowPacks<const T, w, int> from(x, length, lead);
    const T outside = convert<T>(-std::numeric_limits<Sum>::infinity());
    Pack<Sum, w> values[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      values[k] = convert<Sum>(from.load(thread + k * threads, outside));
    }
    const auto for_each = [&](auto&& f) {  // f(value, its class), of those that exist
#pragma unroll
      for (int k = 0; k < packs; ++k) {
#pragma unroll
        for (int i = 0; i < w; ++i) {
          const int pack = thread + k * threads;
          if (from.exists(pack, i)) f(values[k][i], pack * w + i - lead);
        }
      }
    };
    Sum maximum = no_maximum<Sum>;
    if (p.terms.has_maximum()) {
      for_each([&](Sum value, int) { maximum = Larger{}(maximum, value); });
      maximum = row_reduce(maximum, Larger{}, scratch.maxima);
    }
    const std::int64_t step = rows.steps[Loss::row_target];
    Parts<Sum> parts{0, 0};
    for_each([&](Sum& value, int c) {
      const Sum target = row.target(p, c, step);
      parts.terms += p.terms.term(value, target, maximum);
      // From here on what the gradient is made of: exponentials, or x.
      if (p.terms.has_maximum()) {
        value = power(value - maximum);
        parts.powers += value;
      } else if (p.dx != nullptr) {
        value = p.terms.slope(value, target, 0);
      }
    });
    parts = row_reduce(parts, AddParts{}, scratch.parts);
    if (!exists) return;
    if (thread == 0) {
      const Sum loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
      if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
      total += static_cast<double>(loss);
    }
    if (p.dx == nullptr) return;
    const RowPacks<T, w, int> to(p.dx + row.at[Loss::row_dx], rows.length, lead);
    const Sum inverse = 1 / parts.powers;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const int pack = thread + k * threads;
      if (pack >= to.packs()) continue;
      Pack<T, w> slopes;
#pragma unroll
      for (int i = 0; i < w; ++i) {
        Sum slope = values[k][i];
        if (p.terms.has_maximum()) {
          slope = slope * inverse - p.terms.share(pack * w + i - lead == row.label ? 1 : 0);
        }
        slopes[i] = convert<T>(row.works ? slope * factor : row.otherwise);
      }
      to.store(pack, slopes);
    }
  });
  leave_sum(total, scratch.sums, p.sums);
}

/// Packs of a row, one more where rows may begin between multiples of 16 bytes.
std::int64_t packs_of(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.classes(), w) + 1;
}

Support supports(const Loss::Args& args, const Context&) {
  if (!args.contiguous()) return unsupported("the rows must be contiguous");
  return packs_of(args) <= std::int64_t{packs} * max_threads
             ? supported
             : unsupported("the row is longer than registers hold");
}

void run(const Loss::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    RowBlock block = row_block(packs_of(args), packs, 1, max_threads);
    block.shared_bytes = sizeof(Shared<Accumulator<T>>);
    run_rows(args, context, block, loss_registers_single_read<T>);
  });
}

double estimate(const Loss::Args& args, const Context& context) {
  const double share = args.labelled() ? 0.85 : 0.7;
  return launch_seconds + estimate_seconds(Loss::cost(args), {.bandwidth = share}, context);
}

const Rung<Loss> self{{.name = "registers_single_read",
                       .step = 40,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
