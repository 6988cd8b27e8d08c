// SPDX-License-Identifier: Apache-2.0
//
// See lines.hpp.
#include "rung/cpu/lines.hpp"

#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool streaming>
void move_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t bytes,
                const std::uint8_t* next) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t line = 64;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  if constexpr (streaming) {  // whole lines are streamed
    const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % line);
    i = behind == 0 ? 0 : std::min(line - behind, bytes);
    std::memcpy(to, from, static_cast<std::size_t>(i));
  }
  for (; i + line <= bytes; i += line) {
    if (next != nullptr) hwy::Prefetch(next + i);
    for (std::int64_t k = i; k < i + line; k += lanes) {
      if constexpr (streaming) {
        hn::Stream(hn::LoadU(d, from + k), d, to + k);
      } else {
        hn::StoreU(hn::LoadU(d, from + k), d, to + k);
      }
    }
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}
void copy_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t bytes,
                const std::uint8_t* next) {
  move_bytes<false>(from, to, bytes, next);
}
void stream_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t bytes) {
  move_bytes<true>(from, to, bytes, nullptr);
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::cpu {
HWY_EXPORT(copy_bytes);
HWY_EXPORT(stream_bytes);

void copy_line(const void* from, void* to, std::int64_t bytes, const void* next) {
  HWY_DYNAMIC_DISPATCH(copy_bytes)
  (static_cast<const std::uint8_t*>(from), static_cast<std::uint8_t*>(to), bytes,
   static_cast<const std::uint8_t*>(next));
}
void stream_line(const void* from, void* to, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream_bytes)
  (static_cast<const std::uint8_t*>(from), static_cast<std::uint8_t*>(to), bytes);
}
void end_streams() { hwy::FlushStream(); }
}  // namespace rung::cpu
#endif
