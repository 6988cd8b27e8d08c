// SPDX-License-Identifier: Apache-2.0
// The tokens of a preprocessed C++ source. Whatever is not changed comes out as it went in, blanks
// and line markers included, so that the compiler's messages name the user's file and line.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rung::emulate {

/// Of a name: letters, digits, _, and the bytes of letters beyond ASCII.
inline bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

enum class TokenKind : std::uint8_t {
  identifier,
  number,
  string,     // with prefix and suffix, raw ones too
  character,  // 'a'
  symbol,     // an operator or bracket; << and >> are one token each, < and > of <<< another
  verbatim,   // a line marker, a pragma, or a whole system header
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view space;  // the blanks in front of it
  std::string_view text;

  [[nodiscard]] bool is(std::string_view word) const { return text == word; }
  [[nodiscard]] bool is_identifier() const { return kind == TokenKind::identifier; }
};

/// A place in a file of the user's.
struct SourceLine {
  std::string file;
  int line = 0;
};
std::string to_string(const SourceLine& place);

/// A preprocessed source, and what to print instead of some of its tokens.
class TokenStream {
 public:
  /// Text that came out of `g++ -E`. System headers become one token each.
  explicit TokenStream(const std::string& text);

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  /// Past the end there are only end tokens.
  [[nodiscard]] const Token& operator[](std::size_t i) const {
    return i < tokens_.size() ? tokens_[i] : end_;
  }
  /// The line that a token stands on, by the line markers before it.
  [[nodiscard]] SourceLine line_of(std::size_t i) const;
  /// The bracket that closes the one at `open`: ( [ or {; size() if none does.
  [[nodiscard]] std::size_t closing(std::size_t open) const;
  /// The bracket that opens the one at `close`; size() if none does.
  [[nodiscard]] std::size_t opening(std::size_t close) const;
  /// Tokens begin .. end-1 as they are now, edits and line breaks included.
  [[nodiscard]] std::string text(std::size_t begin, std::size_t end) const;

  /// Edits past the end, of a bracket that nothing closes, are lost.
  void replace(std::size_t i, std::string text) { edit(i).instead = std::move(text); }
  void erase(std::size_t i) { replace(i, ""); }
  void insert_before(std::size_t i, const std::string& text) {
    edit(i).before = text + edit(i).before;
  }
  void insert_after(std::size_t i, const std::string& text) { edit(i).after += text; }
  /// Prints `text` instead of begin .. end-1; what follows keeps its line.
  void replace(std::size_t begin, std::size_t end, const std::string& text);

 private:
  struct Edit {
    std::size_t token;
    std::string before, instead, after;
  };
  Edit& edit(std::size_t i);

  std::string source_;
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> edit_of_;  // 1 + the index of a token's edit; 0: it has none
  std::vector<Edit> edits_;
  Token end_;
};

}  // namespace rung::emulate
