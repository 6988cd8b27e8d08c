// SPDX-License-Identifier: Apache-2.0
//
// See lines.hpp.
#include "rung/cpu/lines.hpp"

#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include "rung/cpu/load-inl.hpp"

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
  if constexpr (streaming) {  // copies up to the first whole cache line
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

void widen_all(DType type, const void* from, float* to, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  visit<float, f16, bf16, std::uint8_t>(type, [&]<class T>() HWY_ATTR {
    const auto* x = static_cast<const T*>(from);
    std::int64_t j = 0;
    for (; j + lanes <= count; j += lanes) hn::StoreU(load_as(d, x + j), d, to + j);
    if (j < count) {
      const auto n = static_cast<std::size_t>(count - j);
      store_as_n(load_as_n(d, x + j, n), d, to + j, n);
    }
  });
}

void narrow_to_bytes(const float* from, std::uint8_t* to, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN std::uint8_t rest[hn::MaxLanes(bytes)];
  for (std::int64_t j = 0; j < count; j += lanes) {
    const std::int64_t left = count - j;
    const auto value = left >= lanes ? hn::LoadU(d, from + j)
                                     : load_as_n(d, from + j, static_cast<std::size_t>(left));
    // Clamped before conversion: floats beyond the range of i32 do not convert correctly.
    const auto number = hn::IfThenZeroElse(hn::IsNaN(value), value);
    const auto fits = hn::Min(hn::Max(number, hn::Zero(d)), hn::Set(d, 255.0F));
    const auto rounded = hn::DemoteTo(bytes, hn::NearestInt(fits));
    if (left >= lanes) {
      hn::StoreU(rounded, bytes, to + j);
    } else {
      hn::Store(rounded, bytes, rest);
      for (std::int64_t i = j; i < count; ++i) to[i] = rest[i - j];
    }
  }
}

void narrow_all(const float* from, DType type, void* to, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (type == DType::u8) return narrow_to_bytes(from, static_cast<std::uint8_t*>(to), count);
  visit<float, f16, bf16>(type, [&]<class T>() HWY_ATTR {
    auto* y = static_cast<T*>(to);
    std::int64_t j = 0;
    for (; j + lanes <= count; j += lanes) store_as(hn::LoadU(d, from + j), d, y + j);
    if (j < count) {
      const auto n = static_cast<std::size_t>(count - j);
      store_as_n(load_as_n(d, from + j, n), d, y + j, n);
    }
  });
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::cpu {
HWY_EXPORT(copy_bytes);
HWY_EXPORT(stream_bytes);
HWY_EXPORT(widen_all);
HWY_EXPORT(narrow_all);

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
void widen_line(DType type, const void* from, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(widen_all)(type, from, to, count);
}
void narrow_line(const float* from, DType type, void* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_all)(from, type, to, count);
}
}  // namespace rung::cpu
#endif
