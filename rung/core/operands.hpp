// SPDX-License-Identifier: Apache-2.0
// Operands: the tensors of a call, as an operator lists them. From the list, core derives argument
// checks with uniform messages and the comparison of a call with the previous one.
//
//   static constexpr void operands(auto& call, auto&& visit) {
//     visit(in(call.x, "x"), optional_in(call.bias, "bias"), out(call.y, "y").may_be("x"));
//   }
//
// accepts a Call or its bound Args, const or not, and lists the same tensors of either. (It passes
// them to a visitor instead of returning a list, so that a repeated call builds no list.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Tensor of a call, to be compared with that of the last call. Refers to the original's axes and
/// must not outlive them.
struct TensorArgument {
  static inline const ConstTensorRef left_out;

  const void* data = nullptr;
  const DType& dtype = left_out.dtype;
  const Device& device = left_out.device;
  const Extents& shape = left_out.shape;
  const Extents& strides = left_out.strides;

  TensorArgument() = default;
  template <class Void>
  TensorArgument(const BasicTensorRef<Void>& tensor)  // NOLINT(google-explicit-constructor)
      : data(tensor.data),
        dtype(tensor.dtype),
        device(tensor.device),
        shape(tensor.shape),
        strides(tensor.strides) {}
  template <class Void>
  TensorArgument(const BasicTensorRef<Void>&&) = delete;
};

/// Placeholder whose values are all equal: replaces a call's tensors where only options are
/// compared, and the separate copy of the options (LastCall::options) where whole calls are
/// compared.
struct Nothing {
  Nothing() = default;
  constexpr Nothing(const auto&) {}  // NOLINT(google-explicit-constructor)
  bool operator==(const Nothing&) const = default;
};

/// Operand of a call. Ref is TensorRef, ConstTensorRef or TensorArgument, const or not.
template <class Ref>
struct Operand {
  Ref& tensor;
  std::string_view name;  // in messages
  bool written = false;
  bool optional = false;
  /// Names of operands with which a written operand may be identical (in-place operation).
  std::array<std::string_view, 3> same_as = {};

  [[nodiscard]] RUNG_ALWAYS_INLINE constexpr Operand may_be(std::string_view one,
                                                            std::string_view other = {},
                                                            std::string_view third = {}) const {
    return {tensor, name, written, optional, {one, other, third}};
  }
};

template <class Ref>
RUNG_ALWAYS_INLINE constexpr Operand<Ref> in(Ref& tensor, std::string_view name) {
  return {tensor, name};
}
template <class Ref>
RUNG_ALWAYS_INLINE constexpr Operand<Ref> out(Ref& tensor, std::string_view name) {
  return {tensor, name, true};
}
/// Lists an input that may be omitted: a tensor with neither data nor axes.
template <class Ref>
RUNG_ALWAYS_INLINE constexpr Operand<Ref> optional_in(Ref& tensor, std::string_view name) {
  return {tensor, name, false, true};
}
template <class Ref>
RUNG_ALWAYS_INLINE constexpr Operand<Ref> optional_out(Ref& tensor, std::string_view name) {
  return {tensor, name, true, true};
}

namespace detail {

using AnyOperand = Operand<const ConstTensorRef>;

/// Throws unless each given operand describes a valid tensor (require_tensor()).
RUNG_API void require_tensors(std::string_view op, std::span<const AnyOperand> operands);
/// Throws unless this build supports the device of each given operand, each is on the context's
/// device (not checked with `in_host_memory`, for operators whose operands are in host memory
/// whatever the context), and no written operand overlaps itself.
RUNG_API void require_usable(std::string_view op, std::span<const AnyOperand> operands,
                             const Context& context, bool in_host_memory);
/// Throws if a written operand overlaps another, unless it may be identical to it and is.
RUNG_API void require_no_overlap(std::string_view op, std::span<const AnyOperand> operands);

/// Calls f with the operands of a call as a span of one type.
template <class Op, class F>
void with_operands(const typename Op::Call& call, F&& f) {
  Op::operands(call, [&](const auto&... operand) {
    const ConstTensorRef tensors[] = {operand.tensor...};
    std::size_t i = 0;
    const AnyOperand all[] = {AnyOperand{tensors[i++], operand.name, operand.written,
                                         operand.optional, operand.same_as}...};
    f(std::span<const AnyOperand>(all));
  });
}

}  // namespace detail

/// Returns whether every output of the call is empty.
template <class Op>
bool writes_nothing(const typename Op::Call& call) {
  bool nothing = true;
  Op::operands(call, [&](const auto&... operand) {
    const auto left_out = [](const auto& one) {
      return one.optional && one.tensor.data == nullptr && one.tensor.shape.rank == 0;
    };
    nothing = ((!operand.written || operand.tensor.empty() || left_out(operand)) && ...);
  });
  return nothing;
}

/// Returns the arguments for rungs: normalized, with all checks done that do not depend on the
/// device.
template <class Op>
typename Op::Args bind(const typename Op::Call& call) {
  typename Op::Args args;
  static_cast<typename Op::Call&>(args) = call;
  detail::with_operands<Op>(call, [](auto all) { detail::require_tensors(Op::name, all); });
  Op::bind(args);
  return args;
}

/// Throws if operands overlap; depends only on the pointers once the call has been bound.
template <class Op>
void require_no_overlap(const typename Op::Call& call) {
  detail::with_operands<Op>(call, [](auto all) { detail::require_no_overlap(Op::name, all); });
}

/// Checks devices and overlapping memory, which bind() does not.
template <class Op>
void validate(const typename Op::Call& call, const Context& context) {
  constexpr bool in_host_memory = requires { Op::operands_in_host_memory; };
  detail::with_operands<Op>(
      call, [&](auto all) { detail::require_usable(Op::name, all, context, in_host_memory); });
  require_no_overlap<Op>(call);
}

/// Returns whether the tensors of a call have the same axes as those of the last one and, if a data
/// pointer has changed, the same alignment. Sets `moved` if a data pointer has changed.
template <class Op>
RUNG_ALWAYS_INLINE inline bool same_layouts(const auto& call, const typename Op::Call& last,
                                            bool& moved) {
  bool same = true;
  Op::operands(
      call, [&](const auto&... now) __attribute__((always_inline)) {
        Op::operands(
            last, [&](const auto&... before) __attribute__((always_inline)) {
              same = (same_axes(now.tensor, before.tensor) && ...);
              moved = ((now.tensor.data != before.tensor.data) || ...);
              if (moved) same = same && (aligned_alike(now.tensor.data, before.tensor.data) && ...);
            });
      });
  return same;
}

/// Replaces the data pointers in the remembered call and its bound arguments by those of `call`.
/// Keeps the offset that binding added to a pointer (to the start of a reversed axis).
template <class Op>
void move_pointers(const typename Op::Call& call, typename Op::Call& last,
                   typename Op::Args& args) {
  const auto move = [](const void* data, auto& before, auto& bound) {
    using Pointer = std::remove_reference_t<decltype(bound)>;
    const auto shift =
        reinterpret_cast<std::uintptr_t>(bound) - reinterpret_cast<std::uintptr_t>(before);
    bound = reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(data) + shift);
    before = const_cast<Pointer>(data);
  };
  Op::operands(call, [&](const auto&... now) {
    Op::operands(last, [&](const auto&... before) {
      Op::operands(args, [&](const auto&... bound) {
        (move(now.tensor.data, before.tensor.data, bound.tensor.data), ...);
      });
    });
  });
}

/// Returns whether `call` differs from `last`, from which `args` were bound, at most in data
/// pointers of equal alignment. If so, stores its pointers in `last` and `args`. Sets `moved` if a
/// pointer differs.
template <class Op>
bool repeats(const typename Op::Call& call, typename Op::Call& last, typename Op::Args& args,
             bool& moved) {
  moved = false;
  Op::operands(call, [&](const auto&... now) {
    Op::operands(last, [&](const auto&... before) {
      moved = ((now.tensor.data != before.tensor.data) || ...);
    });
  });
  if (moved) {
    if (!same_layouts<Op>(call, last, moved)) return false;
    move_pointers<Op>(call, last, args);
  }
  return last == call;
}

}  // namespace rung
