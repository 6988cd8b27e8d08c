// SPDX-License-Identifier: Apache-2.0
// What every gemm kernel is given, and how it is launched over matrices of any size.
//
// A grid has limits: 65535 blocks along y and z. Products beyond them are cut into chunks, each a
// Product of its own with shifted pointers, so that kernels know nothing of it - and since a chunk
// has fewer than 2^31 rows and columns, they may keep block coordinates in an int. Distances in
// memory are always 64 bits: strides may be anything.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// One call, typed. Batches are the first axis of every view; kernels find theirs at blockIdx.z.
template <class In_, class Out_>
struct Product {
  using In = In_;
  using Out = Out_;
  using Sum = GemmSum<In>;

  View<const In, 3> a;
  View<const In, 3> b;
  View<Out, 3> c;
  View<const Out, 3> bias;  // data is null without one
  Sum alpha;
  Sum beta;
  Activation activation;
  View<const Out, 3> residual;  // data is null without one

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t m() const { return c.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t n() const { return c.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t k() const { return a.shape[2]; }
};

/// The product with C, and bias, of another type: the kernels of 16-bit operands learn at run time
/// whether C is f32, instead of being compiled twice.
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
/// finish(the product), with C of T where the result is narrow and T has 16 bits, else as it is.
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
  // Nothing is to be read from A and B when alpha is 0: an empty sum does that.
  if (args.alpha == 0) p.a.shape[2] = p.b.shape[1] = 0;
  return p;
}

/// Calls f with the Product of the call's types: all but 8-bit operands.
template <class F>
void with_product(const Gemm::Args& args, F&& f) {
  visit<float, double, bf16, f16>(args.a.dtype, [&]<class In>() {
    if constexpr (sizeof(In) == 2) {
      if (args.c.dtype == DType::f32) return f(product<In, float>(args));
    }
    f(product<In, In>(args));
  });
}

/// The transposed problem, C' = B' A', has C's columns where its rows were.
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

/// C with contiguous columns is made as the transposed product, whose C has contiguous rows.
template <class P>
P with_contiguous_c(const P& p) {
  return p.c.strides[2] != 1 && p.c.strides[1] == 1 ? transpose(p) : p;
}

/// The part of a product that makes C's `count` indices of `axis` (0 batch, 1 rows, 2 columns)
/// from `first` on.
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

/// Tiling of C: a block computes `rows` x `columns` of it.
struct Tiling {
  int rows;
  int columns;
  LaunchExtent block;
  std::size_t shared_bytes = 0;
  bool x_walks_rows = false;  // blockIdx.x counts tiles down the rows instead of along the columns
};

/// Product of the rungs that exist in single precision only.
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
