// SPDX-License-Identifier: Apache-2.0
// See engine.hpp: threads, scratch memory, and estimates.
#include "rung/ops/image/cpu/detail/engine.hpp"

#include <algorithm>

#include "rung/ops/image/cpu/detail/grey.hpp"
#include "rung/ops/image/cpu/detail/neighbors.hpp"

namespace rung::image_cpu {
namespace {

template <class T>
void run_typed(const Image::Args& args, Context& context, int threads) {
  const bool is_grey = args.filter() == ImageFilter::grey;
  const std::int64_t bytes =
      is_grey ? Grey<T>::scratch_elements() * static_cast<std::int64_t>(sizeof(T))
              : Neighbors<T>::scratch_bytes(args);
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(static_cast<std::size_t>(threads * bytes)));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    std::byte* const mine = scratch + team.rank() * bytes;
    if (is_grey) {
      const Grey<T> grey(args);
      grey.work(team.share(grey.units()), reinterpret_cast<T*>(mine));
    } else {
      Neighbors<T> neighbors(args);
      neighbors.work(team.share(neighbors.units()), mine);
    }
  });
}

/// Of a 2-core Zen 5 vCPU: a result, a tap more of it, and what waking a thread takes.
constexpr double seconds_per_result = 0.15e-9;
constexpr double seconds_per_tap = 0.02e-9;
constexpr double seconds_to_join = 5e-6;

}  // namespace

double seconds(const Image::Args& args, int threads) {
  const double taps = args.filter() == ImageFilter::box ? 3 : args.taps();
  const auto results = static_cast<double>(args.y.size());
  return results * (seconds_per_result + taps * seconds_per_tap) / threads +
         (threads > 1 ? seconds_to_join : 0);
}

int useful_threads(const Image::Args& args, const Context& context) {
  constexpr double worth_a_thread = 10e-6;
  return static_cast<int>(
      std::clamp(seconds(args, 1) / worth_a_thread, 1.0, static_cast<double>(context.threads())));
}

void run(const Image::Args& args, Context& context, int threads) {
  visit<std::uint8_t, float>(args.x.dtype,
                             [&]<class T>() { run_typed<T>(args, context, threads); });
}

}  // namespace rung::image_cpu
