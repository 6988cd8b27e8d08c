// SPDX-License-Identifier: Apache-2.0
// Runs objdump on a kernel's object file and parses its output.
#include "rung/simt/record/disassembly.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

extern char** environ;  // NOLINT: POSIX

namespace rung::simt::record {

#if defined(__x86_64__)

namespace {

std::string hexadecimal(std::uintptr_t number) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + text;
}

/// Returns the command's output; "" if it cannot be run.
std::string output_of(std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 1 << 16> piece;
  while (failed == 0) {
    const ssize_t bytes = read(ends[0], piece.data(), piece.size());
    if (bytes <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  if (failed == 0) waitpid(child, nullptr, 0);
  return text;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view one : words) {
    if (word == one) return true;
  }
  return false;
}

/// Adds the floating-point operations of an SSE, AVX or x87 instruction; each element of a packed
/// operand counts.
void add_floating(std::string_view name, std::string_view operands, Arithmetic& sum) {
  if (!name.empty() && name.front() == 'v') name.remove_prefix(1);
  if (name.size() < 4) return;
  const std::string_view kind = name.substr(name.size() - 2);
  std::uint64_t elements = 0;
  const bool wide = operands.find("%zmm") != std::string_view::npos;
  const std::uint64_t registers = wide                                              ? 4
                                  : operands.find("%ymm") != std::string_view::npos ? 2
                                                                                    : 1;
  if (is_any(kind, {"ss", "sd", "sh"})) elements = 1;
  if (kind == "pd") elements = 2 * registers;
  if (kind == "ps") elements = 4 * registers;
  if (elements == 0) return;
  const std::string_view verb = name.substr(0, name.size() - 2);
  Arithmetic one;
  if (is_any(verb, {"add", "sub", "hadd", "hsub", "addsub"})) one.additions = elements;
  if (verb == "mul") one.multiplications = elements;
  if (is_any(verb, {"div", "sqrt", "rcp", "rsqrt"})) one.divisions = elements;
  if (verb.starts_with("fmadd") || verb.starts_with("fmsub") || verb.starts_with("fnmadd") ||
      verb.starts_with("fnmsub")) {
    one.additions = one.multiplications = elements;
  }
  if (kind == "sd" || kind == "pd") one.f64 = one.operations();
  sum += one;
}

void add_x87(std::string_view name, Arithmetic& sum) {
  if (name.size() < 4 || name.front() != 'f') return;
  const std::string_view verb = name.substr(0, 4);
  if (verb == "fadd" || verb == "fsub") ++sum.additions;
  if (verb == "fmul") ++sum.multiplications;
  if (verb == "fdiv" || name == "fsqrt") ++sum.divisions;
}

/// Returns true for integer arithmetic, logic and address computation, except on the stack pointer.
bool is_integer(std::string_view name, std::string_view operands) {
  if (operands.find("%rsp") != std::string_view::npos && name != "lea") return false;
  const std::string_view bare =
      !name.empty() && is_any(name.substr(name.size() - 1), {"b", "w", "l", "q"})
          ? name.substr(0, name.size() - 1)
          : name;
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return is_any(name, words) || is_any(bare, words);
  };
  if (is({"xor"})) {  // zeroing idiom: xor of a register with itself
    const std::size_t comma = operands.find(',');
    return comma == std::string_view::npos ||
           operands.substr(0, comma) != operands.substr(comma + 1);
  }
  return is({"add", "sub", "imul", "mul",  "div",  "idiv",  "neg",    "not",   "and",   "or",
             "shl", "sal", "shr",  "sar",  "rol",  "ror",   "lea",    "inc",   "dec",   "adc",
             "sbb", "bsf", "bsr",  "shld", "shrd", "bswap", "popcnt", "tzcnt", "lzcnt", "andn"});
}

/// Returns true for functions of the math library, given the name that objdump shows for a call.
bool is_function(std::string_view called) {
  std::string_view name = called.substr(0, called.find_first_of("@+>"));
  if (name.ends_with("_finite")) name.remove_suffix(7);
  while (name.starts_with('_')) name.remove_prefix(1);
  const std::initializer_list<std::string_view> names = {
      "exp",  "exp2",  "exp10", "expm1",  "log",    "log2",   "log10",     "log1p",
      "pow",  "sin",   "cos",   "tan",    "asin",   "acos",   "atan",      "atan2",
      "sinh", "cosh",  "tanh",  "asinh",  "acosh",  "atanh",  "erf",       "erfc",
      "cbrt", "hypot", "fmod",  "sincos", "lgamma", "tgamma", "remainder", "sqrt"};
  return is_any(name, names) ||
         (name.ends_with('f') && is_any(name.substr(0, name.size() - 1), names));
}

bool is_fused(std::string_view called) {
  const std::string_view name = called.substr(0, called.find_first_of("@+>"));
  return name == "fma" || name == "fmaf";
}

/// Parses one line: "  401136:\tmulss  0x10(%rax),%xmm0".
bool parse(std::string_view line, std::uintptr_t bias, Instruction& one) {
  const std::size_t colon = line.find(":\t");
  if (colon == std::string_view::npos) return false;
  const std::string number(line.substr(0, colon));
  char* end = nullptr;
  one = {};
  one.address = std::strtoull(number.c_str(), &end, 16) + bias;
  if (*end != '\0') return false;
  std::string_view text = line.substr(colon + 2);
  std::string_view name, operands;
  for (;;) {
    const std::size_t space = text.find(' ');
    name = text.substr(0, space);
    const std::size_t behind = text.find_first_not_of(' ', space);
    operands = behind == std::string_view::npos ? "" : text.substr(behind);
    if (!is_any(name, {"lock", "rep", "repz", "repnz", "notrack", "bnd", "data16"})) break;
    if (operands.empty()) break;
    text = operands;
  }
  using Flow = Instruction::Flow;
  const bool jumps = name.starts_with('j');
  if (name.starts_with("call") || jumps) {
    one.flow = name.starts_with("call")  ? Flow::call
               : name.starts_with("jmp") ? Flow::jump
                                         : Flow::branch;
    const std::string target(operands.substr(0, operands.find(' ')));
    const std::uintptr_t code = std::strtoull(target.c_str(), &end, 16);
    if (!target.empty() && *end == '\0') one.target = code + bias;
    const std::size_t bracket = operands.find('<');
    if (one.flow == Flow::call && bracket != std::string_view::npos) {
      const std::string_view called = operands.substr(bracket + 1);
      if (is_fused(called)) ++one.arithmetic.additions, ++one.arithmetic.multiplications;
      if (is_function(called)) ++one.arithmetic.functions;
    }
    return true;
  }
  if (name.starts_with("ret") || is_any(name, {"ud2", "hlt"})) one.flow = Flow::end;
  add_floating(name, operands, one.arithmetic);
  add_x87(name, one.arithmetic);
  if (is_integer(name, operands)) ++one.arithmetic.integer;
  return true;
}

}  // namespace

std::vector<Instruction> disassemble(std::uintptr_t begin, std::uintptr_t end) {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(begin), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0) {
    return {};
  }
  const std::uintptr_t bias = map->l_addr;
  const bool program = map->l_name == nullptr || *map->l_name == '\0';
  const std::string file = program ? "/proc/" + std::to_string(getpid()) + "/exe" : map->l_name;
  const std::string text = output_of({"objdump", "-d", "-w", "--no-show-raw-insn",
                                      "--start-address=" + hexadecimal(begin - bias),
                                      "--stop-address=" + hexadecimal(end - bias), file});
  std::vector<Instruction> code;
  Instruction one;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find('\n', at), text.size());
    if (parse(std::string_view(text).substr(at, stop - at), bias, one)) code.push_back(one);
    at = stop + 1;
  }
  return code;
}

#else

std::vector<Instruction> disassemble(std::uintptr_t, std::uintptr_t) { return {}; }

#endif

}  // namespace rung::simt::record
