// SPDX-License-Identifier: Apache-2.0
// Queries the terminal and the environment variables that control output.
#include "rung/workbench/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace rung::workbench {
namespace {

constexpr std::size_t min_width = 40;
constexpr std::size_t max_width = 1000;

Color choice = Color::automatic;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Parses a positive whole number; returns 0 for any other text.
std::size_t count(std::string_view text) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? value : 0;
}

const char* escape(Tone tone) {
  switch (tone) {
    case Tone::strong:
      return "\033[1m";
    case Tone::faint:
      return "\033[2m";
    case Tone::good:
      return "\033[32m";
    case Tone::bad:
      return "\033[1;31m";
    case Tone::plain:
      break;
  }
  return "";
}

}  // namespace

std::size_t terminal_width(int descriptor) {
  std::size_t width = count(variable("COLUMNS"));
  if (width == 0) {
    winsize size{};
    if (isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  }
  return width == 0 ? page_width : std::clamp(width, min_width, max_width);
}

std::size_t text_width() { return std::min(terminal_width(), page_width); }

bool is_terminal(int descriptor) {
  const std::string_view kind = variable("TERM");
  return isatty(descriptor) != 0 && !kind.empty() && kind != "dumb";
}

void choose_color(Color when) { choice = when; }

bool colored(int descriptor) {
  if (choice != Color::automatic) return choice == Color::always;
  if (!variable("NO_COLOR").empty()) return false;
  const std::string_view force = variable("FORCE_COLOR");
  if (!force.empty()) return force != "0";
  return is_terminal(descriptor);
}

std::string toned(Tone tone, std::string_view text, int descriptor) {
  if (tone == Tone::plain || text.empty() || !colored(descriptor)) return std::string(text);
  const std::string_view end = text.ends_with('\n') ? "\n" : "";
  text.remove_suffix(end.size());
  return fmt::format("{}{}\033[0m{}", escape(tone), text, end);
}

}  // namespace rung::workbench
