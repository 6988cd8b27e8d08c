// SPDX-License-Identifier: Apache-2.0
// Tokenizes a preprocessed source, and prints it with edits.
#include "rung/emulate/token.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "rung/core/text.hpp"

namespace rung::emulate {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return in_word(c) && !is_digit(c); }

/// A line marker "# 12 "file" 1 3": source location of the line that follows.
struct LineMarker {
  int line = 0;
  std::string_view file;
  bool enters = false;   // enters a header
  bool returns = false;  // returns to the including file
  bool system = false;
};

/// Unescapes a marker's file name: \", \\, and \n for a line feed.
std::string unquoted(std::string_view quoted) {
  std::string name;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    const bool escaped = quoted[i] == '\\' && i + 1 < quoted.size();
    if (escaped) ++i;
    name += escaped && quoted[i] == 'n' ? '\n' : quoted[i];
  }
  return name;
}
std::string quoted(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  return text;
}

bool parse_marker(std::string_view text, LineMarker& marker) {
  if (!text.starts_with("# ") || text.size() < 3 || !is_digit(text[2])) return false;
  const auto [rest, failed] =
      std::from_chars(text.data() + 2, text.data() + text.size(), marker.line);
  const std::size_t open = text.find('"');
  const std::size_t close = text.rfind('"');
  if (failed != std::errc{} || open == close) return false;
  marker.file = text.substr(open + 1, close - open - 1);
  const auto flag = [&](const char* number) {
    return text.find(number, close) != std::string_view::npos;
  };
  marker.enters = flag(" 1");
  marker.returns = flag(" 2");
  marker.system = flag(" 3");
  return true;
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

/// Returns the end of the system header whose marker ends at `end`: the position at which the
/// including file continues.
std::size_t end_of_header(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const std::string_view line = line_at(text, end + 1);
    LineMarker marker;
    if (parse_marker(line, marker) && marker.returns && !marker.system) break;
    end += 1 + line.size();
  }
  return std::min(end, text.size());
}

/// Returns true for lines that cannot be joined with others: directives such as #pragma.
bool is_directive(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with('#');
}

/// Joins lines that the preprocessor has split with markers around macros of system headers, so
/// that only whole headers count as system code.
std::string join_lines(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  std::string_view file;
  int line = 0;  // line number of the next output line
  bool after_directive = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view one = line_at(text, at);
    LineMarker marker;
    if (!parse_marker(one, marker)) {
      joined.append(one).append("\n");
      at += one.size() + 1;
      ++line;
      after_directive = is_directive(one);
    } else if (marker.enters && marker.system) {
      const std::size_t end = end_of_header(text, at + one.size());
      joined.append(text.substr(at, end - at)).append("\n");
      at = end + 1;
    } else {
      const bool within = !marker.enters && !marker.returns && marker.file == file;
      const std::size_t next = at + one.size() + 1;
      const bool alone =
          after_directive || (next < text.size() && is_directive(line_at(text, next)));
      if (within && !alone && marker.line == line - 1 && joined.ends_with('\n')) {
        joined.back() = ' ';
      } else if (within && marker.line >= line && marker.line - line < 100) {
        joined.append(static_cast<std::size_t>(marker.line - line), '\n');
      } else {
        if (joined.ends_with(' ')) joined.back() = '\n';
        joined.append("# " + std::to_string(marker.line) + " \"").append(marker.file).append("\"");
        if (marker.enters) joined += " 1";
        if (marker.returns) joined += " 2";
        joined += '\n';
        file = marker.file;
      }
      line = marker.line;
      at += one.size() + 1;
    }
  }
  return joined;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Token next() {
    const std::size_t before = at_;
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) {
      if (text_[at_++] == '\n') line_start_ = true;
    }
    Token token;
    token.space = text_.substr(before, at_ - before);
    const std::size_t begin = at_;
    token.kind = at_ < text_.size() ? scan() : TokenKind::end;
    token.text = text_.substr(begin, at_ - begin);
    line_start_ = false;
    return token;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  /// Returns the length of a name \u00e4 or \U000000e4, with which the preprocessor spells a
  /// non-ASCII letter; 0 if there is none.
  [[nodiscard]] std::size_t letter_bytes() const {
    if (peek() != '\\' || (peek(1) != 'u' && peek(1) != 'U')) return 0;
    const std::size_t bytes = peek(1) == 'u' ? 6 : 10;
    for (std::size_t i = 2; i < bytes; ++i) {
      if (std::isxdigit(static_cast<unsigned char>(peek(i))) == 0) return 0;
    }
    return bytes;
  }

  TokenKind scan() {
    const char c = peek();
    if (c == '#' && line_start_) return scan_directive();
    if (starts_word(c) || letter_bytes() != 0) return scan_word();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return scan_number();
    if (c == '"') return scan_quoted('"', TokenKind::string);
    if (c == '\'') return scan_quoted('\'', TokenKind::character);
    // Only operators that the rewriter would misread as two operators.
    for (const std::string_view two : {"::", "->", "<<", ">>", "<=", ">=", "==", "&&", "||"}) {
      if (text_.substr(at_).starts_with(two)) {
        at_ += 2;
        return TokenKind::symbol;
      }
    }
    ++at_;
    return TokenKind::symbol;
  }

  TokenKind scan_directive() {
    LineMarker marker;
    const std::string_view line = line_at(text_, at_);
    std::size_t end = at_ + line.size();
    if (parse_marker(line, marker) && marker.enters && marker.system) {
      end = end_of_header(text_, end);
    }
    at_ = end;
    return TokenKind::verbatim;
  }

  TokenKind scan_word() {
    const std::size_t begin = at_;
    while (in_word(peek()) || letter_bytes() != 0) {
      at_ += std::max<std::size_t>(letter_bytes(), 1);
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (peek() == '"' &&
        (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
      const std::size_t open = text_.find('(', at_);
      const std::string closing = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
      const std::size_t close = text_.find(closing, open);
      at_ = close == std::string_view::npos ? text_.size() : close + closing.size();
      return TokenKind::string;
    }
    const bool prefix = word == "L" || word == "u" || word == "U" || word == "u8";
    if (prefix && peek() == '"') return scan_quoted('"', TokenKind::string);
    if (prefix && peek() == '\'') return scan_quoted('\'', TokenKind::character);
    return TokenKind::identifier;
  }

  TokenKind scan_number() {
    // A preprocessing number: exponents may have signs, and ' may separate digits.
    while (in_word(peek()) || peek() == '.' || (peek() == '\'' && in_word(peek(1)))) {
      const char c = peek();
      ++at_;
      const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
      if (exponent && (peek() == '+' || peek() == '-')) ++at_;
    }
    return TokenKind::number;
  }

  TokenKind scan_quoted(char quote, TokenKind kind) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
    while (in_word(peek())) ++at_;  // suffix of a user-defined literal
    return kind;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool line_start_ = true;
};

/// Decodes universal character names to UTF-8.
std::string with_letters(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    // The scanner has validated the digits.
    const std::size_t bytes = name.front() != '\\' ? 1 : name[1] == 'u' ? 6 : 10;
    std::uint32_t code = 0;
    if (bytes > 1) std::from_chars(name.data() + 2, name.data() + bytes, code, 16);
    constexpr std::uint32_t ascii = 0x80;  // not a letter: left for the compiler to reject
    text += code < ascii ? std::string(name.substr(0, bytes)) : utf8(code);
    name.remove_prefix(bytes);
  }
  return text;
}

/// Returns the source with non-ASCII names in UTF-8, as written by the user.
std::string with_letters_in_names(std::string text) {
  if (text.find("\\u") == std::string::npos && text.find("\\U") == std::string::npos) return text;
  std::string result;
  Scanner scanner(text);
  for (bool more = true; more;) {
    const Token token = scanner.next();
    result.append(token.space);
    const bool name = token.kind == TokenKind::identifier;
    result += name ? with_letters(token.text) : std::string(token.text);
    more = token.kind != TokenKind::end;
  }
  return result;
}

}  // namespace

std::string to_string(const SourceLine& place) {
  return printable(place.file) + ":" + std::to_string(place.line);
}

TokenStream::TokenStream(const std::string& text)
    : source_(with_letters_in_names(join_lines(text))) {
  Scanner scanner(source_);
  do {
    tokens_.push_back(scanner.next());
  } while (tokens_.back().kind != TokenKind::end);
  edit_of_.resize(tokens_.size() + 1);  // the last token's edit is never printed
}

SourceLine TokenStream::line_of(std::size_t i) const {
  const char* here = (*this)[i].text.data();
  for (std::size_t back = std::min(i, tokens_.size() - 1) + 1; back > 0; --back) {
    const Token& token = tokens_[back - 1];
    if (token.kind != TokenKind::verbatim) continue;
    // A system header ends at the marker at which the including file continues.
    LineMarker marker;
    if (!parse_marker(token.text, marker) || marker.system) continue;
    const char* begin = token.text.data() + token.text.size() + 1;
    const auto breaks = begin < here ? std::count(begin, here, '\n') : 0;
    return {unquoted(marker.file), marker.line + static_cast<int>(breaks)};
  }
  return {};
}

std::size_t TokenStream::closing(std::size_t open) const {
  int depth = 0;
  for (std::size_t i = open; i < tokens_.size(); ++i) {
    if (tokens_[i].kind != TokenKind::symbol) continue;
    const char c = tokens_[i].text[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i;
  }
  return tokens_.size();
}

std::size_t TokenStream::opening(std::size_t close) const {
  int depth = 0;
  for (std::size_t i = close + 1; i > 0; --i) {
    if (tokens_[i - 1].kind != TokenKind::symbol) continue;
    const char c = tokens_[i - 1].text[0];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if ((c == '(' || c == '[' || c == '{') && --depth == 0) return i - 1;
  }
  return tokens_.size();
}

TokenStream::Edit& TokenStream::edit(std::size_t i) {
  i = std::min(i, tokens_.size());
  if (edit_of_[i] == 0) {
    edits_.push_back({i, "", std::string((*this)[i].text), ""});
    edit_of_[i] = static_cast<std::uint32_t>(edits_.size());
  }
  return edits_[edit_of_[i] - 1];
}

std::string TokenStream::text(std::size_t begin, std::size_t end) const {
  std::string printed;
  for (std::size_t i = begin; i < std::min(end, tokens_.size()); ++i) {
    const Token& token = tokens_[i];
    printed += token.space;
    if (edit_of_[i] == 0) {
      printed += token.text;
    } else {
      const Edit& changed = edits_[edit_of_[i] - 1];
      printed += changed.before + changed.instead + changed.after;
    }
  }
  return printed;
}

void TokenStream::replace(std::size_t begin, std::size_t end, const std::string& text) {
  std::string_view first = (*this)[begin].space;
  const std::string old = this->text(begin, end).substr(first.size());
  for (std::size_t i = begin; i < std::min(end, tokens_.size()); ++i) {
    edit(i) = {i, "", "", ""};
    if (i != begin) tokens_[i].space = {};
  }
  std::string& printed = edit(begin).instead;
  printed = text;
  if (old.find('\n') != std::string::npos) {
    const SourceLine last = line_of(end - 1);
    printed += "\n# " + std::to_string(last.line) + " \"" + quoted(last.file) + "\"\n";
  }
}

}  // namespace rung::emulate
