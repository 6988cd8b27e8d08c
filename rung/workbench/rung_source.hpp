// SPDX-License-Identifier: Apache-2.0
// The source of a rung, as `rung explain` reads it: the comment that it opens with, and its lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rung::workbench {

/// A file as the compiler named it: from here, or where this program's sources are kept (the
/// folder include/ beside bin/). Nothing when it is in neither.
std::optional<std::string> find_source(const std::string& file);

/// Header comment of a rung: "Idea", "Changes", "Cost", ..., in its order.
struct RungHeader {
  struct Field {
    std::string name;
    std::string text;  // in one line
  };
  std::string title;  // "gemm / shared tile"
  std::vector<Field> fields;
};
RungHeader parse_rung_header(std::string_view source);

}  // namespace rung::workbench
