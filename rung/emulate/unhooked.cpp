// SPDX-License-Identifier: Apache-2.0
// Merges the assembly of the two versions of a source. The parser expects g++'s output format: one
// label, directive or instruction per line.
#include "rung/emulate/unhooked.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rung/emulate/token.hpp"

namespace rung::emulate {
namespace {

constexpr std::string_view suffix = ".unhooked";

bool is_name(char c) { return in_word(c) || c == '.' || c == '$'; }

/// A line of assembly, split into its first word and the rest.
struct Line {
  std::string_view text, word, rest;
  explicit Line(std::string_view line) : text(line) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    word = line.substr(begin, end - begin);
    rest = line.substr(std::min(line.find_first_not_of(" \t", end), line.size()));
  }
  /// Returns the name of a label; "" if the line is not a label.
  [[nodiscard]] std::string_view label() const {
    const bool is = word.size() > 1 && word.back() == ':' && word.data() == text.data();
    return is ? word.substr(0, word.size() - 1) : std::string_view();
  }
  /// Returns the first operand.
  [[nodiscard]] std::string_view name() const {
    std::size_t end = 0;
    while (end < rest.size() && is_name(rest[end])) ++end;
    return rest.substr(0, end);
  }
  [[nodiscard]] bool is_text() const { return word == ".string" || word == ".ascii"; }
  [[nodiscard]] bool names_a_symbol() const {
    return word == ".globl" || word == ".weak" || word == ".hidden" || word == ".local" ||
           word == ".type" || word == ".size" || word == ".comm";
  }
  [[nodiscard]] bool begins_section() const {
    return word == ".section" || word == ".text" || word == ".data" || word == ".bss";
  }
};

template <class F>
void for_each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    f(Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Symbols defined by one version.
struct Symbols {
  std::unordered_set<std::string_view> functions, objects;
  std::unordered_set<std::string_view> writable;  // writable objects
  std::unordered_set<std::string_view> visible;   // global symbols
  std::unordered_set<std::string_view> shared;    // symbols in COMDAT sections
  // Numbers of .file directives, keyed by the directive's file name.
  std::unordered_map<std::string_view, std::string_view> files;
  int last_file = 0;
};

Symbols read(std::string_view text) {
  Symbols all;
  bool shared = false, constant = false;
  std::unordered_set<std::string_view> functions, objects;
  std::vector<std::pair<std::string_view, std::string_view>> aliases;
  for_each_line(text, [&](const Line& line) {
    if (line.begins_section()) {
      shared = line.rest.ends_with(",comdat");
      constant = line.rest.starts_with(".rodata");
    } else if (line.word == ".type") {
      (line.rest.ends_with("@function") ? functions : objects).insert(line.name());
    } else if (line.word == ".globl" || line.word == ".weak") {
      all.visible.insert(line.name());
    } else if (line.word == ".comm") {
      all.objects.insert(line.name());
      all.writable.insert(line.name());
    } else if (line.word == ".set") {
      aliases.emplace_back(line.name(), line.rest.substr(line.rest.rfind(',') + 1));
    } else if (line.word == ".file") {
      const std::string_view number = line.name();
      const std::size_t rest = line.rest.find('"');
      if (number.empty() || rest == std::string_view::npos) return;
      all.files.emplace(line.rest.substr(rest), number);
      all.last_file = std::max(all.last_file, std::atoi(std::string(number).c_str()));
    } else if (const std::string_view label = line.label(); !label.empty()) {
      if (shared) all.shared.insert(label);
      if (functions.contains(label)) all.functions.insert(label);
      if (objects.contains(label)) {
        all.objects.insert(label);
        if (!constant) all.writable.insert(label);
      }
    }
  });
  for (const auto& [alias, of] : aliases) {
    if (all.functions.contains(of)) all.functions.insert(alias);
    if (all.shared.contains(of)) all.shared.insert(alias);
  }
  return all;
}

class Joiner {
 public:
  Joiner(const std::string& hooked, const std::string& unhooked)
      : hooked_(read(hooked)), own_(read(unhooked)), out_(hooked) {
    for (const std::string_view one : own_.objects) {
      if (one.starts_with(".L")) continue;  // compiler-generated constants
      const bool numbered = one.find('.') != std::string_view::npos && !one.starts_with("DW.ref.");
      if (!numbered && hooked_.objects.contains(one)) {
        dropped_.insert(one);
      } else if (own_.writable.contains(one) && !one.starts_with("DW.ref.")) {
        fits_ = false;
      }
    }
    if (!fits_) return;
    for_each_line(unhooked, [this](const Line& line) { add(line); });
    add_table();
  }
  [[nodiscard]] std::string result() && { return fits_ ? std::move(out_) : std::string(); }

 private:
  void add(const Line& line) {
    if (line.begins_section()) {
      dropping_ = line.rest.starts_with(".init_array") || line.rest.starts_with(".fini_array");
      constructors_ = dropping_;
      if (!dropping_) add_section(line);
      return;
    }
    if (const std::string_view label = line.label(); !label.empty() && !constructors_) {
      dropping_ = dropped_.contains(label);
    }
    if (line.names_a_symbol()) {
      if (dropped_.contains(line.name())) return;
      const bool binds = line.word == ".globl" || line.word == ".weak" || line.word == ".hidden";
      if (binds && (own_.functions.contains(line.name()) || own_.objects.contains(line.name()))) {
        return;
      }
    }
    if (dropping_) return;
    if (line.is_text()) {
      out_ += line.text;
    } else if (line.word == ".file") {
      add_file(line);
    } else if (line.word == ".loc") {
      const std::string_view number = line.name();
      out_ += "\t.loc " + file(number);
      rename(line.rest.substr(number.size()), false);
    } else {
      const bool jumps = line.word.starts_with("call") || line.word.starts_with('j');
      const bool defines = !line.label().empty() || line.names_a_symbol() || line.word == ".set";
      rename(line.text, jumps || defines);
    }
    out_ += '\n';
  }

  /// Adds a section directive. Functions are moved out of COMDAT groups.
  void add_section(const Line& line) {
    const std::string_view name = line.name();
    if (line.rest.ends_with(",comdat")) alone_.insert(name);
    if (!alone_.contains(name)) {
      rename(line.text, false);
    } else {
      out_ += "\t.section\t" + std::string(name) + std::string(suffix);
      std::string flags(line.rest.substr(name.size()));
      if (const std::size_t group = flags.rfind("progbits,"); group != std::string::npos) {
        std::erase(flags, 'G');
        std::string kept = flags.substr(0, flags.find(",@progbits") + 10);
        // "aMS",@progbits,1: mergeable sections keep their entity size.
        if (flags.find('M') < flags.find(",@")) kept += "," + flags.substr(kept.size() + 1, 1);
        flags = kept;
      }
      out_ += flags;
    }
    out_ += '\n';
  }

  void add_file(const Line& line) {
    const std::string_view number = line.name();
    const std::size_t rest = line.rest.find('"');
    if (number.empty() || number == "0") return;
    const std::string_view name = line.rest.substr(rest);
    if (const auto same = hooked_.files.find(name); same != hooked_.files.end()) {
      numbers_[number] = same->second;
      return;
    }
    numbers_[number] = std::to_string(++hooked_.last_file);
    out_ += "\t.file " + numbers_[number] + " " + std::string(name);
  }
  std::string file(std::string_view number) const {
    const auto at = numbers_.find(number);
    return at != numbers_.end() ? at->second : std::string(number);
  }

  /// Adds text. Appends the suffix to names of local labels, of objects that this version keeps,
  /// and of functions: all functions if `functions`, else those that the hooked version lacks.
  void rename(std::string_view text, bool functions) {
    for (std::size_t i = 0; i < text.size();) {
      if (!is_name(text[i])) {
        out_ += text[i++];
        continue;
      }
      std::size_t end = i;
      while (end < text.size() && is_name(text[end])) ++end;
      const std::string_view name = text.substr(i, end - i);
      out_ += name;
      const bool function = own_.functions.contains(name);
      const bool label = name.starts_with(".L") || (own_.objects.contains(name) && keeps(name));
      if (label || (function && (functions || !hooked_.functions.contains(name)))) out_ += suffix;
      i = end;
    }
  }
  [[nodiscard]] bool keeps(std::string_view object) const {
    return !dropped_.contains(object) && !object.starts_with("DW.ref.");
  }

  /// Adds a table of address pairs (hooked, unhooked), and a constructor that registers it with the
  /// runtime.
  void add_table() {
    std::vector<std::string_view> both;
    for (const std::string_view one : own_.functions) {
      const bool reached = hooked_.visible.contains(one) || !hooked_.shared.contains(one);
      if (hooked_.functions.contains(one) && reached) both.push_back(one);
    }
    std::sort(both.begin(), both.end());
    out_ += "\t.section\t.data.rel.ro.local.rung_unhooked,\"aw\"\n\t.align 8\n.Lrung_pairs:\n";
    for (const std::string_view one : both) {
      out_ += "\t.quad\t" + std::string(one) + "\n\t.quad\t" + std::string(one) +
              std::string(suffix) + "\n";
    }
    out_ +=
        ".Lrung_pairs_end:\n\t.text\n.Lrung_tell:\n\tleaq\t.Lrung_pairs(%rip), %rdi\n"
        "\tleaq\t.Lrung_pairs_end(%rip), %rsi\n\tjmp\trung_emulate_unhooked@PLT\n"
        "\t.section\t.init_array,\"aw\"\n\t.align 8\n\t.quad\t.Lrung_tell\n";
  }

  Symbols hooked_, own_;
  std::string out_;
  bool fits_ = true;
  bool dropping_ = false, constructors_ = false;
  std::unordered_set<std::string_view> dropped_;  // objects defined by the hooked version
  std::unordered_set<std::string_view> alone_;    // former COMDAT sections
  std::unordered_map<std::string_view, std::string> numbers_;  // new file numbers, by file number
};

}  // namespace

std::string add_unhooked(const std::string& hooked, const std::string& unhooked) {
  return Joiner(hooked, unhooked).result();
}

}  // namespace rung::emulate
