// SPDX-License-Identifier: Apache-2.0
// CUDA's wmma fragments on the simulated GPU. A matrix is distributed over the warp in a layout
// that kernels must not rely on; a product is an exchange among all lanes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/simt/fragment_product.hpp"
#include "rung/simt/matrix.hpp"

namespace rung::simt::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}  // namespace precision
enum layout_t { mem_row_major, mem_col_major };

/// Storage type of a fragment of T: TF32 numbers are floats.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, precision::tf32>, float, T>;

template <class Use, int M, int N, int K>
inline constexpr int fragment_rows = std::is_same_v<Use, matrix_b> ? K : M;
template <class Use, int M, int N, int K>
inline constexpr int fragment_columns = std::is_same_v<Use, matrix_a> ? K : N;

template <class T, int M, int N, int K>
inline constexpr bool shape_exists =
    std::is_same_v<T, precision::tf32>
        ? (M == 16 && N == 16 && K == 8)
        : ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32)) && K == 16;

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(std::is_same_v<Use, accumulator> || shape_exists<T, M, N, K>,
                "tensor cores have no such shape for this type");
  static_assert(std::is_same_v<Use, accumulator> == std::is_void_v<Layout>,
                "operands have a layout, accumulators do not");
  using element_type = T;
  using storage_element_type = Stored<T>;
  static constexpr int rows = fragment_rows<Use, M, N, K>;
  static constexpr int columns = fragment_columns<Use, M, N, K>;
  static constexpr int num_elements = rows * columns / 32;
  Stored<T> x[num_elements];
};

/// Calls f(i, row, column) for each element x[i] of this lane.
template <class Fragment, class F>
void for_each_element(int lane, F f) {
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int element = 32 * i + lane;
    f(i, element / Fragment::columns, element % Fragment::columns);
  }
}

template <class Use, int M, int N, int K, class T, class Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& to, const Stored<T>& value) {
  for (Stored<T>& x : to.x) x = value;
}

/// Checks the alignment rules: 32-byte alignment, and rows that are multiples of 16 bytes.
template <class T>
void check_address(const T* p, unsigned stride, const Place& place) {
  if (reinterpret_cast<std::uintptr_t>(p) % 32 != 0) {
    fail("misaligned address: wmma needs matrices aligned to 32 bytes", place);
  }
  if (stride * sizeof(T) % 16 != 0) {
    fail("wmma needs a leading dimension that is a multiple of 16 bytes", place);
  }
}

template <class Fragment, class T>
void load_elements(Fragment& to, const T* p, unsigned stride, bool by_rows, Place place) {
  check_address(p, stride, place);
  warp_barrier(0xffffffffu, place);  // all lanes participate, as on a GPU
  for_each_element<Fragment>(lane_index(), [&](int i, int row, int column) {
    to.x[i] = by_rows ? p[row * static_cast<std::ptrdiff_t>(stride) + column]
                      : p[column * static_cast<std::ptrdiff_t>(stride) + row];
  });
}

template <class Use, int M, int N, int K, class T, class Layout>
requires(!std::is_void_v<Layout>) void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& to,
                                                        const Stored<T>* p, unsigned stride,
                                                        Place place = Place::current()) {
  load_elements(to, p, stride, std::is_same_v<Layout, row_major>, place);
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& to, const T* p, unsigned stride,
                      layout_t layout, Place place = Place::current()) {
  load_elements(to, p, stride, layout == mem_row_major, place);
}
template <int M, int N, int K, class T>
void store_matrix_sync(T* p, const fragment<accumulator, M, N, K, T>& from, unsigned stride,
                       layout_t layout, Place place = Place::current()) {
  using Fragment = fragment<accumulator, M, N, K, T>;
  check_address(p, stride, place);
  warp_barrier(0xffffffffu, place);
  for_each_element<Fragment>(lane_index(), [&](int i, int row, int column) {
    const std::ptrdiff_t step = stride;
    p[layout == mem_row_major ? row * step + column : column * step + row] = from.x[i];
  });
}

template <class T>
constexpr FragmentType type_of_operand() {
  if constexpr (std::is_same_v<T, precision::tf32>) return FragmentType::tf32;
  return std::is_same_v<T, f16> ? FragmentType::f16 : FragmentType::bf16;
}

template <class A, class B, class C>
struct ProductRequest : FragmentProduct {
  /// Gathers the matrices from all lanes, multiplies, and scatters the result.
  static void resolve(void* const* requests, std::uint32_t lanes) {
    if (lanes != 0xffffffffu) fail("wmma::mma_sync in a warp of which lanes have exited");
    constexpr FragmentType type = type_of_operand<typename A::element_type>();
    multiply_fragments_into<typename C::storage_element_type, C::num_elements>(
        requests, {A::rows, B::columns, A::columns, type, type});
  }
};

/// Computes d = a b + c; d may alias c.
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class Sum>
requires(std::is_same_v<Sum, float> ||
         std::is_same_v<T, f16>) void mma_sync(fragment<accumulator, M, N, K, Sum>& d,
                                               const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                                               const fragment<matrix_b, M, N, K, T, LayoutB>& b,
                                               const fragment<accumulator, M, N, K, Sum>& c,
                                               Place place = Place::current()) {
  using Request = ProductRequest<std::remove_cvref_t<decltype(a)>, std::remove_cvref_t<decltype(b)>,
                                 fragment<accumulator, M, N, K, Sum>>;
  Request request{{d.x, a.x, b.x, c.x}};
  warp_collective(0xffffffffu, "wmma::mma_sync", &Request::resolve, &request, place);
}

}  // namespace rung::simt::wmma
