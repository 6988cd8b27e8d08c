// SPDX-License-Identifier: Apache-2.0
// Measured results as Markdown tables, and their insertion into a README.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rung::workbench {

/// Returns the tables of a results file: JSON of `rung bench` or `rung survey`, or an array of
/// such. `filter` selects rows of a bench by the words "backend=B", "threads=N" and "rung=R" (one
/// table of this rung over all problems); other words form a problem; "" selects all rows. Surveys
/// give one line each, or with "worst" a table of the worst problems.
/// Throws Error(io) if the text is not such JSON, Error(invalid_argument) if no row remains.
std::string results_to_markdown(const std::string& json, const std::string& filter);

/// Start of a marker in a document.
inline constexpr std::string_view table_marker = "<!-- rung:table ";

/// Replaces the text between each  <!-- rung:table NAME FILTER -->  and the next  <!-- rung:end -->
/// by the tables of results(NAME). Throws Error(invalid_argument) for a marker without an end.
std::string with_tables(const std::string& document,
                        const std::function<std::string(const std::string& name)>& results);

}  // namespace rung::workbench
