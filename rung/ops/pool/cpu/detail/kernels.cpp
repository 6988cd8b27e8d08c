// SPDX-License-Identifier: Apache-2.0
// Scratch memory, and weights in the arithmetic type, for a kernel of pool.
#include "rung/ops/pool/cpu/detail/kernels.hpp"

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"

namespace rung::pool_cpu {

void run_kernel(const Kernel& kernel, const Pool::Args& args, Context& context, int threads) {
  constexpr std::int64_t cache_line = 64;
  const std::int64_t element = args.x.dtype == DType::f64 ? 8 : 4;
  const bool copies = is_given(args.options.weights) && kernel.copies_weights;
  const std::int64_t weights = copies ? round_up(args.taps() * element, cache_line) : 0;
  const std::int64_t own = round_up(kernel.scratch_elements * element, cache_line);
  auto* const memory =
      static_cast<std::byte*>(context.workspace(static_cast<std::size_t>(weights + own * threads)));
  if (copies) {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      const auto from = args.options.weights.view<const T, 2>();
      auto* to = reinterpret_cast<Accumulator<T>*>(memory);
      for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
        for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
          *to++ = static_cast<Accumulator<T>>(from(i, j));
        }
      }
    });
  }
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range units = team.share(kernel.units);
    if (units.size() == 0) return;
    kernel.make(args, copies ? memory : nullptr, units, memory + weights + own * team.rank());
  });
}

}  // namespace rung::pool_cpu
