// SPDX-License-Identifier: Apache-2.0
// transform: a user-defined function over views, element by element, through the kernels of
// elementwise.
//
//   struct Blend {
//     float share;
//     __host__ __device__ float operator()(float x, float y) const { return x + share * (y - x); }
//   };
//   rung::transform(context, Blend{0.3f}, z, x, y);        // z = Blend(x, y)
//
// Formula  z(i) = f(in(i)...) for one to three inputs, each with an element type of its own. f
//          receives f16 and bf16 as float; its result is converted to z's type.
// Shapes   one to seven axes; the inputs broadcast to z's shape as in NumPy; any strides. z must
//          not overlap itself.
// Layout   in memory of the context's device: device memory for cuda, host memory for cpu and simt.
// Aliasing z may be an input exactly; otherwise they must not overlap. Overlap is decided by
//          address ranges, from the lowest to the highest byte that a tensor touches, so that
//          tensors whose elements interleave are refused.
// Function copyable and without side effects; called once per element, in any order, by several
//          threads.
// Errors   Error(invalid_argument) where a shape does not fit z's, or z overlaps itself or an
//          input partly; Error(not_available) where this file was compiled without the backend.
// Compile  with nvcc (-std=c++20 --expt-relaxed-constexpr, linked with librung and the CUDA
//          runtime) for cpu and cuda; with g++ -DRUNG_SIMT=1 for cpu and the simulated GPU; with
//          any C++20 compiler for cpu alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/require.hpp"
#include "rung/core/view.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/op/walk.hpp"

#if defined(__CUDACC__) || defined(RUNG_SIMT)
#include "rung/ops/elementwise/cuda/030_strided.cuh"
#include "rung/ops/elementwise/cuda/040_vectorized_16b.cuh"
#endif

namespace rung {
namespace transform_detail {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_class_v<To> && std::is_arithmetic_v<From>) {
    return To(static_cast<float>(value));  // f16, bf16
  } else {
    return static_cast<To>(value);
  }
}

/// Returns the strides of an operand broadcast to z's shape.
template <class Out, int N, class In, int M>
Extents spread(const View<Out, N>& z, const View<In, M>& in, int position) {
  static_assert(M <= N, "an input has no more axes than z");
  Extents strides;
  strides.rank = N;
  for (int axis = 0; axis < N; ++axis) {
    const int own = axis - (N - M);
    const bool repeats = own < 0 || (in.shape[own] == 1 && z.shape[axis] != 1);
    if (!repeats && in.shape[own] != z.shape[axis]) {
      reject("transform", "input " + std::to_string(position) + " is " +
                              to_string(Extents(std::span(in.shape, M))) + ", z " +
                              to_string(Extents(std::span(z.shape, N))) +
                              "; accepted: axes that, matched from the last one backwards, equal "
                              "z's or are 1");
    }
    strides[axis] = repeats ? 0 : in.strides[own];
  }
  return strides;
}

/// Returns the elements of any type as a tensor of bytes.
template <class T>
ConstTensorRef place(const T* data, const Extents& shape, const Extents& strides) {
  // An additional axis for the bytes of an element.
  ConstTensorRef bytes;
  bytes.data = data;
  bytes.dtype = DType::u8;
  bytes.shape = shape;
  bytes.strides = strides;
  for (int axis = 0; axis < shape.rank; ++axis) {
    bytes.strides[axis] *= static_cast<std::int64_t>(sizeof(T));
  }
  bytes.shape.rank = bytes.strides.rank = shape.rank + 1;
  bytes.shape[shape.rank] = static_cast<std::int64_t>(sizeof(T));
  bytes.strides[shape.rank] = 1;
  return bytes;
}

/// Computes elements [begin, end) in the layout's order.
template <class F, class Out, class... In, std::size_t... I>
void compute(const F& f, const Collapsed<sizeof...(In) + 1>& layout, std::int64_t begin,
             std::int64_t end, Out* z, std::index_sequence<I...>, const In*... in) {
  constexpr int all = sizeof...(In) + 1;
  elementwise_cpu::Walk<all> walk(layout, begin);
  const int last = layout.rank - 1;
  std::int64_t step[all];
  bool unit = true;
  for (int i = 0; i < all; ++i) {
    step[i] = last < 0 ? 1 : layout.strides[i][last];
    unit = unit && step[i] == 1;
  }
  while (begin < end) {
    const std::int64_t count = smaller(walk.left_in_row(), end - begin);
    Out* to = z + walk.at[0];
    const auto run = [&](const auto*... from) {
      if (unit) {  // a separate loop, which the compiler can vectorize
        for (std::int64_t i = 0; i < count; ++i) {
          to[i] = converted<Out>(f(converted<Accumulator<In>>(from[i])...));
        }
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          to[i * step[0]] = converted<Out>(f(converted<Accumulator<In>>(from[i * step[I + 1]])...));
        }
      }
    };
    run((in + walk.at[I + 1])...);
    walk.advance(count);
    begin += count;
  }
}

}  // namespace transform_detail

template <class F, class Out, int N, class... In, int... M>
void transform(Context& context, const F& f, const View<Out, N>& z, const View<In, M>&... in) {
  namespace detail = transform_detail;
  constexpr int inputs = sizeof...(In);
  static_assert(inputs >= 1 && inputs <= 3, "one to three inputs");
  static_assert(N >= 1 && N < max_rank, "one to seven axes");
  using Pointers = std::make_index_sequence<inputs>;
  const Extents shape(std::span(z.shape, N));
  const Extents z_strides(std::span(z.strides, N));
  int position = 0;
  const std::array<Extents, inputs + 1> strides{z_strides, detail::spread(z, in, ++position)...};
  if (shape.product() == 0) return;
  const ConstTensorRef written = detail::place(z.data, shape, z_strides);
  require_writable("transform", written, "z");
  int operand = 0;
  (
      [&] {
        ++operand;
        const Extents& own = strides[static_cast<std::size_t>(operand)];
        const bool same = static_cast<const void*>(in.data) == z.data && own == z_strides &&
                          sizeof(In) == sizeof(Out);
        if (!same) {
          require_apart("transform", written, "z", detail::place(in.data, shape, own),
                        "input " + std::to_string(operand));
        }
      }(),
      ...);
  const auto layout = collapse<inputs + 1>(shape, strides, all_axes, AxisOrder::by_stride);

  if (context.backend() == Backend::cpu) {
    // At most a few nanoseconds per element: below `worth_a_team`, waking a thread takes longer.
    constexpr std::int64_t worth_a_team = 16384;
    const int threads = layout.count < worth_a_team ? 1 : context.threads();
    cpu::run_shares(threads, [&](const cpu::Team& team) {
      const cpu::Range mine = team.share(layout.count);
      detail::compute<F, Out, std::remove_const_t<In>...>(f, layout, mine.begin, mine.end, z.data,
                                                          Pointers{}, in.data...);
    });
    return;
  }
#if defined(__CUDACC__) || defined(RUNG_SIMT)
  if (context.backend() == device_backend) {
    using Tensors = elementwise_cuda::Tensors<Out, std::remove_const_t<In>...>;
    const Tensors tensors{z.data, {in.data...}, layout};
    if (const auto packing = elementwise_cuda::pack(tensors)) {
      elementwise_cuda::launch_packs(context, f, tensors, *packing);
    } else {
      elementwise_cuda::launch_strided(context, f, tensors);
    }
    return;
  }
#endif
  throw Error(ErrorCode::not_available, std::string("transform: the context runs on ") +
                                            to_string(context.backend()) +
                                            ", for which the calling file was not compiled");
}

}  // namespace rung
