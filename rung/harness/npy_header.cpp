// SPDX-License-Identifier: Apache-2.0
// Parses the header of a .npy file, a Python dictionary literal, as untrusted input.
#include "rung/harness/npy_header.hpp"

#include <charconv>

namespace rung::detail {
namespace {

struct NumpyType {
  DType dtype;
  std::string_view code;  // without the byte order
};
constexpr NumpyType numpy_types[] = {
    {DType::f32, "f4"}, {DType::f64, "f8"}, {DType::f16, "f2"}, {DType::i8, "i1"},
    {DType::u8, "u1"},  {DType::i32, "i4"}, {DType::i64, "i8"}, {DType::u16, "u2"},
};
constexpr std::string_view accepted = "accepted: f4, f8, f2, i1, u1, i4, i8, u2";

/// Returns input text in a form safe to print: short, without control characters.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string result;
  for (const char c : text.substr(0, most)) result += c >= ' ' && c <= '~' ? c : '?';
  return "'" + result + (text.size() > most ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  NpyHeader parse() {
    NpyHeader header;
    bool seen_type = false;
    bool seen_order = false;
    bool seen_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = string("a key");
      expect(':');
      bool* const seen = key == "descr"           ? &seen_type
                         : key == "fortran_order" ? &seen_order
                         : key == "shape"         ? &seen_shape
                                                  : nullptr;
      if (seen == nullptr) fail("unknown key " + shown(key));
      if (*seen) fail("key " + shown(key) + " is given twice");
      *seen = true;
      if (seen == &seen_type) type(header);
      if (seen == &seen_order) header.fortran_order = boolean();
      if (seen == &seen_shape) header.shape = shape();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) fail("text after the dictionary: " + shown(rest_));
    if (!seen_type) fail("no 'descr'");
    if (!seen_order) fail("no 'fortran_order'");
    if (!seen_shape) fail("no 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::io, path_ + ": malformed .npy header: " + what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::unsupported, path_ + ": " + what);
  }

  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n' ||
                              rest_.front() == '\t' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  bool take(char wanted) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (take(wanted)) return;
    fail(std::string("expected '") + wanted + "' " +
         (rest_.empty() ? "before the end" : "at " + shown(rest_)));
  }

  std::string_view string(const char* what) {
    skip_spaces();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"')
      fail(std::string("expected ") + what + " at " + shown(rest_));
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string does not end: " + shown(rest_));
    const std::string_view value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("'fortran_order' is neither True nor False: " + shown(rest_));
  }

  std::int64_t extent() {
    skip_spaces();
    std::int64_t value = 0;
    const char* const begin = rest_.data();
    const auto [stop, status] = std::from_chars(begin, begin + rest_.size(), value);
    if (status == std::errc::result_out_of_range)
      fail("an extent exceeds 63 bits: " + shown(rest_));
    if (status != std::errc()) fail("an extent is not a number: " + shown(rest_));
    if (value < 0) fail("an extent is negative: " + std::to_string(value));
    rest_.remove_prefix(static_cast<std::size_t>(stop - begin));
    // Python 2 wrote long integers with the suffix L.
    if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);
    return value;
  }

  Extents shape() {
    Extents shape;
    expect('(');
    while (!take(')')) {
      if (shape.rank == max_rank) {
        refuse("more than " + std::to_string(max_rank) + " axes; rung's tensors have at most that");
      }
      shape[shape.rank++] = extent();
      if (!take(',')) {
        // (3) is a number in Python, not a tuple.
        if (shape.rank == 1) fail("'shape' is not a tuple");
        expect(')');
        break;
      }
    }
    return shape;
  }

  void type(NpyHeader& header) {
    skip_spaces();
    if (!rest_.empty() && rest_.front() == '[') {
      refuse("a structured dtype; save each of its fields by itself");
    }
    const std::string_view text = string("a dtype");
    const char order = text.empty() ? '\0' : text.front();
    if (order != '<' && order != '>' && order != '|' && order != '=') {
      fail("'descr' " + shown(text) + " does not start with a byte order");
    }
    for (const NumpyType& known : numpy_types) {
      if (text.substr(1) != known.code) continue;
      // '=' is native byte order; every machine that rung supports is little-endian.
      if (order == '|' && size_of(known.dtype) > 1)
        fail("'descr' " + shown(text) + " has no order");
      header.dtype = known.dtype;
      header.big_endian = order == '>';
      return;
    }
    if (text.substr(1) == "O") refuse("Python objects (dtype object) cannot be read");
    refuse("dtype " + shown(text) + " is not supported; " + std::string(accepted));
  }

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

std::string format_npy_header(const NpyHeader& header, const std::string& path) {
  std::string_view code;
  for (const NumpyType& known : numpy_types) {
    if (known.dtype == header.dtype) code = known.code;
  }
  if (code.empty()) {
    throw Error(ErrorCode::unsupported, path + ": NumPy has no dtype " +
                                            std::string(to_string(header.dtype)) +
                                            "; convert the tensor to f32 first");
  }
  std::string text = "{'descr': '";
  text += size_of(header.dtype) == 1 ? '|' : '<';
  text += std::string(code) + "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
          ", 'shape': (";
  for (int axis = 0; axis < header.shape.rank; ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(header.shape[axis]);
  }
  return text + (header.shape.rank == 1 ? ",), }" : "), }");
}

}  // namespace rung::detail
