// SPDX-License-Identifier: Apache-2.0
// Argument checks common to all operators.
#include "rung/core/operands.hpp"

#include <algorithm>

#include "rung/core/require.hpp"

namespace rung::detail {
namespace {

bool is_there(const AnyOperand& operand) { return !operand.optional || is_given(operand.tensor); }

bool may_be(const AnyOperand& written, const AnyOperand& other) {
  return std::ranges::find(written.same_as, other.name) != written.same_as.end();
}

}  // namespace

void require_tensors(std::string_view op, std::span<const AnyOperand> operands) {
  for (const AnyOperand& operand : operands) {
    if (is_there(operand)) require_tensor(op, operand.tensor, operand.name);
  }
}

void require_usable(std::string_view op, std::span<const AnyOperand> operands,
                    const Context& context, bool in_host_memory) {
  for (const AnyOperand& operand : operands) {
    if (!is_there(operand)) continue;
    require_device_of_build(op, operand.tensor, operand.name);
    if (!in_host_memory) require_here(op, operand.tensor, operand.name, context);
    if (operand.written) require_writable(op, operand.tensor, operand.name);
  }
}

void require_no_overlap(std::string_view op, std::span<const AnyOperand> operands) {
  for (const AnyOperand& written : operands) {
    if (!written.written || !is_there(written)) continue;
    for (const AnyOperand& other : operands) {
      const bool twice = other.written && &other <= &written;  // a pair of outputs, compared once
      if (twice || !is_there(other)) continue;
      if (may_be(written, other)) {
        require_same_or_apart(op, written.tensor, written.name, other.tensor, other.name);
      } else {
        require_apart(op, written.tensor, written.name, other.tensor, other.name);
      }
    }
  }
}

}  // namespace rung::detail
