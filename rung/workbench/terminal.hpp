// SPDX-License-Identifier: Apache-2.0
// Width and colors of the terminal.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace rung::workbench {

/// Line width of output to a file or a pipe.
inline constexpr std::size_t page_width = 100;

/// Returns the characters per line: COLUMNS if set, else the width of the terminal on `descriptor`,
/// else page_width. At least 40.
std::size_t terminal_width(int descriptor = STDOUT_FILENO);
/// Returns the line width for prose: at most page_width.
std::size_t text_width();
/// Returns true if the descriptor is a terminal with cursor control: TERM is set and not "dumb".
bool is_terminal(int descriptor);

/// Policy for colored output.
enum class Color { automatic, always, never };
/// Sets the policy, given by --color. Default `automatic`: colors on a terminal, unless NO_COLOR is
/// set and not empty; FORCE_COLOR, if set to anything but "" or "0", also colors pipes and files.
void choose_color(Color when);
bool colored(int descriptor = STDOUT_FILENO);

/// Emphasis of a piece of text.
enum class Tone : unsigned char { plain, strong, faint, good, bad };
/// Returns `text` within the escape sequences of its tone; unchanged if colors are off.
std::string toned(Tone tone, std::string_view text, int descriptor = STDOUT_FILENO);

}  // namespace rung::workbench
