// SPDX-License-Identifier: Apache-2.0
// transfer: copies within host memory, divided among a team.
#include "rung/ops/transfer/op/host_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "rung/cpu/team.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rung {
namespace {

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t width = sizeof(__m128i);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % width;
  const std::size_t head = std::min(past == 0 ? 0 : width - past, bytes);
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + width <= bytes; i += width) {
    const __m128i pack = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), pack);
  }
  _mm_sfence();  // orders the non-temporal stores
  std::memcpy(to + i, from + i, bytes - i);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace

void copy_on_host(std::span<const HostCopy> copies, int threads) {
  // Waking a thread takes microseconds, in which the caller could copy this many bytes itself.
  constexpr std::int64_t worth_a_thread = 64 << 10;
  constexpr std::int64_t page = 4096;  // threads share no cache line
  std::int64_t all = 0;
  for (const HostCopy& copy : copies) all += copy.bytes;
  const auto useful = std::min<std::int64_t>(threads, all / worth_a_thread);
  cpu::run_shares(static_cast<int>(useful), [&](const cpu::Team& team) {
    for (const HostCopy& copy : copies) {
      const cpu::Range pages = team.share((copy.bytes + page - 1) / page);
      const std::int64_t begin = pages.begin * page;
      const std::int64_t bytes = std::min(pages.end * page, copy.bytes) - begin;
      if (bytes <= 0) continue;
      std::byte* to = static_cast<std::byte*>(copy.to) + begin;
      const std::byte* from = static_cast<const std::byte*>(copy.from) + begin;
      if (copy.streaming) {
        copy_streaming(to, from, static_cast<std::size_t>(bytes));
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      }
    }
  });
}

}  // namespace rung
