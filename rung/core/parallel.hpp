// SPDX-License-Identifier: Apache-2.0
// Multithreaded loops over large host arrays: generating and comparing gigabytes of data. Internal
// to the library and its workbench; kernels divide their work themselves (cpu/).
#pragma once

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace rung {

/// Calls part(begin, end) for ranges that partition [0, count), on several threads if there is
/// enough work. All ranges but the last are multiples of `grain`. `part` must not throw.
template <class Part>
void for_each_part(std::int64_t count, std::int64_t grain, const Part& part) {
  constexpr std::int64_t grains_a_thread = 4;  // less work would not amortize starting a thread
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t threads = std::clamp<std::int64_t>(grains / grains_a_thread, 1, cores);
  const std::int64_t share = (grains + threads - 1) / threads * grain;
  std::vector<std::jthread> team;
  for (std::int64_t begin = share; begin < count; begin += share) {
    const std::int64_t end = std::min(begin + share, count);
    try {
      team.emplace_back([&part, begin, end] { part(begin, end); });
    } catch (const std::system_error&) {
      part(begin, end);  // no thread could be started
    }
  }
  if (count > 0) part(0, std::min(share, count));
}

}  // namespace rung
