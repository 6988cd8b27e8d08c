// SPDX-License-Identifier: Apache-2.0
// oneTBB's parallel_scan and the parallel algorithms of libstdc++, which run on oneTBB, behind the
// C interface of module.hpp.
#include "rung/ops/scan/peers/tbb/module.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_scan.h>
#include <tbb/task_arena.h>

#include <execution>
#include <functional>
#include <memory>
#include <numeric>

namespace rung::peer_tbb {
namespace {

/// Returns the task arena, kept between calls as a program would.
tbb::task_arena& arena(int threads) {
  static std::unique_ptr<tbb::global_control> control;
  static std::unique_ptr<tbb::task_arena> made;
  static int made_for = 0;
  if (made_for != threads) {
    control.reset();
    control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<std::size_t>(threads));
    made = std::make_unique<tbb::task_arena>(threads);
    made_for = threads;
  }
  return *made;
}

template <class F>
void with_element(Element element, F&& f) {
  switch (element) {
    case Element::f32:
      return f(float{});
    case Element::f64:
      return f(double{});
    case Element::i32:
      return f(std::uint32_t{});  // wraps, where signed overflow is undefined
    case Element::i64:
      return f(std::uint64_t{});
    case Element::u8:
      return f(std::uint8_t{});
    case Element::u16:
      return f(std::uint16_t{});
  }
}

template <class T>
void scan_tbb(const T* x, T* y, std::int64_t n, bool exclusive) {
  using Range = tbb::blocked_range<std::int64_t>;
  tbb::parallel_scan(
      Range(0, n), T{0},
      [=](const Range& range, T sum, bool is_final) {
        for (std::int64_t i = range.begin(); i != range.end(); ++i) {
          const T before = sum;
          sum = static_cast<T>(sum + x[i]);
          if (is_final) y[i] = exclusive ? before : sum;
        }
        return sum;
      },
      [](T left, T right) { return static_cast<T>(left + right); });
}

template <class T>
void scan_std(const T* x, T* y, std::int64_t n, bool exclusive) {
  const auto plus = [](T a, T b) { return static_cast<T>(a + b); };
  if (exclusive) {
    std::exclusive_scan(std::execution::par_unseq, x, x + n, y, T{0}, plus);
  } else {
    std::inclusive_scan(std::execution::par_unseq, x, x + n, y, plus);
  }
}

}  // namespace
}  // namespace rung::peer_tbb

using rung::peer_tbb::TbbScanArguments;
#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API void rung_tbb_scan(const TbbScanArguments* call, int threads) {
  rung::peer_tbb::arena(threads).execute([&] {
    rung::peer_tbb::with_element(call->element, [&]<class T>(T) {
      rung::peer_tbb::scan_tbb(static_cast<const T*>(call->x), static_cast<T*>(call->y), call->n,
                               call->exclusive);
    });
  });
}
RUNG_MODULE_API void rung_std_scan(const TbbScanArguments* call, int threads) {
  rung::peer_tbb::arena(threads).execute([&] {
    rung::peer_tbb::with_element(call->element, [&]<class T>(T) {
      rung::peer_tbb::scan_std(static_cast<const T*>(call->x), static_cast<T*>(call->y), call->n,
                               call->exclusive);
    });
  });
}
RUNG_MODULE_API int rung_tbb_version() { return TBB_INTERFACE_VERSION; }
