// SPDX-License-Identifier: Apache-2.0
// elementwise / gathered packs
//
// Idea     a thread computes a 16-byte pack of the result, across row ends; operands in z's order
//          are loaded in packs, elements of broadcast or strided operands are gathered one by one,
//          at offsets found by one division per pack and then incremented.
// Changes  against vectorized_16b: rows need not be whole packs, nor contiguous in every operand.
//          Against strided: wide accesses for dense operands, one division per 4 to 16 elements.
// Cost     loads every operand once, stores the result once; a load per gathered element, which
//          hits the caches if the element repeats.
// Limits   functions of two or three floating-point operands; z dense, and one operand in z's
//          order; fewer than 2^31 elements. An operand that is strided along z's rows is no faster
//          than with strided.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/elementwise/cuda/detail/packs.hpp"

namespace rung {
namespace {

using namespace elementwise_cuda;

/// Access to operands: bit i of `packed` is set if tensor i is dense in z's order with z's
/// alignment; `head` elements of z precede its first pack.
template <int All>
struct Gathering {
  Divisor extents[max_rank];
  unsigned packed = 0;
  int head = 0;
  std::uint32_t packs = 0;
};

/// Offsets of the current rows, and the column within them.
template <class T>
struct RowPlace {
  std::uint32_t column;
  std::int64_t row[T::all];

  __device__ __forceinline__ RowPlace(const T& tensors, const Gathering<T::all>& gathering,
                                      std::uint32_t element) {
    const auto& layout = tensors.layout;
#pragma unroll
    for (int i = 1; i < T::all; ++i) row[i] = 0;
    const int last = layout.rank - 1;
    std::uint32_t rest = gathering.extents[last].quotient(element);
    column = element - rest * static_cast<std::uint32_t>(layout.shape[last]);
#pragma unroll 1
    for (int axis = last - 1; axis >= 0; --axis) {
      const std::uint32_t quotient = axis == 0 ? 0 : gathering.extents[axis].quotient(rest);
      const std::uint32_t index = rest - quotient * static_cast<std::uint32_t>(layout.shape[axis]);
#pragma unroll
      for (int i = 1; i < T::all; ++i) row[i] += index * layout.strides[i][axis];
      rest = quotient;
    }
  }
  /// Advances to the next element, which has index `next`.
  __device__ __forceinline__ void step(const T& tensors, const Gathering<T::all>& gathering,
                                       std::uint32_t next) {
    const auto& layout = tensors.layout;
    if (++column < static_cast<std::uint32_t>(layout.shape[layout.rank - 1])) return;
    if (layout.rank > 2) {
      *this = RowPlace(tensors, gathering, next);
      return;
    }
    column = 0;
#pragma unroll
    for (int i = 1; i < T::all; ++i) row[i] += layout.strides[i][0];
  }
};

template <class T, class Packs, int... I>
__device__ __forceinline__ void gather_packs(const T& tensors, const Gathering<T::all>& gathering,
                                             std::uint32_t first, Packs& packs,
                                             std::integer_sequence<int, I...>) {
  constexpr int wide = pack_elements<T>;
  using Element = typename T::Out;
  const auto packed = [&](int i) { return (gathering.packed >> (i + 1) & 1) != 0; };
  ((packed(I) ? void(packs.template get<I>() = load_raw<wide>(tensors.template input<I>() + first))
              : void()),
   ...);
  RowPlace<T> place(tensors, gathering, first);
  Pack<Element, wide> gathered[T::inputs];
  const int last = tensors.layout.rank - 1;
#pragma unroll
  for (int lane = 0; lane < wide; ++lane) {
    const auto load = [&](int i, const Element* from) {
      if (packed(i)) return;
      gathered[i][lane] =
          from[place.row[i + 1] + place.column * tensors.layout.strides[i + 1][last]];
    };
    (load(I, tensors.template input<I>()), ...);
    if (lane + 1 < wide) place.step(tensors, gathering, first + lane + 1);
  }
  ((packed(I) ? void() : void(packs.template get<I>() = raw(gathered[I]))), ...);
}

template <class F, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_gathered_packs(F f, const __grid_constant__ T tensors,
                               const __grid_constant__ Gathering<T::all> gathering) {
  constexpr int wide = pack_elements<T>;
  using Indices = typename T::Indices;
  start_dependent();
  const std::uint32_t number = blockIdx.x * block_threads + threadIdx.x;
  if (number < gathering.packs) {
    const std::uint32_t first = static_cast<std::uint32_t>(gathering.head) + number * wide;
    typename PacksOf<wide, T>::Type packs{};
    gather_packs(tensors, gathering, first, packs, Indices{});
    store_wide(tensors.out + first, apply_pack<T>(f, packs, Indices{}));
  }
  // Computes the elements before the first pack and after the last: fewer than two packs in all.
  if (blockIdx.x == 0) {
    const std::int64_t behind = gathering.head + std::int64_t{gathering.packs} * wide;
    const std::int64_t outside = gathering.head + (tensors.layout.size() - behind);
    if (threadIdx.x < outside) {
      const auto head = static_cast<std::uint32_t>(gathering.head);
      compute_at(tensors, f, threadIdx.x < head ? threadIdx.x : behind + (threadIdx.x - head));
    }
  }
}

bool is_dense(const Collapsed<4>& layout, int tensor) {
  std::int64_t stride = 1;
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    if (layout.strides[tensor][axis] != stride) return false;
    stride *= layout.shape[axis];
  }
  return true;
}

std::uintptr_t address(const Elementwise::Args& args, int tensor) {
  return reinterpret_cast<std::uintptr_t>(
      tensor == 0 ? args.z.data : args.in[static_cast<std::size_t>(tensor - 1)].data);
}

bool is_packed(const Elementwise::Args& args, int tensor) {
  return is_dense(args.layout, tensor) && (address(args, tensor) - address(args, 0)) % 16 == 0;
}

Support supports(const Elementwise::Args& args, const Context&) {
  const Collapsed<4>& layout = args.layout;
  if (args.arity() < 2) return unsupported("takes functions of two or three operands");
  if (!is_floating(args.z.dtype)) return unsupported("f32, f64, f16 and bf16");
  const auto element = static_cast<std::uintptr_t>(size_of(args.z.dtype));
  if (layout.rank < 2 || layout.count > Divisor::most ||
      layout.count * static_cast<std::int64_t>(element) < 32) {
    return unsupported("takes two axes or more that do not merge, of 32 bytes to 2^31 elements");
  }
  if (!is_dense(layout, 0) || address(args, 0) % element != 0)
    return unsupported("z must be dense");
  for (int i = 1; i <= args.arity(); ++i) {
    if (is_packed(args, i)) return supported;
  }
  return unsupported("needs an operand with the order and alignment of z");
}

template <int All>
Gathering<All> gathering_of(const Elementwise::Args& args) {
  const auto element = static_cast<int>(size_of(args.z.dtype));
  const int wide = 16 / element;
  Gathering<All> gathering;
  const auto past = static_cast<int>(address(args, 0) % 16) / element;
  gathering.head = past == 0 ? 0 : wide - past;
  gathering.packs = static_cast<std::uint32_t>((args.layout.size() - gathering.head) / wide);
  return gathering;
}
std::int64_t blocks_of(std::int64_t packs) {
  return larger<std::int64_t>(blocks_for(packs, block_threads), 1);
}

void run(const Elementwise::Args& args, Context& context) {
  with_call<float, double, f16, bf16>(
      args, [&]<class F, class T>([[maybe_unused]] const F& f, [[maybe_unused]] const T& tensors) {
        if constexpr (T::inputs >= 2) {
          Gathering<T::all> gathering = gathering_of<T::all>(args);
          for (int i = 1; i < T::all; ++i) {
            if (is_packed(args, i)) gathering.packed |= 1u << i;
          }
          for (int axis = 1; axis < tensors.layout.rank; ++axis) {
            gathering.extents[axis] = Divisor::of(tensors.layout.shape[axis]);
          }
          launch(context,
                 {.grid = blocks_of(gathering.packs),
                  .block = block_threads,
                  .dependent = can_depend(context)},
                 elementwise_gathered_packs<F, T>, f, tensors, gathering);
        }
      });
}

const Rung<Elementwise> self{{.name = "gathered_packs",
                              .after = "vectorized_16b",
                              .backend = device_backend,
                              .supports = supports,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
