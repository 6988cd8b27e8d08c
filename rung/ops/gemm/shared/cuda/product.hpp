// SPDX-License-Identifier: Apache-2.0
// Typed arguments of every gemm kernel, and launches over matrices of any size.
//
// A grid is limited to 65535 blocks along y and z. Larger products are split into chunks, each a
// Product of its own with shifted pointers, which is transparent to kernels. A chunk has fewer than
// 2^31 rows and columns, so kernels may keep block coordinates in an int. Offsets in memory are
// always 64 bits: strides may be anything.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Typed arguments of a call. The batch is the first axis of every view; a block's matrix is
/// blockIdx.z.
template <class In_, class Out_>
struct Product {
  using In = In_;
  using Out = Out_;
  using Sum = GemmSum<In>;

  View<const In, 3> a;
  View<const In, 3> b;
  View<Out, 3> c;
  View<const Out, 3> bias;  // data is null if absent
  Sum alpha;
  Sum beta;
  Activation activation;
  View<const Out, 3> residual;  // data is null if absent

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t m() const { return c.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t n() const { return c.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t k() const { return a.shape[2]; }
};

/// Returns the product with C and bias reinterpreted as another type: kernels with 16-bit operands
/// select at run time whether C is f32, instead of being compiled twice.
template <class Out, class P>
__device__ Product<typename P::In, Out> with_output(const P& p) {
  const auto retyped = [](auto& to, const auto& from) {
    to.data = reinterpret_cast<decltype(to.data)>(from.data);
    for (int axis = 0; axis < 3; ++axis) {
      to.shape[axis] = from.shape[axis];
      to.strides[axis] = from.strides[axis];
    }
  };
  Product<typename P::In, Out> q{p.a, p.b, {}, {}, p.alpha, p.beta, p.activation, {}};
  retyped(q.c, p.c);
  retyped(q.bias, p.bias);
  retyped(q.residual, p.residual);
  return q;
}
/// Calls finish(p), with C reinterpreted as T if the result is narrow and T has 16 bits.
template <class T, class P, class Finish>
__device__ __forceinline__ void with_output_type(const P& p, bool narrow, const Finish& finish) {
  if constexpr (sizeof(T) == 2) {
    if (narrow) return finish(with_output<T>(p));
  }
  finish(p);
}

template <class In, class Out>
Product<In, Out> product(const Gemm::Args& args) {
  using Sum = GemmSum<In>;
  Product<In, Out> p{
      args.a.view<const In, 3>(),   args.b.view<const In, 3>(),  args.c.view<Out, 3>(), {},
      gemm_factor<Sum>(args.alpha), gemm_factor<Sum>(args.beta), args.activation,       {}};
  if (args.bias.data != nullptr) p.bias = args.bias.view<const Out, 3>();
  if (args.residual.data != nullptr) p.residual = args.residual.view<const Out, 3>();
  // With alpha = 0, A and B are not read: k becomes 0.
  if (args.alpha == 0) p.a.shape[2] = p.b.shape[1] = 0;
  return p;
}

/// Calls f with the typed Product of the call: all types but 8-bit operands.
template <class F>
void with_product(const Gemm::Args& args, F&& f) {
  visit<float, double, bf16, f16>(args.a.dtype, [&]<class In>() {
    if constexpr (sizeof(In) == 2) {
      if (args.c.dtype == DType::f32) return f(product<In, float>(args));
    }
    f(product<In, In>(args));
  });
}

/// Returns the transposed product, C' = B' A'.
template <class P>
P transpose(const P& p) {
  P flipped = p;
  flipped.a = p.b;
  flipped.b = p.a;
  for (auto* view : {&flipped.a, &flipped.b}) {
    std::swap(view->shape[1], view->shape[2]);
    std::swap(view->strides[1], view->strides[2]);
  }
  std::swap(flipped.c.shape[1], flipped.c.shape[2]);
  std::swap(flipped.c.strides[1], flipped.c.strides[2]);
  std::swap(flipped.bias.shape[1], flipped.bias.shape[2]);
  std::swap(flipped.bias.strides[1], flipped.bias.strides[2]);
  std::swap(flipped.residual.shape[1], flipped.residual.shape[2]);
  std::swap(flipped.residual.strides[1], flipped.residual.strides[2]);
  return flipped;
}

/// Returns the product, transposed if C has contiguous columns, so that its C has contiguous rows.
template <class P>
P with_contiguous_c(const P& p) {
  return p.c.strides[2] != 1 && p.c.strides[1] == 1 ? transpose(p) : p;
}

/// Returns the part of a product that computes `count` indices of C's `axis` (0 batch, 1 rows, 2
/// columns) from `first` on.
template <class P>
P slice(P p, int axis, std::int64_t first, std::int64_t count) {
  const auto cut = [&](auto& view) {
    view.data += first * view.strides[axis];
    view.shape[axis] = count;
  };
  cut(p.c);
  if (p.bias.data != nullptr) cut(p.bias);
  if (p.residual.data != nullptr) cut(p.residual);
  if (axis != 2) cut(p.a);
  if (axis != 1) cut(p.b);
  return p;
}

/// Tiling of C: a block computes `rows` x `columns` elements.
struct Tiling {
  int rows;
  int columns;
  LaunchExtent block;
  std::size_t shared_bytes = 0;
  bool x_walks_rows = false;  // blockIdx.x counts tiles down the rows instead of along the columns
};

/// Product of the rungs that support f32 only.
using Product32 = Product<float, float>;

constexpr std::int64_t tiles_of(std::int64_t extent, std::int64_t tile) {
  return (extent + tile - 1) / tile;
}

/// Runs kernel(p, extra...) over all of C, in one launch unless C exceeds the limits of a grid.
template <class P, class Kernel, class... Extra>
void launch_tiles(Context& context, const Tiling& tiling, Kernel kernel, const P& p,
                  const Extra&... extra) {
  constexpr std::int64_t most = 65535;
  const std::int64_t at_once[] = {most, most * tiling.rows, most * tiling.columns};
  std::int64_t at[3];
  for (at[0] = 0; at[0] < p.c.shape[0]; at[0] += at_once[0]) {
    for (at[1] = 0; at[1] < p.m(); at[1] += at_once[1]) {
      for (at[2] = 0; at[2] < p.n(); at[2] += at_once[2]) {
        P chunk = p;
        for (int axis = 0; axis < 3; ++axis) {
          const std::int64_t left = p.c.shape[axis] - at[axis];
          chunk = slice(chunk, axis, at[axis], smaller(at_once[axis], left));
        }
        const std::int64_t down = tiles_of(chunk.m(), tiling.rows);
        const std::int64_t along = tiles_of(chunk.n(), tiling.columns);
        const std::int64_t batch = chunk.c.shape[0];
        launch(context,
               {.grid = tiling.x_walks_rows ? LaunchExtent(down, along, batch)
                                            : LaunchExtent(along, down, batch),
                .block = tiling.block,
                .shared_bytes = tiling.shared_bytes},
               kernel, chunk, extra...);
      }
    }
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
