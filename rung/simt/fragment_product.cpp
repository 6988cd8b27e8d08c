// SPDX-License-Identifier: Apache-2.0
// wmma products: gathers the lanes' fragments, multiplies row by row with the host's widest
// vectors, and scatters the result. Terms are added in order of k, with a rounding after each
// product and each sum, so this file is compiled without contraction to fused multiply-adds.
#include "rung/simt/fragment_product.hpp"

#include <cstring>

#include "rung/core/dtype.hpp"
#include "rung/simt/matrix.hpp"
#include "rung/simt/record/operations.hpp"

namespace rung::simt {
namespace {

constexpr int max_elements = 32 * 16;  // per matrix, over all shapes

/// Gathers a matrix from the lanes and converts each element.
template <class Stored, class Number, class Convert>
void gather(const void* const (&parts)[warp_lanes], int elements, Number* to, Convert convert) {
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto* const part = static_cast<const Stored*>(parts[lane]);
    for (int i = 0; i < elements / warp_lanes; ++i) to[warp_lanes * i + lane] = convert(part[i]);
  }
}

template <class Number>
void gather_as(FragmentType type, const void* const (&parts)[warp_lanes], int elements,
               Number* to) {
  const auto same = [](auto x) { return static_cast<Number>(x); };
  switch (type) {
    case FragmentType::f16:
      return gather<std::uint16_t>(parts, elements, to, [](std::uint16_t x) {
        return static_cast<Number>(static_cast<float>(f16::from_bits(x)));
      });
    case FragmentType::bf16:
      return gather<std::uint16_t>(parts, elements, to, [](std::uint16_t x) {
        return static_cast<Number>(__builtin_bit_cast(float, std::uint32_t{x} << 16));
      });
    case FragmentType::tf32:
      return gather<float>(parts, elements, to,
                           [](float x) { return static_cast<Number>(truncate_to_tf32(x)); });
    case FragmentType::f64:
      return gather<double>(parts, elements, to, same);
    case FragmentType::s8:
      return gather<signed char>(parts, elements, to, same);
    case FragmentType::u8:
      return gather<unsigned char>(parts, elements, to, same);
  }
}

/// Computes the product one row of n elements at a time, as one vector.
template <int n, class Number>
[[gnu::always_inline]] inline void multiply_rows(int m, int k, const Number* a, const Number* b,
                                                 Number* c) {
  using Row __attribute__((vector_size(n * sizeof(Number)))) = Number;
  for (int row = 0; row < m; ++row, a += k, c += n) {
    Row sum;
    std::memcpy(&sum, c, sizeof(sum));
    for (int p = 0; p < k; ++p) {
      Row factor;
      std::memcpy(&factor, b + n * p, sizeof(factor));
      sum += a[p] * factor;
    }
    std::memcpy(c, &sum, sizeof(sum));
  }
}

/// Operands of c += a b, row-major.
template <class Number>
struct Matrices {
  int m, n, k;
  const Number* a;
  const Number* b;
  Number* c;
};
template <class Number>
[[gnu::always_inline]] inline void multiply_any(const Matrices<Number>& x) {
  if (x.n == 8) return multiply_rows<8>(x.m, x.k, x.a, x.b, x.c);
  if (x.n == 16) return multiply_rows<16>(x.m, x.k, x.a, x.b, x.c);
  multiply_rows<32>(x.m, x.k, x.a, x.b, x.c);
}

template <class Number>
void multiply_plainly(const Matrices<Number>& x) {
  multiply_any(x);
}
#if defined(__x86_64__)
template <class Number>
[[gnu::target("avx2")]] void multiply_by_avx2(const Matrices<Number>& x) {
  multiply_any(x);
}
template <class Number>
[[gnu::target("avx512f,avx512dq")]] void multiply_by_avx512(const Matrices<Number>& x) {
  multiply_any(x);
}
#endif

template <class Number>
using Multiply = void (*)(const Matrices<Number>&);
template <class Number>
Multiply<Number> widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return multiply_by_avx512<Number>;
  }
  if (__builtin_cpu_supports("avx2")) return multiply_by_avx2<Number>;
#endif
  return multiply_plainly<Number>;
}

/// Computes the product of all lanes' fragments in `Number` arithmetic. `Sum`: storage type of the
/// sums.
template <class Number, class Sum = Number>
void multiply_as(void* const* lanes, const FragmentKind& kind) {
  static const Multiply<Number> multiply = widest<Number>();
  alignas(64) Number a[max_elements], b[max_elements], c[max_elements];
  const void *parts_a[warp_lanes], *parts_b[warp_lanes], *parts_c[warp_lanes];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& one = *static_cast<const FragmentProduct*>(lanes[lane]);
    parts_a[lane] = one.a;
    parts_b[lane] = one.b;
    parts_c[lane] = one.c;
  }
  gather_as(kind.a, parts_a, kind.m * kind.k, a);
  gather_as(kind.b, parts_b, kind.k * kind.n, b);
  gather<Sum>(parts_c, kind.m * kind.n, c, [](Sum x) { return static_cast<Number>(x); });
  multiply({kind.m, kind.n, kind.k, a, b, c});
  for (int lane = 0; lane < warp_lanes; ++lane) {
    auto* const d = static_cast<Sum*>(static_cast<const FragmentProduct*>(lanes[lane])->d);
    for (int i = 0; i < kind.m * kind.n / warp_lanes; ++i) {
      d[i] = static_cast<Sum>(c[warp_lanes * i + lane]);
    }
  }
}

}  // namespace

void multiply_fragments(void* const* lanes, const FragmentKind& kind) {
  record::note_product(kind.m, kind.n, kind.k);
  switch (kind.a) {
    case FragmentType::f64:
      return multiply_as<double>(lanes, kind);
    case FragmentType::s8:
    case FragmentType::u8:
      return multiply_as<std::uint32_t, std::int32_t>(lanes, kind);
    default:
      return multiply_as<float>(lanes, kind);
  }
}

}  // namespace rung::simt
