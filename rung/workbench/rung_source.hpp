// SPDX-License-Identifier: Apache-2.0
// The source of a rung, as read by `rung explain`: its header comment and its lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rung::workbench {

/// Finds a file by the name that the compiler recorded: as given, or among this program's installed
/// sources (folder include/ beside bin/). Returns nothing if it is in neither.
std::optional<std::string> find_source(const std::string& file);

/// Header comment of a rung: fields "Idea", "Changes", "Cost", ..., in their order.
struct RungHeader {
  struct Field {
    std::string name;
    std::string text;  // joined to one line
  };
  std::string title;  // "gemm / shared tile"
  std::vector<Field> fields;
};
RungHeader parse_rung_header(std::string_view source);

}  // namespace rung::workbench
