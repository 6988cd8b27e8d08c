// SPDX-License-Identifier: Apache-2.0
// Finds a rung's source file and parses its header comment.
#include "rung/workbench/rung_source.hpp"

#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include "rung/workbench/files.hpp"

namespace rung::workbench {
namespace {

namespace fs = std::filesystem;

/// Returns true for a line that opens a field: "Idea     a block ..."; continuation lines begin
/// with blanks.
bool opens_field(std::string_view line) {
  const std::size_t end = line.find(' ');
  return end != std::string_view::npos && end > 0 && line.substr(end).starts_with("  ") &&
         std::isupper(static_cast<unsigned char>(line.front())) != 0;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::string> find_source(const std::string& file) {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const fs::path include = program.parent_path() / "include";
  std::vector<fs::path> paths = {file, include / file};
  // With ccache, the compiler may have seen a path relative to the build folder.
  const fs::path normal = fs::path(file).lexically_normal();
  for (auto part = normal.begin(); part != normal.end(); ++part) {
    if (*part != "rung") continue;
    paths.push_back(include);
    for (auto rest = part; rest != normal.end(); ++rest) paths.back() /= *rest;
  }
  for (const fs::path& path : paths) {
    if (fs::is_regular_file(path, failed)) return read_text_file(path.string());
  }
  return std::nullopt;
}

RungHeader parse_rung_header(std::string_view source) {
  RungHeader header;
  while (source.starts_with("//")) {
    std::string_view line = source.substr(0, source.find('\n'));
    source.remove_prefix(std::min(source.size(), line.size() + 1));
    line.remove_prefix(line.starts_with("// ") ? 3 : 2);
    if (line.starts_with("SPDX") || trimmed(line).empty()) continue;
    if (opens_field(line)) {
      const std::size_t end = line.find(' ');
      header.fields.push_back({std::string(line.substr(0, end)), ""});
      line.remove_prefix(end);
    } else if (header.fields.empty()) {
      header.title += (header.title.empty() ? "" : " ") + std::string(trimmed(line));
      continue;
    }
    std::string& text = header.fields.back().text;
    text += (text.empty() ? "" : " ") + std::string(trimmed(line));
  }
  return header;
}

}  // namespace rung::workbench
