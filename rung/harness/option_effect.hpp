// SPDX-License-Identifier: Apache-2.0
// Options of `rung run` that have an effect only for some values of another option.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {

/// An option, and the values of the other option for which it has an effect: "box|gaussian".
struct OptionEffect {
  std::string_view option;
  std::string_view values;
};

/// Rejects options that are given but have no effect when option `choice` has the value `chosen`.
inline void expect_effect(std::string_view op, const Invocation& call, std::string_view choice,
                          std::string_view chosen, std::initializer_list<OptionEffect> effects) {
  for (const OptionEffect& effect : effects) {
    if (!call.has(effect.option)) continue;
    std::string accepted;
    bool has_effect = false;
    for (std::string_view rest = effect.values; !rest.empty();) {
      const std::string_view value = rest.substr(0, rest.find('|'));
      rest.remove_prefix(value.size() < rest.size() ? value.size() + 1 : value.size());
      has_effect = has_effect || value == chosen;
      accepted += accepted.empty() ? "" : rest.empty() ? " or " : ", ";
      accepted += value;
    }
    if (has_effect) continue;
    std::string why = "--";
    why.append(effect.option).append(" is given and has no effect with --").append(choice);
    why.append(" ").append(chosen).append(call.has(choice) ? "" : ", the default");
    why.append("; accepted: with --").append(choice).append(" ").append(accepted);
    reject(op, why);
  }
}

}  // namespace rung
