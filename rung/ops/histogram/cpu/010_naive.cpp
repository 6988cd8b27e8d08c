// SPDX-License-Identifier: Apache-2.0
// histogram / naive
//
// Idea     The definition: find each element's bin and add one to its count.
// Changes  Baseline.
// Cost     x is read once; a load, an addition and a store per element. Among equal neighbors each
//          addition waits for store forwarding, and a mispredicted memory dependence flushes the
//          pipeline: data with 90 % of one value is several times slower than random data.
// Limits   every valid call.
// Source   any textbook.
#include "rung/ops/histogram/cpu/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cpu;

template <class T, class Count, class Bins>
void naive(const Histogram::Args& args, const Bins& bins) {
  const auto counts = args.counts.view<Count, 1>();
  if (!args.accumulate) {
    for (std::int64_t b = 0; b < args.bins(); ++b) counts(b) = 0;
  }
  for_each_piece<T>(args.x, {0, args.size()}, [&](const T* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (const std::int32_t bin = bins(key_of(x[i])); bin >= 0) ++counts(bin);
    }
  });
}

Work work(const Histogram::Args& args, const Context&) { return count_work(args, 1); }

void run(const Histogram::Args& args, Context&) {
  visit_values(args.x.dtype, [&]<class T>() {
    with_bins<BinKey<T>>(args, [&](const auto& bins) {
      // Unsigned: a wrapping sum must not overflow a signed type.
      if (args.counts.dtype == DType::i32) {
        naive<T, std::uint32_t>(args, bins);
      } else {
        naive<T, std::uint64_t>(args, bins);
      }
    });
  });
}

const Rung<Histogram> self{{.name = "naive", .step = 10, .work = work, .run = run}};
}  // namespace
}  // namespace rung
