// SPDX-License-Identifier: Apache-2.0
// Tokens of a preprocessed C++ source. Unchanged text, including blanks and line markers, is
// printed verbatim, so that compiler messages refer to the user's files and lines.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rung::emulate {

/// Returns true for characters of identifiers: letters, digits, _, and bytes of non-ASCII letters.
inline bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

enum class TokenKind : std::uint8_t {
  identifier,
  number,
  string,     // with prefix and suffix, raw strings included
  character,  // 'a'
  symbol,     // operator or bracket; << and >> are one token each, <<< is << and <
  verbatim,   // a line marker, a pragma, or a whole system header
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view space;  // blanks before the token
  std::string_view text;

  [[nodiscard]] bool is(std::string_view word) const { return text == word; }
  [[nodiscard]] bool is_identifier() const { return kind == TokenKind::identifier; }
};

/// A line of a user's file.
struct SourceLine {
  std::string file;
  int line = 0;
};
std::string to_string(const SourceLine& place);

/// A preprocessed source with edits to some tokens.
class TokenStream {
 public:
  /// Tokenizes the output of `g++ -E`. Each system header becomes one token.
  explicit TokenStream(const std::string& text);

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  /// Returns token i; an end token if i is past the last token.
  [[nodiscard]] const Token& operator[](std::size_t i) const {
    return i < tokens_.size() ? tokens_[i] : end_;
  }
  /// Returns the token's source line, determined by the preceding line marker.
  [[nodiscard]] SourceLine line_of(std::size_t i) const;
  /// Returns the bracket that closes the (, [ or { at `open`; size() if there is none.
  [[nodiscard]] std::size_t closing(std::size_t open) const;
  /// Returns the bracket that opens the bracket at `close`; size() if there is none.
  [[nodiscard]] std::size_t opening(std::size_t close) const;
  /// Returns the text of tokens [begin, end), with edits and line breaks.
  [[nodiscard]] std::string text(std::size_t begin, std::size_t end) const;

  /// Replaces a token. No effect if i is past the last token, as for an unmatched bracket.
  void replace(std::size_t i, std::string text) { edit(i).instead = std::move(text); }
  void erase(std::size_t i) { replace(i, ""); }
  void insert_before(std::size_t i, const std::string& text) {
    edit(i).before = text + edit(i).before;
  }
  void insert_after(std::size_t i, const std::string& text) { edit(i).after += text; }
  /// Replaces tokens [begin, end) by `text`; later tokens keep their lines.
  void replace(std::size_t begin, std::size_t end, const std::string& text);

 private:
  struct Edit {
    std::size_t token;
    std::string before, instead, after;
  };
  Edit& edit(std::size_t i);

  std::string source_;
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> edit_of_;  // 1 + index of the token's edit; 0: none
  std::vector<Edit> edits_;
  Token end_;
};

}  // namespace rung::emulate
