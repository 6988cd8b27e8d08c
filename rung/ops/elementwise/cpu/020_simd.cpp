// SPDX-License-Identifier: Apache-2.0
// elementwise / simd
//
// Idea     Vectors of adjacent elements: one instruction loads 16 f32, another computes on all of
//          them. A function is a functor inlined in the loop; the kernel for a function and type is
//          looked up once per problem.
// Changes  Against naive: the widest vectors of the machine, every type and function. exp, tanh,
//          sigmoid and gelu are vector arithmetic instead of a C library call per element; hence 5x
//          and more in one step.
// Cost     Every operand loaded once, the result stored once; an ordinary store also reads the
//          cache line that it overwrites (write-allocate).
// Limits   Tensors whose elements are adjacent and in the same order; one thread.
// Source   Intel, Optimization Reference Manual, on vectorized loops.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 int
#include "rung/ops/elementwise/cpu/detail/activations-inl.hpp"
#include "rung/ops/elementwise/cpu/detail/facts.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::elementwise_cpu::HWY_NAMESPACE {
namespace {

// --- functions -----------------------------------------------------------------------------------

/// Returns the product of integers modulo their range.
template <class D, class V>
HWY_INLINE V multiply_wrapping(D d, V x, V y) {
#if HWY_TARGET == HWY_SCALAR
  using T = hn::TFromD<D>;
  return hn::Set(d, static_cast<T>(static_cast<std::uint64_t>(hn::GetLane(x)) *
                                   static_cast<std::uint64_t>(hn::GetLane(y))));
#else
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::Mul(x, y);
  } else if constexpr (sizeof(hn::TFromD<D>) == 1) {
    // Two bytes at a time: the low byte of a product depends on the low bytes only.
    const hn::Repartition<std::uint16_t, D> d16;
    const auto a = hn::BitCast(d16, x);
    const auto b = hn::BitCast(d16, y);
    const auto low = hn::And(hn::Mul(a, b), hn::Set(d16, 0xff));
    const auto high = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a), hn::ShiftRight<8>(b)));
    return hn::BitCast(d, hn::Or(low, high));
  } else {
    // The product of 32-bit halves; the product of the upper halves is beyond 64 bits.
    const hn::RebindToUnsigned<D> d64;
    const hn::Repartition<std::uint32_t, D> d32;
    const auto a = hn::BitCast(d64, x);
    const auto b = hn::BitCast(d64, y);
    const auto product = [&](auto left, auto right) {
      return hn::MulEven(hn::BitCast(d32, left), hn::BitCast(d32, right));
    };
    const auto cross =
        hn::Add(product(hn::ShiftRight<32>(a), b), product(a, hn::ShiftRight<32>(b)));
    return hn::BitCast(d, hn::Add(product(a, b), hn::ShiftLeft<32>(cross)));
  }
#endif
}

struct Add {
  static constexpr int arity = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D, const Parameters<V>&, V x, V y, V) const {
    return hn::Add(x, y);
  }
};
struct Sub {
  static constexpr int arity = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D, const Parameters<V>&, V x, V y, V) const {
    return hn::Sub(x, y);
  }
};
struct Mul {
  static constexpr int arity = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V y, V) const {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return multiply_wrapping(d, x, y);
    } else {
      return hn::Mul(x, y);
    }
  }
};
struct Div {
  static constexpr int arity = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D, const Parameters<V>&, V x, V y, V) const {
    return hn::Div(x, y);
  }
};
struct Axpy {
  static constexpr int arity = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>& p, V x, V y, V) const {
    return math::fused(d, p.alpha, x, y);
  }
};
struct Fma {
  static constexpr int arity = 3;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V y, V w) const {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Add(multiply_wrapping(d, x, y), w);
    } else {
      return math::fused(d, x, y, w);
    }
  }
};
struct Relu {
  static constexpr int arity = 1;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Max(x, hn::Zero(d));
    } else {
      return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);  // NaN compares false and remains
    }
  }
};
struct Exp {
  static constexpr int arity = 1;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    return math::exp_of(d, x);
  }
};
struct Sign {
  static constexpr int arity = 1;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    const auto apart = hn::Gt(hn::Abs(x), hn::Zero(d));  // neither 0 nor NaN, which remain
    return hn::IfThenElse(apart, hn::CopySign(hn::Set(d, 1), x), x);
  }
};

/// Calls use(F{}) for the functor of `function`; integers have only a few functions.
template <class T, class Use>
auto with_function(ElementwiseFunction function, Use use) {
  using enum ElementwiseFunction;
  if constexpr (!std::is_integral_v<T>) {
    switch (function) {
      case div:
        return use(Div{});
      case axpy:
        return use(Axpy{});
      case sigmoid:
        return use(Sigmoid{});
      case tanh:
        return use(Tanh{});
      case gelu:
        return use(Gelu{});
      case exp:
        return use(Exp{});
      case silu:
        return use(Silu{});
      case sign:
        return use(Sign{});
      default:
        break;
    }
  }
  switch (function) {
    case sub:
      return use(Sub{});
    case mul:
      return use(Mul{});
    case fma:
      return use(Fma{});
    case relu:
      return use(Relu{});
    default:
      return use(Add{});
  }
}

// --- loop ----------------------------------------------------------------------------------------

/// Type in which T is computed: f32 for the 2-byte floats.
template <class T>
using Tag = hn::ScalableTag<Accumulator<T>>;

enum class Store : bool { ordinary, streaming };

/// Computes one vector of results, full or its first n lanes.
template <class F, Store store, class T, class V, class... Count>
HWY_INLINE void step(const T* x, const T* y, const T* w, T* z, const Parameters<V>& parameters,
                     Count... n) {
  const Tag<T> d;
  const auto load = [&](const T* from) {
    if constexpr (sizeof...(n) == 0) {
      return math::load_as(d, from);
    } else {
      return math::load_as_n(d, from, n...);
    }
  };
  const V a = load(x);
  V b = a;
  V c = a;
  if constexpr (F::arity > 1) b = load(y);
  if constexpr (F::arity > 2) c = load(w);
  const V result = F{}(d, parameters, a, b, c);
  if constexpr (sizeof...(n) != 0) {
    math::store_as_n(result, d, z, n...);
  } else if constexpr (store == Store::streaming) {
    const math::StoredTag<T, Tag<T>> stored;
    using Bits = hn::TFromD<decltype(stored)>;
    hn::Stream(math::narrow<T>(d, result), stored, reinterpret_cast<Bits*>(z));
  } else {
    math::store_as(result, d, z);
  }
}

/// Computes whole groups of vectors from element `i` on. Returns the index after the last group.
template <class F, Store store, class T, class V>
HWY_INLINE std::int64_t groups(const T* x, const T* y, const T* w, T* z,
                               const Parameters<V>& parameters, std::int64_t i,
                               std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
  // Four vectors per iteration hide loop overhead behind memory accesses, and overlap dependent
  // chains (exp: about 12 instructions).
  constexpr int unroll = 4;
  for (; i + unroll * lanes <= count; i += unroll * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < unroll; ++v) {
      const std::int64_t at = i + v * lanes;
      step<F, store>(x + at, y + at, w + at, z + at, parameters);
    }
  }
  return i;
}

template <class F, class T>
void map(const void* x_data, const void* y_data, const void* w_data, void* z_data,
         std::int64_t count, double alpha, bool streaming) {
  const T* x = static_cast<const T*>(x_data);
  const T* y = static_cast<const T*>(y_data);
  const T* w = static_cast<const T*>(w_data);
  T* z = static_cast<T*>(z_data);
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Parameters<hn::Vec<Tag<T>>> parameters{hn::Set(d, static_cast<Accumulator<T>>(alpha))};
  std::int64_t i = 0;
  if (streaming) {
    // Non-temporal stores require aligned addresses: the first elements use ordinary stores.
    const auto vector_bytes = static_cast<std::uintptr_t>(lanes) * sizeof(T);
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(z) % vector_bytes;
    if (past != 0) {
      i = std::min(count, static_cast<std::int64_t>((vector_bytes - past) / sizeof(T)));
      step<F, Store::ordinary>(x, y, w, z, parameters, static_cast<std::size_t>(i));
    }
    i = groups<F, Store::streaming>(x, y, w, z, parameters, i, count);
  } else {
    i = groups<F, Store::ordinary>(x, y, w, z, parameters, i, count);
  }
  for (; i + lanes <= count; i += lanes) {
    step<F, Store::ordinary>(x + i, y + i, w + i, z + i, parameters);
  }
  if (i < count) {
    step<F, Store::ordinary>(x + i, y + i, w + i, z + i, parameters,
                             static_cast<std::size_t>(count - i));
  }
}

template <class T>
Kernel kernel_of(ElementwiseFunction function) {
  return with_function<T>(function, []<class F>(F) -> Kernel { return map<F, T>; });
}

/// Returns the kernel of a type and function; the part of this file for `int` has all integers.
Kernel kernel_for([[maybe_unused]] DType dtype, ElementwiseFunction function) {
  if constexpr (std::is_same_v<RUNG_SPLIT_TYPE, int>) {
    return visit<std::int32_t, std::int64_t, std::uint8_t>(
        dtype, [&]<class T>() -> Kernel { return kernel_of<T>(function); });
  } else {
    return kernel_of<RUNG_SPLIT_TYPE>(function);
  }
}

}  // namespace
}  // namespace rung::elementwise_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace elementwise_cpu {
HWY_EXPORT(kernel_for);
template <>
Kernel kernel_for<RUNG_SPLIT_TYPE>(DType dtype, ElementwiseFunction function) {
  return HWY_DYNAMIC_DISPATCH(kernel_for)(dtype, function);
}
}  // namespace elementwise_cpu

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Elementwise::Args& args, const Context&) {
  return args.flat() ? supported
                     : unsupported("takes contiguous tensors of one order, without broadcasting");
}

Work work(const Elementwise::Args& args, const Context&) {
  return {.operations = elementwise_cpu::operations_of(args)};
}

void run(const Elementwise::Args& args, Context&) {
  const auto in = [&](int i) {
    return args.in[static_cast<std::size_t>(i < args.arity() ? i : 0)].data;
  };
  const elementwise_cpu::Kernel kernel = elementwise_cpu::find_kernel(args.function, args.z.dtype);
  kernel(in(0), in(1), in(2), args.z.data, args.size(), args.alpha, false);
}

const Rung<Elementwise> self{
    {.name = "simd", .step = 20, .after = "naive", .supports = supports, .work = work, .run = run}};

}  // namespace
#endif
}  // namespace rung
#endif
