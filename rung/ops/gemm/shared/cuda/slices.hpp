// SPDX-License-Identifier: Apache-2.0
// Slices of k (split-K): partial sums and their combination.
#pragma once

#include <cstdint>

#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Arguments of the epilogue: C, bias, residual and factors, without operands.
template <class T>
struct Finish {
  // C and bias have the type of the sums (double for f64, else float), or T if `narrow`.
  Product<T, Accumulator<T>> p;
  bool narrow;
};

template <class T>
Finish<T> finish_of(const Gemm::Args& args) {
  using Sum = Accumulator<T>;
  Gemm::Args wide = args;  // the same pointers; `narrow` records their type
  wide.c.dtype = dtype_of<Sum>;
  if (wide.bias.data != nullptr) wide.bias.dtype = dtype_of<Sum>;
  if (wide.residual.data != nullptr) wide.residual.dtype = dtype_of<Sum>;
  return {product<T, Sum>(wide), args.c.dtype != dtype_of<Sum>};
}

/// Returns `count` matrices of the batch from `first` on. A tensor of a narrow type is advanced by
/// its own element size, not by that of the view's type.
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

/// Returns the pitch of a row of partial sums in elements: whole packs of four.
constexpr std::int64_t partial_pitch(std::int64_t columns) { return (columns + 3) / 4 * 4; }

/// Returns the bytes of the partial sums of `slices` slices.
template <class T>
std::size_t partial_bytes(const Finish<T>& finish, std::int64_t slices) {
  const auto& c = finish.p.c;
  return static_cast<std::size_t>(slices * c.shape[0] * c.shape[1] * partial_pitch(c.shape[2])) *
         sizeof(Accumulator<T>);
}

/// Returns the arguments with C replaced by the partial sums, laid out as
/// [slice][batch][row][column].
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

/// Combines the partial sums into C, in the order of the slices. Instantiated for float, double,
/// f16 and bf16 in slices.cu.
template <class T>
void add_slices(Context& context, const Finish<T>& finish, const Accumulator<T>* partial,
                int slices);

/// Calls `multiply(partial)`, which writes `slices` partial sums if there are several, and combines
/// them. `given`: memory for the partial sums, or null for the context's workspace.
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
