// SPDX-License-Identifier: Apache-2.0
// Annotated source: per line, the requests of global and shared memory, their sectors and
// wavefronts, and the active lanes.
#include "rung/workbench/annotate.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "rung/core/text.hpp"
#include "rung/workbench/kernel_name.hpp"
#include "rung/workbench/rung_source.hpp"
#include "rung/workbench/table.hpp"
#include "rung/workbench/terminal.hpp"

namespace rung::workbench {
namespace {

/// Context lines printed around a line with counts.
constexpr int context = 4;
/// Minimum columns for source text on a narrow terminal, where lines then wrap.
constexpr std::size_t min_room = 40;

struct LineCount {
  std::uint64_t global = 0, sectors = 0;  // global: loads, stores and atomics
  std::uint64_t shared = 0, wavefronts = 0;
  std::uint64_t constant = 0, texture = 0;
  std::uint64_t barriers = 0;
  std::uint64_t branches = 0, divergent = 0;
  double lanes = 0;                 // active lanes, over all requests but those to local memory
  std::uint64_t counted_lanes = 0;  // number of these requests
  bool exact = true;

  [[nodiscard]] bool any() const { return counted_lanes + barriers + branches != 0; }
  void add(const nlohmann::json& line) {
    const auto count = [&](const char* name) { return line.at(name).get<std::uint64_t>(); };
    const std::uint64_t global_here =
        count("global_load_requests") + count("global_store_requests") + count("atomic_requests");
    const std::uint64_t shared_here = count("shared_requests") + count("shared_atomic_requests");
    global += global_here;
    sectors +=
        count("global_load_sectors") + count("global_store_sectors") + count("atomic_sectors");
    shared += shared_here;
    wavefronts += count("shared_wavefronts") + count("shared_atomic_wavefronts");
    constant += count("constant_requests");
    texture += count("texture_requests");
    const std::uint64_t other = count("constant_requests") + count("texture_requests");
    barriers += count("barriers");
    branches += count("branches");
    divergent += count("divergent_branches");
    lanes += line.at("active_lanes").get<double>() *
             static_cast<double>(global_here + shared_here + other);
    counted_lanes += global_here + shared_here + other;
    exact = exact && line.at("exact").get<bool>();
  }
};
using Lines = std::map<int, LineCount>;

/// Formats a count in at most four digits: "9999", "65.5k", "4.19M".
std::string shortened(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (count < 10000) return std::to_string(count);
  constexpr const char* units[] = {"k", "M", "G", "T"};
  double scaled = value / 1000;
  int unit = 0;
  for (; scaled >= 999.5 && unit < 3; ++unit) scaled /= 1000;
  return fmt::format("{:.3g}{}", scaled, units[unit]);
}

std::string ratio_text(std::uint64_t of, std::uint64_t by) {
  return by == 0 ? "" : fmt::format("{:.3g}", static_cast<double>(of) / static_cast<double>(by));
}

std::string gutter(const LineCount& c) {
  std::string lanes;
  if (c.counted_lanes != 0) {
    lanes =
        fmt::format("{:.3g}{}", c.lanes / static_cast<double>(c.counted_lanes), c.exact ? "" : "~");
  }
  std::string note;
  if (c.barriers != 0) {
    note = "bar " + shortened(c.barriers);
  } else if (c.branches != 0) {
    note = fmt::format("br {:.3g}%", 100 - 100 * static_cast<double>(c.divergent) /
                                               static_cast<double>(c.branches));
  } else if (c.constant != 0) {
    note = "con " + shortened(c.constant);
  } else if (c.texture != 0) {
    note = "tex " + shortened(c.texture);
  }
  return fmt::format("{:>5} {:>4} {:>5} {:>4} {:>5} {:>9}",
                     c.global != 0 ? shortened(c.global) : "", ratio_text(c.sectors, c.global),
                     c.shared != 0 ? shortened(c.shared) : "", ratio_text(c.wavefronts, c.shared),
                     lanes, note);
}

/// Formats a source line after its gutter; wrapped parts are indented further.
std::string source_line(const std::string& left, int number, std::string code) {
  std::string head = fmt::format("{} {:>5} ", left, number);
  const std::size_t width = terminal_width();
  const std::size_t room = width > head.size() + min_room ? width - head.size() : min_room;
  for (char& c : code) c = c == '\t' ? ' ' : c;
  code.erase(code.find_last_not_of(' ') + 1);
  const std::size_t indent = std::min(std::min(code.find_first_not_of(' '), code.size()), room / 2);
  code.erase(0, code.find_first_not_of(' '));
  constexpr std::size_t further = 4;
  const bool fits = indent + code.size() <= room;
  std::string text, margin(indent, ' ');
  for (const std::string& part : wrap(code, fits ? room : room - indent - further)) {
    const std::string line = fmt::format("{}{}{}", head, margin, part);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    head.assign(head.size(), ' ');
    margin.assign(indent + further, ' ');
  }
  return text;
}

/// A source file. The shortest of its known paths is reported.
struct File {
  std::string name;
  Lines lines;
};
using Files = std::map<std::string, File>;  // by canonical path

std::string name_of(const nlohmann::json& kernel) {
  return short_name(kernel.at("name").get<std::string>());
}
std::string template_of(const std::string& name) { return name.substr(0, name.find('<')); }

/// Counts the instances of each template; templates with several instances get one listing per
/// instance.
std::map<std::string, int> count_instances(const nlohmann::json& kernels) {
  std::map<std::string, int> counts;
  for (const nlohmann::json& kernel : kernels) ++counts[template_of(name_of(kernel))];
  return counts;
}
std::string identity(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(file, failed);
  return failed ? file : path.string();
}

bool near_a_count(const Lines& lines, int number) {
  const auto next = lines.lower_bound(number - context);
  return next != lines.end() && next->first <= number + context;
}

/// Returns the path from `sources` that valid_utf8() has turned into `file`, else `file`.
std::string true_path(const std::string& file, const std::vector<std::string>& sources) {
  const auto name_in_json = [](const std::string& path) {
    return valid_utf8(std::filesystem::path(path).filename().string());
  };
  for (const std::string& source : sources) {
    if (valid_utf8(source) != source && name_in_json(source) == name_in_json(file)) return source;
  }
  return file;
}

std::string annotated_file(const std::string& file, const Lines& lines,
                           const std::vector<std::string>& sources) {
  std::string text = printable(file) + '\n';
  const auto source = find_source(true_path(file, sources));
  if (!source) {
    text += "  (not here; its counted lines)\n";
    for (const auto& [number, count] : lines) text += source_line(gutter(count), number, "");
    return text;
  }
  std::istringstream in(*source);
  const std::string blank(gutter({}).size(), ' ');
  int number = 0;
  bool left_out = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!near_a_count(lines, number)) {
      left_out = true;
      continue;
    }
    if (left_out) text += blank + "   ...\n";
    left_out = false;
    const auto count = lines.find(number);
    text += source_line(count != lines.end() ? gutter(count->second) : blank, number, line);
  }
  return text;
}

}  // namespace

std::string annotate(const nlohmann::json& kernels, const std::vector<std::string>& sources) {
  const std::map<std::string, int> instances = count_instances(kernels);
  std::map<std::string, Files> listings;  // by template instance; "": all other kernels
  for (const nlohmann::json& kernel : kernels) {
    const std::string name = name_of(kernel);
    const bool apart = instances.at(template_of(name)) > 1;
    Files& files = listings[apart ? name : ""];
    for (const nlohmann::json& line : kernel.at("lines")) {
      const std::string file = line.at("file").get<std::string>();
      const int number = line.at("line").get<int>();
      LineCount count;
      count.add(line);
      if (number <= 0 || !count.any()) continue;
      File& here = files[identity(file)];
      if (here.name.empty() || file.size() < here.name.size()) here.name = file;
      here.lines[number].add(line);
    }
  }
  std::erase_if(listings, [](const auto& listing) { return listing.second.empty(); });
  if (listings.empty()) return "nothing was counted in any line\n";
  std::string text =
      "   global      shared                         requests; sectors and wavefronts of each;\n"
      "requ. sect. requ. wave lanes                  lanes at work (~: see docs); barriers\n";
  for (const auto& [kernel, files] : listings) {
    if (!kernel.empty()) text += '\n' + kernel + '\n';
    for (const auto& [path, file] : files) {
      text += '\n' + annotated_file(file.name, file.lines, sources);
    }
  }
  return text;
}

}  // namespace rung::workbench
