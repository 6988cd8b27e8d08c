// SPDX-License-Identifier: Apache-2.0
// wmma fragments. A matrix is distributed over the warp: element 32 i + lane in row-major order is
// x[i] of the lane. The layout on a GPU differs, and programs must not rely on any layout.
#pragma once

#include "rung/simt/fragment_product.hpp"
#include "rung/simt/matrix.hpp"
#include "rung_cuda/warp.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

template <class T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<precision::tf32> {
  using Type = float;
};

template <class Use>
constexpr int rung_rows(int m, int, int k) {
  return __is_same(Use, matrix_b) ? k : m;
}
template <class Use>
constexpr int rung_columns(int, int n, int k) {
  return __is_same(Use, matrix_a) ? k : n;
}

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
 public:
  using element_type = T;
  using storage_element_type = typename Stored<T>::Type;
  static constexpr int rung_rows = nvcuda::wmma::rung_rows<Use>(m, n, k);
  static constexpr int rung_columns = nvcuda::wmma::rung_columns<Use>(m, n, k);
  static constexpr int num_elements = rung_rows * rung_columns / 32;
  static constexpr int num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

template <class Fragment, class Visit>
inline void rung_each(int lane, Visit f) {
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int element = 32 * i + lane;
    f(i, element / Fragment::rung_columns, element % Fragment::rung_columns);
  }
}

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& to,
                          const typename Stored<T>::Type& value) {
  for (auto& x : to.x) x = value;
}

/// Checks that the address and the row stride are multiples of 16 bytes. (CUDA documents 32 bytes
/// for the address, but submatrices of 1-byte elements start at multiples of 16 columns.)
template <class T>
inline void rung_check(const T* address, unsigned stride, const RungPlace& place) {
  if (reinterpret_cast<size_t>(address) % 16 != 0) {
    rung::simt::fail("misaligned address: wmma needs matrices aligned to 16 bytes", place);
  }
  if (stride * sizeof(T) % 16 != 0) {
    rung::simt::fail("wmma needs a leading dimension that is a multiple of 16 bytes", place);
  }
}

template <class Fragment, class T>
inline void rung_load(Fragment& to, const T* from, unsigned stride, bool by_rows,
                      const RungPlace& place) {
  rung_check(from, stride, place);
  __syncwarp(0xffffffffu, place);
  rung_each<Fragment>(rung::simt::lane_index(), [&](int i, int row, int column) {
    const size_t at = by_rows ? static_cast<size_t>(row) * stride + static_cast<size_t>(column)
                              : static_cast<size_t>(column) * stride + static_cast<size_t>(row);
    to.x[i] = from[at];
  });
}
template <class Use, int m, int n, int k, class T, class Layout>
inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& to,
                             const typename Stored<T>::Type* from, unsigned stride,
                             RungPlace place = RungPlace::current()) {
  rung_load(to, from, stride, __is_same(Layout, row_major), place);
}
template <int m, int n, int k, class T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& to, const T* from, unsigned stride,
                             layout_t layout, RungPlace place = RungPlace::current()) {
  rung_load(to, from, stride, layout == mem_row_major, place);
}
template <int m, int n, int k, class T>
inline void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& from, unsigned stride,
                              layout_t layout, RungPlace place = RungPlace::current()) {
  using Fragment = fragment<accumulator, m, n, k, T>;
  rung_check(to, stride, place);
  __syncwarp(0xffffffffu, place);
  rung_each<Fragment>(rung::simt::lane_index(), [&](int i, int row, int column) {
    const size_t at = layout == mem_row_major
                          ? static_cast<size_t>(row) * stride + static_cast<size_t>(column)
                          : static_cast<size_t>(column) * stride + static_cast<size_t>(row);
    to[at] = from.x[i];
  });
}

/// Returns the simulator's type for operands of type T.
template <class T>
constexpr rung::simt::FragmentType rung_type() {
  using rung::simt::FragmentType;
  if constexpr (__is_same(T, precision::tf32)) {
    return FragmentType::tf32;
  } else if constexpr (__is_same(T, __half)) {
    return FragmentType::f16;
  } else if constexpr (__is_same(T, __nv_bfloat16)) {
    return FragmentType::bf16;
  } else if constexpr (__is_same(T, double)) {
    return FragmentType::f64;
  } else {
    static_assert(__is_same(T, signed char) || __is_same(T, unsigned char) || __is_same(T, char));
    return static_cast<T>(-1) < T{} ? FragmentType::s8 : FragmentType::u8;
  }
}

template <class Left, class Right, class Added>
struct Product : rung::simt::FragmentProduct {
  static_assert(Left::num_elements <= 16 && Right::num_elements <= 16 &&
                    (Right::rung_columns == 8 || Right::rung_columns == 16 ||
                     Right::rung_columns == 32),
                "tensor cores have no such shape");
  static void resolve(void* const* requests, unsigned lanes) {
    if (lanes != 0xffffffffu) {
      rung::simt::fail("wmma::mma_sync in a warp of which lanes have exited");
    }
    rung::simt::multiply_fragments_into<typename Added::storage_element_type, Added::num_elements>(
        requests,
        {Left::rung_rows, Right::rung_columns, Left::rung_columns,
         rung_type<typename Left::element_type>(), rung_type<typename Right::element_type>()});
  }
};

template <int m, int n, int k, class TA, class LA, class TB, class LB, class Sum>
inline void mma_sync(fragment<accumulator, m, n, k, Sum>& d,
                     const fragment<matrix_a, m, n, k, TA, LA>& a,
                     const fragment<matrix_b, m, n, k, TB, LB>& b,
                     const fragment<accumulator, m, n, k, Sum>& c, bool = false,
                     RungPlace place = RungPlace::current()) {
  using Request = Product<fragment<matrix_a, m, n, k, TA, LA>, fragment<matrix_b, m, n, k, TB, LB>,
                          fragment<accumulator, m, n, k, Sum>>;
  Request request{{d.x, a.x, b.x, c.x}};
  rung::simt::warp_collective(0xffffffffu, "wmma::mma_sync", &Request::resolve, &request, place);
}

inline float __float_to_tf32(float x) { return rung::simt::round_to_tf32(x); }

}  // namespace nvcuda::wmma
