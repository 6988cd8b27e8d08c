// SPDX-License-Identifier: Apache-2.0
// Adds countdowns to loops in g++'s assembly, one label, directive or instruction per line.
//
// A jump back to an earlier label of the function, `jne .L3`, becomes
//
//   je .Lrung_next0
//   decl %r15d
//   jns .L3
//   call .Lrung_slice0
//   jmp .L3
// .Lrung_next0:
//
// .Lrung_slice0 saves the caller-saved registers and calls the simulator, which switches to another
// thread and returns the length of the next slice. r15 is reserved by slice_options().
#include "rung/emulate/slices.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rung::emulate {
namespace {

struct AssemblyLine {
  std::string_view line, word, operands;
};

AssemblyLine split(std::string_view line) {
  constexpr std::string_view blank = " \t";
  const std::size_t begin = std::min(line.find_first_not_of(blank), line.size());
  const std::size_t end = std::min(line.find_first_of(blank, begin), line.size());
  const std::size_t rest = std::min(line.find_first_not_of(blank, end), line.size());
  return {line, line.substr(begin, end - begin), line.substr(rest)};
}

bool is_label(const AssemblyLine& one) { return one.word.ends_with(':') && one.line[0] != '\t'; }
bool is_directive(const AssemblyLine& one) {
  return one.word.empty() || (one.word[0] == '.' && !is_label(one)) || one.word[0] == '#';
}

/// Returns the jump with the opposite condition; "" if the word is no conditional jump.
std::string_view opposite(std::string_view jump) {
  static constexpr std::string_view pairs[][2] = {{"je", "jne"}, {"ja", "jbe"}, {"jae", "jb"},
                                                  {"jg", "jle"}, {"jge", "jl"}, {"js", "jns"},
                                                  {"jp", "jnp"}, {"jo", "jno"}, {"jc", "jnc"}};
  for (const auto& [one, other] : pairs) {
    if (jump == one) return other;
    if (jump == other) return one;
  }
  return {};
}

bool starts_with_any(std::string_view word, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view one) { return word.starts_with(one); });
}

/// Returns true if the flags that a jump to line `at` leaves are not read there.
bool flags_are_dead(const std::vector<AssemblyLine>& lines, std::size_t at) {
  for (; at < lines.size(); ++at) {
    const std::string_view word = lines[at].word;
    if (is_directive(lines[at]) || is_label(lines[at])) continue;
    if (starts_with_any(word, {"cmp", "test", "add", "sub", "and", "or", "xor", "ucomis", "comis",
                               "imul", "neg", "call", "ret"})) {
      // Packed and scalar floating-point operations share prefixes with these but set no flags.
      if (!word.ends_with("ss") && !word.ends_with("sd") && !word.ends_with("ps") &&
          !word.ends_with("pd")) {
        return true;
      }
      if (word.find("comis") != std::string_view::npos) return true;
      continue;
    }
    // A shift by a constant.
    const bool shifts = starts_with_any(word, {"sal", "shl", "sar", "shr"});
    if (shifts && lines[at].operands.starts_with('$')) return true;
    const bool harmless =
        starts_with_any(word, {"mov", "lea", "pxor", "cvt", "mul", "div", "sqrt", "unpck", "shuf",
                               "nop", "min", "max", "push", "pop", "cltq", "cwtl"}) &&
        !(starts_with_any(word, {"mul", "div"}) &&
          lines[at].operands.find("%xmm") == std::string_view::npos);
    if (!harmless) return false;
  }
  return false;
}

/// Returns true if the instruction loads from memory other than the stack.
bool loads(const AssemblyLine& one) {
  const std::size_t open = one.operands.find('(');
  if (open == std::string_view::npos || starts_with_any(one.word, {"lea", "nop", "prefetch"})) {
    return false;
  }
  const std::string_view address = one.operands.substr(open);
  const std::size_t close = address.find(')');
  if (address.starts_with("(%rsp") || address.starts_with("(%rip")) return false;
  return close + 1 < address.size();  // another operand follows: the memory operand is a source
}

class Slicer {
 public:
  explicit Slicer(const std::string& assembly) {
    for (std::string_view text = assembly; !text.empty();) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      lines_.push_back(split(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    out_.reserve(assembly.size() * 5 / 4);
    std::size_t at = 0;
    while (at < lines_.size()) {
      if (lines_[at].word != ".cfi_startproc") {
        add(lines_[at++].line);
        continue;
      }
      std::size_t end = at;
      while (end < lines_.size() && lines_[end].word != ".cfi_endproc") ++end;
      add_function(at, end);
      at = end;
    }
  }
  [[nodiscard]] std::string result() && { return std::move(out_); }

 private:
  void add(std::string_view line) { (out_ += line) += '\n'; }

  /// Returns true if a switch saves all registers that the function uses, and the function calls
  /// no operation of the simulator, such as a barrier. The countdown would change the stack of a
  /// thread that polls, by which the simulator detects a deadlock.
  [[nodiscard]] bool fits(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view text = lines_[i].operands;
      if (lines_[i].word.starts_with("call") && text.find("4rung4simt") != std::string_view::npos) {
        return false;
      }
      for (const std::string_view other : {"%ymm", "%zmm", "%mm", "%st", "%r15", "%k"}) {
        if (text.find(other) != std::string_view::npos) return false;
      }
      // Operations of the x87 name their registers implicitly.
      if (!is_directive(lines_[i]) && !is_label(lines_[i]) && lines_[i].word[0] == 'f')
        return false;
    }
    return true;
  }

  void add_function(std::size_t begin, std::size_t end) {
    std::unordered_map<std::string_view, std::size_t> labels;
    bool sliced = false;
    const bool possible = fits(begin, end);
    for (std::size_t i = begin; i < end; ++i) {
      const AssemblyLine& one = lines_[i];
      if (is_label(one)) labels.emplace(one.word.substr(0, one.word.size() - 1), i);
      const std::string_view other = opposite(one.word);
      const auto target = labels.find(one.operands);
      const bool back = target != labels.end() && (one.word == "jmp" || !other.empty());
      if (!possible || !back || !is_loop(target->second, i)) {
        add(one.line);
        continue;
      }
      const std::string label(one.operands), next = ".Lrung_next" + std::to_string(jumps_++);
      if (!other.empty()) add("\t" + std::string(other) + "\t" + next);
      add("\tdecl\t%r15d");
      add("\tjns\t" + label);
      add("\tcall\t.Lrung_slice" + std::to_string(functions_));
      add("\tjmp\t" + label);
      if (!other.empty()) add(next + ":");
      sliced = true;
    }
    if (sliced) add_switch(begin, end);
  }

  /// Returns true if these lines, up to a jump back to the first, are a loop that may be sliced: it
  /// loads and calls C functions at most, such as cosf().
  [[nodiscard]] bool is_loop(std::size_t begin, std::size_t end) const {
    bool any_load = false;
    for (std::size_t i = begin; i < end; ++i) {
      const AssemblyLine& one = lines_[i];
      const bool unknown = one.operands.starts_with("_Z") || one.operands.starts_with('*');
      if (one.word.starts_with("call") && unknown) return false;
      any_load |= loads(one);
    }
    return any_load && flags_are_dead(lines_, begin);
  }

  /// Adds the function's switch, which saves those vector registers that the function names.
  void add_switch(std::size_t begin, std::size_t end) {
    static constexpr const char* registers[] = {"rax", "rcx", "rdx", "rsi", "rdi",
                                                "r8",  "r9",  "r10", "r11"};
    constexpr std::size_t saved = 8 * std::size(registers);
    std::vector<std::string> vectors;
    for (int i = 0; i < 16; ++i) {
      const std::string name = "%xmm" + std::to_string(i);
      const bool used = std::any_of(lines_.begin() + static_cast<std::ptrdiff_t>(begin),
                                    lines_.begin() + static_cast<std::ptrdiff_t>(end),
                                    [&](const AssemblyLine& one) {
                                      return one.operands.find(name) != std::string_view::npos;
                                    });
      if (used) vectors.push_back(name);
    }
    add(".Lrung_slice" + std::to_string(functions_++) + ":");
    add("\tpushq\t%rbp");
    add("\tmovq\t%rsp, %rbp");
    for (const char* one : registers) add("\tpushq\t%" + std::string(one));
    add("\tsubq\t$" + std::to_string(16 * vectors.size()) + ", %rsp");
    add("\tandq\t$-16, %rsp");
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      add("\tmovaps\t" + vectors[i] + ", " + std::to_string(16 * i) + "(%rsp)");
    }
    add("\tcall\trung_simt_slice@PLT");
    add("\tmovl\t%eax, %r15d");
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      add("\tmovaps\t" + std::to_string(16 * i) + "(%rsp), " + vectors[i]);
    }
    add("\tleaq\t-" + std::to_string(saved) + "(%rbp), %rsp");
    for (std::size_t i = std::size(registers); i > 0; --i) {
      add("\tpopq\t%" + std::string(registers[i - 1]));
    }
    add("\tpopq\t%rbp");
    add("\tret");
  }

  std::vector<AssemblyLine> lines_;
  std::string out_;
  int jumps_ = 0, functions_ = 0;
};

}  // namespace

bool may_slice(const std::vector<std::string>& options) {
#if defined(__x86_64__)
  return std::none_of(options.begin(), options.end(),
                      [](const std::string& one) { return one.starts_with("-m"); });
#else
  return options.empty() && false;
#endif
}

std::vector<std::string> slice_options() { return {"-ffixed-r15", "-mno-red-zone"}; }

std::string add_slices(const std::string& assembly) { return Slicer(assembly).result(); }

}  // namespace rung::emulate
