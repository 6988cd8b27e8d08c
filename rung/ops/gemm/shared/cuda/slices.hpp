// SPDX-License-Identifier: Apache-2.0
// Slices of k: what a kernel that cuts k leaves behind, and how it is added up.
#pragma once

#include <cstdint>

#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// C and what follows the sums, without operands.
template <class T>
struct Finish {
  // C and bias are of sums' type - f64's double, else float - or of T where `narrow`.
  Product<T, Accumulator<T>> p;
  bool narrow;
};

template <class T>
Finish<T> finish_of(const Gemm::Args& args) {
  using Sum = Accumulator<T>;
  Gemm::Args wide = args;  // the same pointers; their type is remembered apart
  wide.c.dtype = dtype_of<Sum>;
  if (wide.bias.data != nullptr) wide.bias.dtype = dtype_of<Sum>;
  if (wide.residual.data != nullptr) wide.residual.dtype = dtype_of<Sum>;
  return {product<T, Sum>(wide), args.c.dtype != dtype_of<Sum>};
}

/// `count` matrices of the batch from `first` on. What has another type than it is given as is
/// reached by the size of its own.
template <class T>
Finish<T> batches(const Finish<T>& finish, std::int64_t first, std::int64_t count) {
  Finish<T> part = finish;
  part.p = slice(finish.p, 0, first, count);
  if (!finish.narrow) return part;
  const auto reach = [&](auto& view, const auto& all) {
    if (all.data == nullptr) return;
    auto* const bytes = reinterpret_cast<const char*>(all.data) +
                        first * all.strides[0] * static_cast<std::int64_t>(sizeof(T));
    view.data = reinterpret_cast<decltype(view.data)>(const_cast<char*>(bytes));
  };
  reach(part.p.c, finish.p.c);
  reach(part.p.bias, finish.p.bias);
  reach(part.p.residual, finish.p.residual);
  return part;
}

/// Sums from a row of partial ones to the next: whole packs of four.
constexpr std::int64_t partial_pitch(std::int64_t columns) { return (columns + 3) / 4 * 4; }

/// Bytes of the partial sums of so many slices.
template <class T>
std::size_t partial_bytes(const Finish<T>& finish, std::int64_t slices) {
  const auto& c = finish.p.c;
  return static_cast<std::size_t>(slices * c.shape[0] * c.shape[1] * partial_pitch(c.shape[2])) *
         sizeof(Accumulator<T>);
}

/// Combines the slices, with the kernel's sums as C: [slice][batch][row][column], one slice after
/// another.
template <class T>
Finish<T> into_partial_sums(Finish<T> finish, Accumulator<T>* partial) {
  auto& p = finish.p;
  p.c.data = partial;
  p.c.strides[2] = 1;
  p.c.strides[1] = partial_pitch(p.n());
  p.c.strides[0] = p.m() * p.c.strides[1];
  p.bias.data = nullptr;
  p.residual.data = nullptr;
  p.alpha = 1;
  p.beta = 0;
  p.activation = Activation::none;
  finish.narrow = false;
  return finish;
}

/// C from partial sums, in the order of the slices. For T = float, double, f16, bf16; in
/// slices.cu.
template <class T>
void add_slices(Context& context, const Finish<T>& finish, const Accumulator<T>* partial,
                int slices);

/// Runs `multiply(partial)`, which leaves `slices` partial sums where that is more than one, and
/// adds those up. `given`: memory for them, if the caller has it.
template <class T, class Multiply>
void with_slices(Context& context, const Finish<T>& finish, int slices, void* given,
                 const Multiply& multiply) {
  if (slices == 1) return multiply(nullptr);
  void* const memory = given != nullptr ? given : context.workspace(partial_bytes(finish, slices));
  auto* partial = static_cast<float*>(memory);
  multiply(partial);
  add_slices(context, finish, partial, slices);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
