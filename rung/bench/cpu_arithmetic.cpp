// SPDX-License-Identifier: Apache-2.0
// Measures multiply-adds per second. Twelve independent chains cover a latency of 4 to 5 cycles on
// two pipes, and fit into the 16 registers of AVX2 together with both operands.
#include "rung/cpu/simd.hpp"  // first: it selects the targets

#include "rung/cpu/foreach_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int chains = 12;

/// Runs `repeats` iterations and returns the number of operations; stores the sums to `out`, so
/// that they are not eliminated.
template <class T>
double multiply_add(long repeats, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  // x := x * 0.5 + 0.5 converges to 1: no overflow, no subnormal numbers.
  const V half = hn::Set(d, static_cast<T>(0.5));
  V sum[chains];
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sum[i] = hn::Set(d, static_cast<T>(i));
  for (long turn = 0; turn < repeats; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = hn::MulAdd(sum[i], half, half);
  }
  V total = hn::Zero(d);
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) total = hn::Add(total, sum[i]);
  *out = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * chains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(repeats);
}

double multiply_add_f32(long repeats, float* out) { return multiply_add(repeats, out); }
double multiply_add_f64(long repeats, double* out) { return multiply_add(repeats, out); }

}  // namespace HWY_NAMESPACE
}  // namespace rung::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "rung/bench/cpu_rates.hpp"
#include "rung/cpu/team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung::bench {
namespace {

HWY_EXPORT(multiply_add_f32);
HWY_EXPORT(multiply_add_f64);

constexpr long turns = 1000;  // per repeat: far longer than a function call, far below a sample

#if defined(__x86_64__)
bool has_bf16_dot() { return __builtin_cpu_supports("avx512bf16") != 0; }

/// Computes bf16 dot products by intrinsics, because Highway has no target for this instruction.
__attribute__((target("avx512f,avx512bf16"))) double dot_bf16(long repeats, float* out) {
  constexpr int chains = 12;
  const __m512bh one = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  __m512 sum[chains];
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  for (long turn = 0; turn < repeats; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], one, one);
  }
  __m512 total = _mm512_setzero_ps();
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) total = _mm512_add_ps(total, sum[i]);
  *out = _mm512_reduce_add_ps(total);
  return 2.0 * chains * 32 * static_cast<double>(repeats);
}
#else
bool has_bf16_dot() { return false; }
double dot_bf16(long, float*) { return 0; }
#endif

bool has(std::string_view element, cpu::Isa isa) {
  return element != "bf16" || (isa == cpu::Isa::avx512 && has_bf16_dot());
}

/// Runs one repeat and returns the number of operations.
double once(std::string_view element) {
  float f32 = 0;
  double f64 = 0;
  double operations = 0;
  if (element == "f64") {
    operations = HWY_DYNAMIC_DISPATCH(multiply_add_f64)(turns, &f64);
  } else if (element == "f32") {
    operations = HWY_DYNAMIC_DISPATCH(multiply_add_f32)(turns, &f32);
  } else {
    operations = dot_bf16(turns, &f32);
  }
  // Marks the results as used, which prevents the elimination of the loop.
  asm volatile("" : : "m"(f32), "m"(f64));
  return operations;
}

struct Work {
  std::string_view element;
  std::vector<double> operations;  // per repeat, by thread
};

void work(int rank, long repeats, void* data) {
  auto& job = *static_cast<Work*>(data);
  double operations = 0;
  for (long i = 0; i < repeats; ++i) operations = once(job.element);
  job.operations[static_cast<std::size_t>(rank)] = operations;
}

}  // namespace

Rate arithmetic_rate(cpu::Isa isa, std::string_view element, int threads) {
  if (!has(element, isa)) return {};
  const cpu::Isa usual = cpu::isa();
  cpu::cap_isa(isa);
  Rate rate;
  if (cpu::isa() == isa) {
    Work job{element, std::vector<double>(static_cast<std::size_t>(threads))};
    const std::vector<double> seconds = time_on_threads(threads, work, &job);
    rate = best_rate(seconds, std::accumulate(job.operations.begin(), job.operations.end(), 0.0));
  }
  cpu::cap_isa(usual);
  return rate;
}

Pace arithmetic_pace(std::string_view element, int threads, double operations) {
  if (!has(element, cpu::isa())) return {};
  constexpr double max_each = 2e9;
  const double each = once(element);
  const long many = std::max(std::lround(std::min(operations, max_each * threads) / each), 1L);
  const auto run = [element = std::string(element), threads, many](long repeats) {
    std::atomic<long> begun{0};  // dynamic schedule: no thread waits for a slower one
    cpu::run_shares(threads, [&](const cpu::Team&) {
      while (begun.fetch_add(1, std::memory_order_relaxed) < repeats * many) once(element);
    });
  };
  return {{run}, each * static_cast<double>(many)};
}

}  // namespace rung::bench
#endif  // HWY_ONCE
