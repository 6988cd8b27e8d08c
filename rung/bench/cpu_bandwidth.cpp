// SPDX-License-Identifier: Apache-2.0
// Bandwidth of each memory level, with the widest vectors of the CPU.
#include "rung/cpu/simd.hpp"  // first: it selects the targets

#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace rung::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t unroll = 8;  // independent chains, which hide the latency of the sum

/// Reads `count` words, a multiple of 64 (eight of the widest vectors), and returns their sum.
std::uint64_t read_words(const std::uint64_t* HWY_RESTRICT from, std::size_t count) {
  const hn::ScalableTag<std::uint64_t> d;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d);
  V sum[unroll];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < unroll; ++i) sum[i] = hn::Zero(d);
  for (std::size_t at = 0; at < count; at += unroll * lanes) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < unroll; ++i) {
      sum[i] = hn::Xor(sum[i], hn::Load(d, from + at + i * lanes));
    }
  }
  V total = hn::Zero(d);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < unroll; ++i) total = hn::Xor(total, sum[i]);
  return hn::GetLane(total);
}

void copy_words(const std::uint64_t* HWY_RESTRICT from, std::uint64_t* HWY_RESTRICT to,
                std::size_t count, bool streaming) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t at = 0; at < count; at += unroll * lanes) {
    if (streaming) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < unroll; ++i) {
        hn::Stream(hn::Load(d, from + at + i * lanes), d, to + at + i * lanes);
      }
    } else {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < unroll; ++i) {
        hn::Store(hn::Load(d, from + at + i * lanes), d, to + at + i * lanes);
      }
    }
  }
  if (streaming) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace rung::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "rung/bench/cpu_rates.hpp"

namespace rung::bench {
namespace {

HWY_EXPORT(read_words);
HWY_EXPORT(copy_words);

constexpr std::size_t block_bytes = 512;  // eight vectors of 64 bytes

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

struct Work {
  Access access;
  bool streaming;
  std::size_t bytes_each;
  std::vector<std::unique_ptr<std::uint64_t, Free>> buffers;  // by thread
};

void work(int rank, long repeats, void* data) {
  auto& job = *static_cast<Work*>(data);
  auto& buffer = job.buffers[static_cast<std::size_t>(rank)];
  if (!buffer) {
    // Each thread touches its own buffer first, which places the pages on its NUMA node.
    constexpr std::size_t page = 4096;
    const std::size_t rounded = (job.bytes_each + page - 1) / page * page;
    buffer.reset(static_cast<std::uint64_t*>(std::aligned_alloc(page, rounded)));
    std::memset(buffer.get(), 1, rounded);
  }
  const std::size_t words = job.bytes_each / sizeof(std::uint64_t);
  std::uint64_t sum = 0;
  for (long i = 0; i < repeats; ++i) {
    if (job.access == Access::read) {
      sum ^= HWY_DYNAMIC_DISPATCH(read_words)(buffer.get(), words);
    } else {
      HWY_DYNAMIC_DISPATCH(copy_words)
      (buffer.get(), buffer.get() + words / 2, words / 2, job.streaming);
    }
    // Prevents the compiler from merging passes: memory may have changed.
    asm volatile("" : "+r"(sum) : : "memory");
  }
}

}  // namespace

Rate bandwidth_rate(Access access, std::size_t bytes_each, int threads, bool streaming) {
  Work job{access, streaming, bytes_each / (2 * block_bytes) * (2 * block_bytes), {}};
  if (job.bytes_each == 0) return {};
  job.buffers.resize(static_cast<std::size_t>(threads));
  const std::vector<double> seconds = time_on_threads(threads, work, &job);
  // OpenMP may provide fewer threads than requested: only buffers of threads that ran count.
  double bytes = 0;
  for (const auto& buffer : job.buffers) bytes += buffer ? static_cast<double>(job.bytes_each) : 0;
  return best_rate(seconds, bytes);
}

}  // namespace rung::bench
#endif  // HWY_ONCE
