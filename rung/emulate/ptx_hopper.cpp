// SPDX-License-Identifier: Apache-2.0
// Translates PTX of compute capability 9.0: mbarriers, bulk and tensor copies, clusters, elect.
#include <algorithm>

#include "rung/emulate/ptx_translator.hpp"

namespace rung::emulate {
namespace {

struct Hopper : PtxTranslator {
  /// Translates "[reg+8]" to a location in the shared memory of the calling block or another block
  /// of the cluster.
  [[nodiscard]] std::string place_of(std::string_view text, bool is_shared) const {
    const std::string_view inside = text.substr(1, text.size() - 2);
    return address_by(is_shared ? "shared_place" : "generic_place", inside);
  }
  [[nodiscard]] std::string place_at(std::size_t i) const {
    return place_of(one.operands.at(i), shared());
  }
  [[nodiscard]] std::string shared_at(std::size_t i) const {
    return place_of(one.operands.at(i), true);
  }
  [[nodiscard]] std::string pointer_at(std::size_t i) const {
    const std::string_view text = one.operands.at(i);
    return address_by("pointer", text.substr(1, text.size() - 2));
  }
  [[nodiscard]] std::size_t size() const { return one.operands.size(); }

  [[nodiscard]] std::string arrive(bool drops) const {
    if (has("noComplete") || size() < 2) return "";
    const bool announces = has("expect_tx");
    if (announces && size() < 3) return "";
    const std::string bytes = announces ? unsigned_at(2) : "0";
    const std::string count = !announces && size() > 2 ? unsigned_at(2) : "1";
    return put(at(0), fmt::format("::rung::ptx::barrier_arrive({}, {}, {}, {}, {})", place_at(1),
                                  bytes, count, drops, here));
  }
  [[nodiscard]] std::string mbarrier() const {
    if (one.modifiers.empty()) return "";
    const std::string& what = one.modifiers.front();
    if (what == "init" && size() == 2) {
      return fmt::format("::rung::simt::mbarrier_init({}.barrier(), {}, {});", place_at(0),
                         get("int", at(1)), here);
    }
    if (what == "inval" && size() == 1) {
      return fmt::format("::rung::simt::mbarrier_invalidate({}.barrier(), {});", place_at(0), here);
    }
    if (what == "expect_tx" && size() == 2) {
      return fmt::format("::rung::simt::mbarrier_expect({}.barrier(), {}, {});", place_at(0),
                         unsigned_at(1), here);
    }
    if (what == "arrive" || what == "arrive_drop") return arrive(what == "arrive_drop");
    if ((what == "test_wait" || what == "try_wait") && size() >= 3) {
      const bool parity = has("parity");
      return put(at(0), fmt::format("::rung::ptx::barrier_test{}({}, {}, {})",
                                    parity ? "" : "_state", place_at(1),
                                    get(parity ? "unsigned" : "unsigned long long", at(2)), here));
    }
    if (what == "pending_count" && size() == 2) {
      return put(at(0), fmt::format("::rung::simt::mbarrier_pending({})",
                                    get("unsigned long long", at(1))));
    }
    return "";
  }

  /// Returns true for copies into shared memory. The destination's state space comes first in the
  /// instruction's name.
  [[nodiscard]] bool is_load() const {
    for (const std::string& modifier : one.modifiers) {
      if (modifier.starts_with("shared")) return true;
      if (modifier == "global") return false;
    }
    return false;
  }

  [[nodiscard]] std::string bulk_copy() const {
    if (is_load()) {
      if (size() < 4 || !has("mbarrier::complete_tx::bytes")) return "";
      if (!has("global")) {
        return fmt::format("::rung::ptx::bulk_send({}, {}, {}, {}, {});", shared_at(0),
                           shared_at(1), unsigned_at(2), shared_at(3), here);
      }
      const bool multicast = has("multicast::cluster");
      if (multicast && size() < 5) return "";
      return fmt::format("::rung::ptx::bulk_{}({}, {}, {}, {}{}, {});",
                         multicast ? "multicast" : "load", shared_at(0), pointer_at(1),
                         unsigned_at(2), shared_at(3), multicast ? ", " + unsigned_at(4) : "",
                         here);
    }
    if (size() < 3 || !has("bulk_group") || has("cp_mask")) return "";
    if (!has("reduce")) {
      return fmt::format("::rung::ptx::bulk_store({}, {}, {}, {});", pointer_at(0), shared_at(1),
                         unsigned_at(2), here);
    }
    const bool adds = has("add") && !types.empty();
    const std::string type = adds ? types.back() : "";
    for (const char* known : {"float", "double", "int", "unsigned", "unsigned long long"}) {
      if (type != known) continue;
      return fmt::format("::rung::ptx::bulk_add<{}>({}, {}, {}, {});", type, pointer_at(0),
                         shared_at(1), unsigned_at(2), here);
    }
    return "";
  }

  struct Box {
    std::string map, coordinates;
    std::size_t rank = 0;
  };
  /// Parses "[map, {c0, c1}]".
  [[nodiscard]] Box box_at(std::size_t i) const {
    const std::string_view text = one.operands.at(i);
    const Words pair = split_operands(text.substr(1, text.size() - 2));
    if (pair.size() != 2) return {};
    return {address_by("pointer", pair[0]), list_of(pair[1]), parts(pair[1]).size()};
  }
  [[nodiscard]] std::string list_of(const std::string& vector) const {
    std::string list;
    for (const std::string& part : parts(vector))
      list += (list.empty() ? "" : ", ") + operand(part);
    return fmt::format("::rung::ptx::coordinates({})", list);
  }
  /// Returns true if the number of coordinates equals the instruction's number of dimensions.
  [[nodiscard]] bool right_rank(const Box& box) const {
    return box.rank >= 1 && box.rank <= 5 && has(std::to_string(box.rank) + "d");
  }
  [[nodiscard]] std::string tensor_copy() const {
    if (is_load()) {
      if (size() < 3 || !has("mbarrier::complete_tx::bytes")) return "";
      const Box box = box_at(1);
      if (!right_rank(box)) return "";
      const std::string call =
          fmt::format("{}, {}, {}, {}", shared_at(0), box.map, box.coordinates, shared_at(2));
      const bool multicast = has("multicast::cluster");
      if (has("im2col")) {
        if (multicast || size() < 4) return "";
        return fmt::format("::rung::ptx::im2col_load({}, {}, {});", call,
                           list_of(one.operands.at(3)), here);
      }
      if (multicast && size() < 4) return "";
      return fmt::format("::rung::ptx::tensor_{}({}{}, {});", multicast ? "multicast" : "load",
                         call, multicast ? ", " + unsigned_at(3) : "", here);
    }
    if (size() < 2 || !has("bulk_group") || has("im2col_no_offs")) return "";
    const Box box = box_at(0);
    if (!right_rank(box)) return "";
    const std::string call = fmt::format("{}, {}, {}", box.map, box.coordinates, shared_at(1));
    if (!has("reduce")) return fmt::format("::rung::ptx::tensor_store({}, {});", call, here);
    // Minimum and maximum are not supported, since tensor maps do not record signedness.
    for (const char* name : {"add", "and", "or", "xor"}) {
      if (!has(name)) continue;
      const bool bits = std::string_view(name) != "add";
      return fmt::format("::rung::ptx::tensor_reduce({}, ::rung::simt::TensorReduction::{}{}, {});",
                         call, bits ? "bit_" : "", name, here);
    }
    return "";
  }

  [[nodiscard]] std::string bulk() const {
    if (has("commit_group")) return "::rung::simt::bulk_commit();";
    if (has("wait_group") && size() == 1) {
      return fmt::format("::rung::simt::bulk_wait_group({}, {});", get("int", at(0)), has("read"));
    }
    if (has("prefetch")) {
      if (has("tensor")) return ";";
      if (size() < 2) return "";
      return fmt::format("::rung::simt::bulk_prefetch({}, {}, {});", pointer_at(0), unsigned_at(1),
                         here);
    }
    return has("tensor") ? tensor_copy() : bulk_copy();
  }

  /// Translates wgmma with f32 sums of 16-bit or 8-bit float products, or with s32 sums of 8-bit
  /// integer products.
  [[nodiscard]] std::string product() const {
    std::string shape;
    Words kinds;
    for (const std::string& modifier : one.modifiers) {
      if (modifier.starts_with("m64n")) {
        shape = modifier.substr(4, modifier.find('k') - 4);
      } else if (!shape.empty()) {
        kinds.push_back(modifier);
      }
    }
    if (kinds.size() != 3 || size() < 4) return "";
    const bool integers = kinds[0] == "s32";
    const bool halves = kinds[1] == "f16" || kinds[1] == "bf16";
    const bool known =
        halves || kinds[1] == "tf32" || kinds[1].starts_with('e') || kinds[1].ends_with('8');
    const bool registers = one.operands[1].starts_with('{');
    // The number of scale and transpose operands depends on the type.
    const std::size_t last = integers ? 4 : !halves ? 6 : registers ? 7 : 8;
    if (!known || (!integers && kinds[0] != "f32") || size() != last) return "";
    const auto number = [&](std::size_t i) { return get("int", at(i)); };
    const std::string scales = integers ? "1, 1" : fmt::format("{}, {}", number(4), number(5));
    const std::string turned = !halves     ? "0, 0"
                               : registers ? "0, " + number(6)
                                           : fmt::format("{}, {}", number(6), number(7));
    std::string sums, left;
    for (const std::string& part : parts(one.operands[0])) {
      sums += (sums.empty() ? "" : ", ") + operand(part);
    }
    for (const std::string& part : parts(one.operands[1])) {
      left += (left.empty() ? "" : ", ") + operand(part);
    }
    return fmt::format(
        "::rung::ptx::product<{}>(::rung::simt::WgmmaType::{}, ::rung::simt::WgmmaType::{}, "
        "::rung::ptx::{}({}), {}, bool({}), {}, {}, {}, {});",
        shape, kinds[1], kinds[2], registers ? "left_registers" : "left_matrix", left,
        get("unsigned long long", at(2)), at(3), scales, turned, here, sums);
  }
  [[nodiscard]] std::string warpgroup() const {
    if (has("fence")) return fmt::format("::rung::simt::wgmma_fence({});", here);
    if (has("commit_group")) return fmt::format("::rung::simt::wgmma_commit({});", here);
    if (has("wait_group") && size() == 1) {
      return fmt::format("::rung::simt::wgmma_wait({}, {});", get("int", at(0)), here);
    }
    return has("mma_async") && !has("sp") && !has("satfinite") ? product() : "";
  }

  [[nodiscard]] std::string elect() const {
    const std::string pair = one.operands.at(0);
    const std::size_t bar = pair.find('|');
    if (bar == std::string::npos) return "";
    return fmt::format("bool rung_q; const unsigned rung_v = ::rung::ptx::elect({}, rung_q, {}); ",
                       unsigned_at(1), here) +
           put(operand(pair.substr(0, bar)), "rung_v") +
           put(operand(pair.substr(bar + 1)), "rung_q");
  }
  [[nodiscard]] std::string send() const {
    if (types.empty() || !has("mbarrier::complete_tx::bytes")) return "";
    std::string values;
    for (const std::string& part : parts(one.operands.at(1))) {
      values += ", " + get(types.back(), operand(part));
    }
    return fmt::format("::rung::ptx::send<{}>({}, {}, {}{});", types.back(), here, shared_at(0),
                       shared_at(2), values);
  }
  [[nodiscard]] std::string fence() const {
    // Ordinary fences do not order the asynchronous proxy, which copies use.
    if (has("proxy") && has("async")) {
      return "::rung::simt::fence_async_proxy();";
    }
    return has("mbarrier_init") ? "::rung::simt::fence_mbarrier_init();" : "";
  }
};

}  // namespace

std::string translate_hopper(const Instruction& one, const OperandWriter& operand,
                             const Words& types) {
  const Hopper t{{one, operand, types}};
  const std::string& op = one.opcode;
  const std::size_t size = one.operands.size();
  if (op == "mbarrier") return t.mbarrier();
  if (op == "cp" && t.has("async") && t.has("bulk")) return t.bulk();
  if (op == "cp" && t.has("async") && t.has("mbarrier") && t.has("arrive") && size == 1) {
    return fmt::format("::rung::ptx::barrier_arrive_behind_copies({}, {}, {});", t.place_at(0),
                       t.has("noinc"), here);
  }
  if (op == "wgmma") return t.warpgroup();
  if (op == "fence") return t.fence();
  if (op == "elect" && size == 2) return t.elect();
  if (op == "st" && t.has("async") && size == 3) return t.send();
  if (op == "barrier" && t.has("cluster") && (t.has("arrive") || t.has("wait"))) {
    return fmt::format("::rung::cuda::cluster_{}({});", t.has("arrive") ? "arrive" : "wait", here);
  }
  if (op == "mapa" && size == 3) {
    return put(t.at(0), fmt::format("::rung::ptx::map_rank{}({}, {}, {})",
                                    t.shared() ? "" : "_generic", t.at(1), t.unsigned_at(2), here));
  }
  if (op == "getctarank" && size == 2 && t.shared()) {
    return put(t.at(0), fmt::format("::rung::ptx::rank_of({})", t.at(1)));
  }
  if (op == "setmaxnreg" && size == 1 && (t.has("inc") || t.has("dec"))) {
    return fmt::format("::rung::simt::set_registers({}, {}, {});", get("int", t.at(0)),
                       t.has("inc"), here);
  }
  // Cache eviction policies have no effect.
  if (op == "createpolicy" && size >= 1) return put(t.at(0), "0ull");
  return "";
}

}  // namespace rung::emulate
