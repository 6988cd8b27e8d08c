// SPDX-License-Identifier: Apache-2.0
// 16-bit operands of small products, held whole in shared memory: their layout and copies.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "rung/device/load.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int small_threads = 128;  // per block
constexpr int small_element = 2;    // bytes
constexpr int small_padding = 16;   // axes are padded to multiples of this many elements

/// Layout of one operand in shared memory: lines along its contiguous axis, padded to whole
/// instructions, with a pitch of an odd multiple of 16 bytes, which puts the eight lines of an
/// ldmatrix phase in different banks. A block clears the padding once; copies leave it zero.
struct SmallOperand {
  bool k_major;      // lines are along k
  int piece;         // bytes per copy: 16, 8, 4, or 2 through registers
  int lines, along;  // of the matrix; elements along a line
  int padded_lines, pitch;
  int lanes;  // per line during the copy
  std::int64_t matrix_stride, line_stride, along_stride;

  [[nodiscard]] RUNG_HD int elements() const { return padded_lines * pitch; }
  [[nodiscard]] __device__ bool is_padded() const {
    return padded_lines != lines || pitch - 16 / small_element != along;
  }
  [[nodiscard]] __device__ int place(int outer, int k) const {
    return k_major ? outer * pitch + k : k * pitch + outer;
  }
};

/// Copies lines in pieces as large as their addresses allow.
template <int Bytes, class T>
__device__ __forceinline__ void copy_small_pieces(const SmallOperand& operand, const T* from,
                                                  int products, T* to) {
  constexpr int size = Bytes / small_element;
  const int pieces = tiles_of(operand.along, size);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int product = 0; product < products; ++product) {
    for (int line = thread / operand.lanes; line < operand.lines;
         line += small_threads / operand.lanes) {
      const T* const line_from =
          from + product * operand.matrix_stride + line * operand.line_stride;
      T* const line_to = to + product * operand.elements() + line * operand.pitch;
      for (int piece = thread % operand.lanes; piece < pieces; piece += operand.lanes) {
        ptx::async_copy<Bytes>(line_to + piece * size, line_from + piece * size,
                               smaller(operand.along - piece * size, size) * small_element);
      }
    }
  }
}

/// Copies lines that are unaligned or not contiguous, with elements of `at_once` lines in flight
/// per thread.
template <class T>
__device__ __forceinline__ void copy_small_elements(const SmallOperand& operand, const T* from,
                                                    int products, T* to) {
  constexpr int at_once = 8;
  const auto thread = static_cast<int>(threadIdx.x);
  const int apart = small_threads / operand.lanes;
  for (int product = 0; product < products; ++product) {
    for (int first = thread / operand.lanes; first < operand.lines; first += apart * at_once) {
      for (int at = thread % operand.lanes; at < operand.along; at += operand.lanes) {
        const T* line_from = from + product * operand.matrix_stride + first * operand.line_stride +
                             at * operand.along_stride;
        RawPack<T, 1> values[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
          values[i] = raw(Pack<T, 1>{{zero<T>()}});
          if (first + i * apart < operand.lines) values[i] = load_raw_constant<1>(line_from);
          line_from += apart * operand.line_stride;
        }
        T* line_to = to + product * operand.elements() + first * operand.pitch + at;
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
          // Not the condition of the loads: each load would move to its store, and be waited for.
          if (first + i * apart < operand.padded_lines) *line_to = unpack(values[i])[0];
          line_to += apart * operand.pitch;
        }
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void copy_small(const SmallOperand& operand, const T* from, int products,
                                           T* to) {
  if (operand.piece == 16) {
    copy_small_pieces<16>(operand, from, products, to);
  } else if (operand.piece == 8) {
    copy_small_pieces<8>(operand, from, products, to);
  } else if (operand.piece == 4) {
    copy_small_pieces<4>(operand, from, products, to);
  } else {
    copy_small_elements(operand, from, products, to);
  }
}

/// Clears `count` elements, a multiple of eight, of shared memory.
template <class T>
__device__ __forceinline__ void clear_small(T* to, int count) {
  for (int at = static_cast<int>(threadIdx.x) * vector_width<T>; at < count;
       at += small_threads * vector_width<T>) {
    store_wide(to + at, Pack<T, vector_width<T>>{});
  }
}

constexpr int small_padded(std::int64_t extent) {
  return static_cast<int>(tiles_of(larger<std::int64_t>(extent, 1), small_padding)) * small_padding;
}

/// Returns the layout of an operand. `view`: matrices x rows x columns; axis `outer` is shared with
/// C.
template <class V>
SmallOperand small_operand(const V& view, const void* data, int outer, int k, std::int64_t steps) {
  SmallOperand operand{};
  operand.k_major = std::abs(view.strides[k]) <= std::abs(view.strides[outer]);
  const int line = operand.k_major ? outer : k;
  const int along = operand.k_major ? k : outer;
  const std::int64_t extents[] = {operand.k_major ? view.shape[outer] : steps,
                                  operand.k_major ? steps : view.shape[outer]};
  operand.lines = static_cast<int>(extents[0]);
  operand.along = static_cast<int>(extents[1]);
  operand.padded_lines = small_padded(extents[0]);
  operand.pitch = small_padded(extents[1]) + 16 / small_element;
  operand.matrix_stride = view.strides[0];
  operand.line_stride = view.strides[line];
  operand.along_stride = view.strides[along];
  operand.piece = small_element;
  if (view.strides[along] == 1 || extents[1] <= 1) {
    for (const int bytes : {16, 8, 4}) {
      const int size = bytes / small_element;
      if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 &&
          (view.strides[line] % size == 0 || extents[0] <= 1) &&
          (view.strides[0] % size == 0 || view.shape[0] <= 1)) {
        operand.piece = bytes;
        break;
      }
    }
  }
  const std::int64_t pieces = tiles_of(extents[1], operand.piece / small_element);
  operand.lanes = 1;
  while (operand.lanes < pieces && operand.lanes < 32) operand.lanes *= 2;
  return operand;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
