// SPDX-License-Identifier: Apache-2.0
// Thread orders: parsing, setting and querying.
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "rung/core/error.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

std::mutex order_mutex;
std::optional<ThreadOrder> chosen_order;

}  // namespace

ThreadOrder ThreadOrder::parse(std::string_view text) {
  if (text == "forward") return {};
  if (text == "reverse") return {.kind = Kind::reverse};
  if (text == "random") return {.kind = Kind::random, .seed = 1};
  constexpr std::string_view prefix = "random:";
  if (text.starts_with(prefix)) {
    ThreadOrder order{.kind = Kind::random};
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + prefix.size(), end, order.seed);
    if (error == std::errc{} && last == end) return order;
  }
  throw Error(ErrorCode::invalid_argument,
              "thread order (RUNG_SIMT_ORDER): given \"" + std::string(text) +
                  "\", accepted are forward, reverse, random and random:SEED");
}

std::string ThreadOrder::to_string() const {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::reverse:
      return "reverse";
    case Kind::random:
      break;
  }
  return "random:" + std::to_string(seed);
}

void set_thread_order(ThreadOrder order) {
  const std::lock_guard lock(order_mutex);
  chosen_order = order;
}

ThreadOrder thread_order() {
  const std::lock_guard lock(order_mutex);
  if (!chosen_order.has_value()) {
    const char* given = std::getenv("RUNG_SIMT_ORDER");
    chosen_order = given != nullptr ? ThreadOrder::parse(given) : ThreadOrder{};
  }
  return *chosen_order;
}

}  // namespace rung::simt
