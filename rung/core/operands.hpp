// SPDX-License-Identifier: Apache-2.0
// Operands: the tensors of a call, as an operator lists them, and what core derives from the list
// for every operator - checks with one wording, and a comparison with the call before.
//
//   static constexpr void operands(auto& call, auto&& visit) {
//     visit(in(call.x, "x"), optional_in(call.bias, "bias"), out(call.y, "y").may_be("x"));
//   }
//
// takes a Call or the Args made of it, constant or not, and lists the same tensors of either. (It
// visits rather than returns them, so that a call that repeats the last one builds no list.)
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

/// A tensor of a call that is only compared with the last one: its axes are not copied, so that it
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

/// Placeholder for a call's tensors, if only its options are compared, and for its options, if the
/// call is compared as a whole.
struct Nothing {
  Nothing() = default;
  constexpr Nothing(const auto&) {}  // NOLINT(google-explicit-constructor)
  bool operator==(const Nothing&) const = default;
};

/// Ref is TensorRef, ConstTensorRef or TensorArgument, const or not.
template <class Ref>
struct Operand {
  Ref& tensor;
  std::string_view name;  // in messages
  bool written = false;
  bool optional = false;
  /// Operands that an operand which is written may be: the same elements in the same places.
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
/// Left out when it has neither data nor axes.
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

/// Each operand that is given describes a tensor (require_tensor).
RUNG_API void require_tensors(std::string_view op, std::span<const AnyOperand> operands);
/// They are where the context runs (or in host memory, whatever it runs on), on devices that this
/// build has, and what is written does not overlap itself.
RUNG_API void require_usable(std::string_view op, std::span<const AnyOperand> operands,
                             const Context& context, bool in_host_memory);
/// Throws if a written operand overlaps another, unless the two may be one tensor and are.
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

/// Returns whether everything that the call would write is empty.
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

/// Returns the arguments that a rung sees: normalized, and checked but for what depends on the
/// device.
template <class Op>
typename Op::Args bind(const typename Op::Call& call) {
  typename Op::Args args;
  static_cast<typename Op::Call&>(args) = call;
  detail::with_operands<Op>(call, [](auto all) { detail::require_tensors(Op::name, all); });
  Op::bind(args);
  return args;
}

/// The overlap of operands, which depends on nothing but pointers once a call has been bound.
template <class Op>
void require_no_overlap(const typename Op::Call& call) {
  detail::with_operands<Op>(call, [](auto all) { detail::require_no_overlap(Op::name, all); });
}

/// Checks what bind() does not: devices, and overlapping memory.
template <class Op>
void validate(const typename Op::Call& call, const Context& context) {
  constexpr bool in_host_memory = requires { Op::operands_in_host_memory; };
  detail::with_operands<Op>(
      call, [&](auto all) { detail::require_usable(Op::name, all, context, in_host_memory); });
  require_no_overlap<Op>(call);
}

/// Returns whether the tensors of a call are laid out as those of the last one, and whether a data
/// pointer has moved: then alignment may differ no more than the rest.
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

/// Puts a call's data pointers into the remembered one and what was bound of it. Binding may have
/// moved a pointer within its tensor, to where a reversed axis begins.
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

/// Returns whether `call` differs from `last`, of which `args` were made, in data pointers at most,
/// and not in their alignment. Puts its pointers into both, and says whether one has moved.
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
