// SPDX-License-Identifier: Apache-2.0
// Measured results as Markdown tables, and their place in a README.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rung::workbench {

/// The tables of a results file: the JSON of `rung bench` or of `rung survey`, or an array of such.
/// `filter` chooses among the rows of a bench: words "backend=B", "threads=N" and "rung=R" (one
/// table of this rung over all problems), the others together are a problem; "" for all. Of surveys
/// there is a line for each, or with "worst" a table of its worst problems.
/// Throws Error(io) when the text is no such JSON, Error(invalid_argument) when the filter leaves
/// nothing.
std::string results_to_markdown(const std::string& json, const std::string& filter);

/// The begin of a marker in a document.
inline constexpr std::string_view table_marker = "<!-- rung:table ";

/// Replaces what stands between each  <!-- rung:table NAME FILTER -->  and the next
/// <!-- rung:end -->  by the tables of results(NAME). Throws Error(invalid_argument) for a marker
/// without its end.
std::string with_tables(const std::string& document,
                        const std::function<std::string(const std::string& name)>& results);

}  // namespace rung::workbench
