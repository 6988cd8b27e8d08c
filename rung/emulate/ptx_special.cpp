// SPDX-License-Identifier: Apache-2.0
// Translates PTX instructions with irregular operands: memory, conversions, predicates, barriers,
// warp operations.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rung/core/error.hpp"
#include "rung/emulate/ptx_order.hpp"
#include "rung/emulate/ptx_translator.hpp"

namespace rung::emulate {
namespace {

struct Translator : PtxTranslator {
  [[nodiscard]] std::string move() const {
    const Words to = parts(one.operands.at(0)), from = parts(one.operands.at(1));
    if (to.size() > 1) {
      std::string code = fmt::format("const auto rung_v = {}; ", get(types.front(), at(1)));
      for (std::size_t i = 0; i < to.size(); ++i) {
        code +=
            put(operand(to[i]), fmt::format("::rung::ptx::piece<{}>(rung_v, {})", to.size(), i));
      }
      return code;
    }
    if (from.size() > 1) {
      std::string code;
      for (const std::string& part : from) code += (code.empty() ? "" : ", ") + operand(part);
      return put(at(0), fmt::format("::rung::ptx::joined<{}>({})", types.front(), code));
    }
    return "";
  }

  [[nodiscard]] std::string load() const {
    const std::string& type = types.back();
    const Words to = parts(one.operands.at(0));
    const std::string how = strong_access(one);
    std::string code = fmt::format("const auto rung_v = ::rung::ptx::{}<{}, {}>({}{}); ",
                                   how.empty() ? "load" : "load_ordered", type, to.size(),
                                   address(1), how.empty() ? "" : ", " + how);
    for (std::size_t i = 0; i < to.size(); ++i) {
      code += put(operand(to[i]), fmt::format("rung_v.at[{}]", i));
    }
    return code;
  }
  [[nodiscard]] std::string store() const {
    const std::string& type = types.back();
    std::string values;
    for (const std::string& part : parts(one.operands.at(1))) {
      values += ", " + get(type, operand(part));
    }
    const std::string how = strong_access(one);
    return fmt::format("::rung::ptx::{}<{}>({}{}{});", how.empty() ? "store" : "store_ordered",
                       type, how.empty() ? "" : how + ", ", address(0), values);
  }
  [[nodiscard]] std::string atomic(bool result) const {
    static const std::map<std::string, std::string> names = {
        {"add", "add"}, {"min", "min"},   {"max", "max"}, {"and", "and"}, {"or", "or"},
        {"xor", "xor"}, {"exch", "exch"}, {"cas", "cas"}, {"inc", "inc"}, {"dec", "dec"}};
    const std::size_t first = result ? 1 : 0;
    for (const std::string& modifier : one.modifiers) {
      const auto name = names.find(modifier);
      if (name == names.end()) continue;
      std::string values;
      for (std::size_t i = first + 1; i < one.operands.size(); ++i) {
        values += ", " + get(types.back(), at(i));
      }
      const std::string call = fmt::format("::rung::ptx::atom_{}<{}>({}{}, {})", name->second,
                                           types.back(), address(first), values, atomic_order(one));
      return result ? put(at(0), call) : call + ";";
    }
    return "";
  }

  [[nodiscard]] std::string compare() const {
    const std::string pair = one.operands.at(0);
    const std::size_t bar = pair.find('|');
    const std::string left = get(types.back(), at(1)), right = get(types.back(), at(2));
    std::string code = fmt::format("const bool rung_v = ::rung::ptx::compare_{}<{}>({}, {}); ",
                                   one.modifiers.at(0), types.back(), left, right);
    std::string yes = "rung_v", no = "!rung_v";
    if (one.operands.size() > 3) {
      const std::string& how = one.modifiers.at(1);
      const std::string with = "bool(" + at(3) + ")";
      const std::string op = how == "and" ? "&" : how == "or" ? "|" : "^";
      yes = fmt::format("bool({} {} {})", yes, op, with);
      no = fmt::format("bool(({}) {} {})", no, op, with);
    }
    if (one.opcode == "set")
      return code + put(at(0), fmt::format("::rung::ptx::truth<{}>({})", types.front(), yes));
    code += put(operand(pair.substr(0, bar)), yes);
    if (bar != std::string::npos) code += put(operand(pair.substr(bar + 1)), no);
    return code;
  }

  [[nodiscard]] std::string convert() const {
    if (types.size() != 2) return "";
    std::string rounding = "rung::cuda::rn";
    for (const char* word : {"rz", "rzi", "ru", "rpi", "rd", "rmi"}) {
      if (!has(word)) continue;
      rounding = std::string("rung::cuda::r") + (word[1] == 'p'   ? 'u'
                                                 : word[1] == 'm' ? 'd'
                                                                  : word[1]);
    }
    const bool whole = has("rni") || has("rzi") || has("rpi") || has("rmi");
    std::string values = get(types[1], at(1));
    if (one.operands.size() == 3) values += ", " + get(types[1], at(2));
    return put(at(0),
               fmt::format("::rung::ptx::convert<{}, {}, ::{}, {}, {}>({})", types[0], types[1],
                           rounding, whole, has("sat") || has("satfinite"), values));
  }
  [[nodiscard]] std::string address_space() const {
    const bool into_shared = shared();
    if (has("to")) {
      return put(at(0),
                 into_shared
                     ? fmt::format("__cvta_generic_to_shared(::rung::ptx::pointer({}))", at(1))
                     : get("unsigned long long", at(1)));
    }
    return put(at(0), into_shared ? fmt::format("::rung::ptx::shared_pointer({})", at(1))
                                  : get("unsigned long long", at(1)));
  }

  [[nodiscard]] std::string shuffle() const {
    const std::string pair = one.operands.at(0);
    const std::size_t bar = pair.find('|');
    std::string mode = "index";
    if (has("up")) mode = "up";
    if (has("down")) mode = "down";
    if (has("bfly")) mode = "exclusive_or";
    std::string code = fmt::format(
        "bool rung_q; const unsigned rung_v = ::rung::ptx::shuffle({}, {}, {}, {}, "
        "::rung::simt::Shuffle::{}, rung_q, {}); ",
        unsigned_at(4), unsigned_at(1), unsigned_at(2), unsigned_at(3), mode, here);
    code += put(operand(pair.substr(0, bar)), "rung_v");
    if (bar != std::string::npos) code += put(operand(pair.substr(bar + 1)), "rung_q");
    return code;
  }
  [[nodiscard]] std::string vote() const {
    const std::string mask = unsigned_at(2), predicate = "bool(" + at(1) + ")";
    const char* name = has("ballot") ? "ballot" : has("all") ? "all" : has("any") ? "any" : "uni";
    return put(at(0), fmt::format("__{}_sync({}, {})", name, mask, predicate));
  }
  [[nodiscard]] std::string matrix() const {
    // The operands of ldmatrix are registers and a row address; stmatrix has them in reverse order.
    const bool load = one.opcode == "ldmatrix";
    std::string registers;
    for (const std::string& part : parts(one.operands.at(load ? 0 : 1))) {
      registers += ", " + operand(part);
    }
    return fmt::format("::rung::ptx::{}<{}>({}, {}{});", load ? "load_matrix" : "store_matrix",
                       has("trans"), here, address(load ? 1 : 0), registers);
  }
  [[nodiscard]] std::string multiply() const {
    std::string shape, call;
    for (const std::string& modifier : one.modifiers) {
      if (modifier.starts_with('m') && modifier.find('k') != std::string::npos) shape = modifier;
    }
    if (types.size() != 4) return "";
    for (std::size_t i = 0; i < 4; ++i) {
      std::string list;
      const bool target = i == 0;
      for (const std::string& part : parts(one.operands.at(i))) {
        const std::string name = operand(part);
        list += (list.empty() ? "" : ", ") + (target ? "&" + name : name);
      }
      call += (i == 0 ? "" : ", ") + fmt::format("::rung::ptx::list({})", list);
    }
    return fmt::format("::rung::ptx::multiply_{}<{}, {}, {}>({}, {});", shape, types[0], types[1],
                       types[2], call, here);
  }
  [[nodiscard]] std::string async_copy() const {
    if (has("commit_group")) return "::rung::ptx::async_commit();";
    if (has("wait_group")) return fmt::format("::rung::ptx::async_wait({});", at(0));
    if (has("wait_all")) return "::rung::ptx::async_wait_all();";
    if (has("bulk") || has("mbarrier")) return "";
    const std::string bytes = at(2);
    const std::string valid = one.operands.size() > 3 ? at(3) : bytes;
    // The second operand is an address in global memory.
    const std::string_view source = one.operands.at(1);
    return fmt::format("::rung::ptx::async_copy({}, {}, {}, {}, {});", address(0),
                       address_by("pointer", source.substr(1, source.size() - 2)), bytes, valid,
                       here);
  }

  [[nodiscard]] std::string barrier() const {
    if (has("warp")) return fmt::format("__syncwarp({});", unsigned_at(0));
    const std::string number = unsigned_at(0);
    if (has("red")) return "";
    if (one.operands.size() == 1) {
      return fmt::format("::rung::ptx::barrier_sync({}, {});", number, here);
    }
    return fmt::format("::rung::simt::named_barrier_{}({}, {}, ::RungPlace::current());",
                       has("arrive") ? "arrive" : "sync", number, unsigned_at(1));
  }
};

}  // namespace

std::string translate_special(const Instruction& one, const OperandWriter& operand,
                              const Words& types) {
  const Translator t{{one, operand, types}};
  const std::string& op = one.opcode;
  const auto size = one.operands.size();
  if (op == "mov" && size == 2) return t.move();
  if ((op == "ld" || op == "ldu") && size >= 2 && !types.empty()) return t.load();
  if (op == "st" && size >= 2 && !types.empty()) return t.store();
  if (op == "atom" && size >= 3 && !types.empty()) return t.atomic(true);
  if (op == "red" && size >= 2 && !types.empty()) return t.atomic(false);
  if ((op == "setp" || op == "set") && size >= 3 && !types.empty()) return t.compare();
  if (op == "cvt" && size >= 2) return t.convert();
  if (op == "cvta" && size == 2) return t.address_space();
  if (op == "shfl" && size == 5) return t.shuffle();
  if (op == "vote" && size == 3) return t.vote();
  if ((op == "ldmatrix" || op == "stmatrix") && size == 2) return t.matrix();
  if (op == "mma" && size == 4) return t.multiply();
  if (op == "cp" && t.has("async")) return t.async_copy();
  if ((op == "bar" || op == "barrier") && size >= 1) return t.barrier();
  if (op == "membar" || op == "fence") {
    return t.has("cta") ? "__threadfence_block();" : "__threadfence();";
  }
  if (op == "prefetch" || op == "prefetchu" || op == "discard" || op == "applypriority" ||
      op == "pmevent" || op == "griddepcontrol") {
    return ";";
  }
  if (op == "nanosleep" && size == 1) return "__nanosleep(" + t.unsigned_at(0) + ");";
  if (op == "trap") return "__trap();";
  if (op == "brkpt") return ";";
  if (op == "exit" || op == "ret") return "return;";
  if (op == "activemask" && size == 1) return put(t.at(0), "__activemask()");
  if (op == "match" && size == 3) {
    return put(t.at(0), fmt::format("__match_any_sync({}, {})", t.unsigned_at(2),
                                    get(types.front(), t.at(1))));
  }
  if (op == "redux" && size == 3 && one.modifiers.size() >= 2) {
    return put(t.at(0), fmt::format("__reduce_{}_sync({}, {})", one.modifiers[1], t.unsigned_at(2),
                                    get(types.front(), t.at(1))));
  }
  if (op == "dp4a" && size == 4 && types.size() == 2) {
    return put(t.at(0), fmt::format("__dp4a({0}, {1}, {2})", get(types[0], t.at(1)),
                                    get(types[0], t.at(2)), get(types[0], t.at(3))));
  }
  if (op == "vabsdiff4" && size == 4 && t.has("add") && types.front() == "unsigned") {
    return put(t.at(0), fmt::format("__vsadu4({}, {}) + {}", t.unsigned_at(1), t.unsigned_at(2),
                                    t.unsigned_at(3)));
  }
  if (op == "isspacep" && size == 2) {
    return put(t.at(0), fmt::format("bool(__is{}(::rung::ptx::pointer({})))",
                                    t.shared() ? "Shared" : "Global", t.at(1)));
  }
  return "";
}

}  // namespace rung::emulate
