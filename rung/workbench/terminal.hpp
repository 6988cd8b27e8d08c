// SPDX-License-Identifier: Apache-2.0
// The terminal: how wide it is, and whether it shows colors.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace rung::workbench {

/// The width of text that goes to a file or a pipe.
inline constexpr std::size_t page_width = 100;

/// Returns the characters per line: COLUMNS if set, else the width of the terminal that
/// `descriptor` is, else page_width. At least 40.
std::size_t terminal_width(int descriptor = STDOUT_FILENO);
/// Returns the characters per line of sentences: at most page_width.
std::size_t text_width();
/// Returns whether the descriptor is a terminal that moves its cursor: not one whose TERM is dumb
/// or unset.
bool is_terminal(int descriptor);

/// Policy for colored output.
enum class Color { automatic, always, never };
/// The answer to --color; until then automatic: on a terminal, unless NO_COLOR is set and not
/// empty; FORCE_COLOR, set to other than "" or "0", colors pipes and files too.
void choose_color(Color when);
bool colored(int descriptor = STDOUT_FILENO);

/// Emphasis of a piece of text.
enum class Tone : unsigned char { plain, strong, faint, good, bad };
/// `text` between the escape sequences of its tone; as it is where there is no color.
std::string toned(Tone tone, std::string_view text, int descriptor = STDOUT_FILENO);

}  // namespace rung::workbench
