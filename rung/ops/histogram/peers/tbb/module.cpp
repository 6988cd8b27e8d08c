// SPDX-License-Identifier: Apache-2.0
// Histograms as users write them with oneTBB, behind the C interface of module.hpp.
#include "rung/ops/histogram/peers/tbb/module.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/combinable.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

#include <algorithm>
#include <functional>
#include <new>
#include <vector>

namespace rung::peer_histogram_tbb {
namespace {

template <class T, class Add>
bool count(const T* x, std::int64_t size, std::int64_t bins, std::int32_t* counts, int threads,
           const Add& add) {
  using Table = std::vector<std::int32_t>;
  try {
    // Also allows more threads than cores.
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(threads));
    tbb::task_arena(threads).execute([&] {
      tbb::combinable<Table> tables([&] { return Table(static_cast<std::size_t>(bins)); });
      tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, size, 1 << 14),
                        [&](const tbb::blocked_range<std::int64_t>& range) {
                          std::int32_t* const table = tables.local().data();
                          for (std::int64_t i = range.begin(); i != range.end(); ++i) {
                            add(table, x[i]);
                          }
                        });
      std::fill_n(counts, bins, 0);
      tables.combine_each([&](const Table& table) {
        std::transform(table.begin(), table.end(), counts, counts, std::plus<>());
      });
    });
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace rung::peer_histogram_tbb

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API bool rung_histogram_tbb_u8(const std::uint8_t* x, std::int64_t size,
                                           std::int32_t* counts, int threads) {
  return rung::peer_histogram_tbb::count(
      x, size, 256, counts, threads,
      [](std::int32_t* table, std::uint8_t value) { ++table[value]; });
}
RUNG_MODULE_API bool rung_histogram_tbb_f32(const float* x, std::int64_t size,
                                            rung::peer_histogram_tbb::Even even,
                                            std::int32_t* counts, int threads) {
  return rung::peer_histogram_tbb::count(
      x, size, std::int64_t{even.last} + 1, counts, threads,
      [even](std::int32_t* table, float value) {
        if (!(value >= even.low && value <= even.high)) return;
        ++table[std::min(even.last, static_cast<std::int32_t>((value - even.low) * even.scale))];
      });
}
RUNG_MODULE_API const char* rung_histogram_tbb_version() { return TBB_runtime_version(); }
