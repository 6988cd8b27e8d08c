// SPDX-License-Identifier: Apache-2.0
// elementwise: host code of the CUDA rungs: from arguments to a kernel's types.
#pragma once

#include "rung/ops/elementwise/cuda/detail/functions.hpp"
#include "rung/ops/elementwise/cuda/detail/tensors.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

constexpr int block_threads = 256;  // eight blocks fill an SM, and few threads idle

/// Returns the layout of the first N tensors.
template <int N>
Collapsed<N> first_of(const Collapsed<4>& all) {
  Collapsed<N> some;
  some.rank = all.rank;
  some.count = all.count;
  for (int axis = 0; axis < all.rank; ++axis) {
    some.shape[axis] = all.shape[axis];
    for (int i = 0; i < N; ++i) some.strides[i][axis] = all.strides[i][axis];
  }
  return some;
}

template <class T, class... In, class Use>
void with_inputs(const Elementwise::Args& args, const Use& use) {
  constexpr int inputs = sizeof...(In);
  Tensors<T, In...> tensors;
  tensors.out = static_cast<T*>(args.z.data);
  for (int i = 0; i < inputs; ++i) tensors.in[i] = args.in[static_cast<std::size_t>(i)].data;
  tensors.layout = first_of<inputs + 1>(args.layout);
  use(tensors);
}

/// Calls use(tensors) with the types of args, which must be among Ts.
template <class... Ts, class Use>
void with_tensors(const Elementwise::Args& args, const Use& use) {
  visit<Ts...>(args.z.dtype, [&]<class T>() {
    switch (args.arity()) {
      case 1:
        return with_inputs<T, T>(args, use);
      case 2:
        return with_inputs<T, T, T>(args, use);
      default:
        return with_inputs<T, T, T, T>(args, use);
    }
  });
}

/// Calls use(f, tensors) with the function of args too.
template <class... Ts, class Use>
void with_call(const Elementwise::Args& args, const Use& use) {
  with_tensors<Ts...>(args, [&]<class T>(const T& tensors) {
    with_function<typename T::Out, T::inputs>(args.function, args.alpha,
                                              [&](const auto& f) { use(f, tensors); });
  });
}

/// Returns unsupported except for contiguous f32, the problems of the textbook rungs: one type
/// keeps them short, and quick to compile.
inline Support require_flat_f32(const Elementwise::Args& args, const Context&) {
  if (args.z.dtype != DType::f32) return unsupported("this rung takes f32");
  return args.flat() ? supported
                     : unsupported("takes contiguous tensors of one order, without broadcasting");
}

/// Calls use(f, z, n, x...) with the function of args, its n results and the inputs, all contiguous
/// f32.
template <class Use>
void with_flat_f32(const Elementwise::Args& args, const Use& use) {
  auto* const z = static_cast<float*>(args.z.data);
  const std::int64_t n = args.layout.size();
  const auto x = [&](std::size_t input) { return static_cast<const float*>(args.in[input].data); };
  const auto with = [&]<int arity>(auto... inputs) {
    with_function<float, arity>(args.function, args.alpha,
                                [&](const auto& f) { use(f, z, n, inputs...); });
  };
  switch (args.arity()) {
    case 1:
      return with.template operator()<1>(x(0));
    case 2:
      return with.template operator()<2>(x(0), x(1));
    default:
      return with.template operator()<3>(x(0), x(1), x(2));
  }
}

/// Returns the default Work, which fits every kernel: one launch, bound by the bytes it moves.
inline Work memory_work(const Elementwise::Args&, const Context&) { return {}; }

inline std::int64_t blocks_for(std::int64_t items, std::int64_t items_a_block) {
  return (items + items_a_block - 1) / items_a_block;
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
